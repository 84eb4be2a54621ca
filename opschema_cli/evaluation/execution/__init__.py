"""Execution of function bodies with concrete values, without running the code of the tree."""
