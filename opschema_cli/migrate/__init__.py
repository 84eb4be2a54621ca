"""Migrations: named rewrites of a whole workspace, drafted first, written all or none."""
