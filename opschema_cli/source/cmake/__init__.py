"""Reads which targets CMake builds, without running it."""
