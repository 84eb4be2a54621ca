"""The migrations of the pack."""
