"""Migrations of Magi custom ops: one module each, and their common parts."""
