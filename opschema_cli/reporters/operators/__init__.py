"""Operators for people and machines: one beside its code, the table in lines, the table as JSON."""
