"""Reads what Bazel and Buck build, without running them."""
