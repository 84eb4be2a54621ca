"""Reads which targets Bazel and Buck build, without running them."""
