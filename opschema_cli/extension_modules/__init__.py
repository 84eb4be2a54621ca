"""Extension modules, which are no Python files, as the Python code of a tree uses them."""
