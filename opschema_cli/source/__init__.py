"""Facts about files, with places: text, YAML, Python, C++. Nothing here knows about operators."""
