"""Atomic changes of many files: all or none are made, even if the run is killed at any moment."""

JOURNAL = ".opschema-journal"
"""The journal's file, in the root of the workspace."""
