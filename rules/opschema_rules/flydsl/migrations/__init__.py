"""The migrations of the pack flydsl."""
