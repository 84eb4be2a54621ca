"""Reads what CMake builds, without running it."""
