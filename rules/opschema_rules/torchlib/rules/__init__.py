"""The rules of the pack."""
