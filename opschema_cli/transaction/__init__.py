"""Many files changed as one step: all of them or none, also when the run is killed at any moment."""
