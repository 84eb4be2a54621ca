"""Migrations: named rewrites of an entire workspace, drafted first, written all or none."""
