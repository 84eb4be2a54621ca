"""The rules of the pack flydsl."""
