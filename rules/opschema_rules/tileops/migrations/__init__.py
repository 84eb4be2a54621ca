"""Migrations of TileOPs-style repositories, one module each, and what they share."""
