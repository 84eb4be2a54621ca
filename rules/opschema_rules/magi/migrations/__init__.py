"""Migrations of Magi custom ops: one module each, and what they share."""
