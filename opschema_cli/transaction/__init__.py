"""Many files changed as one step: all of them or none, also when the run is killed at any moment."""

JOURNAL = ".opschema-journal"
"""The journal's file, in the root of the workspace."""
