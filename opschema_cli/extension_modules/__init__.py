"""Uses of extension modules, which are not Python files, in the Python code of a tree."""
