"""Migrations of TileOPs-style repositories, one module each, and their common parts."""
