"""Files as facts with places: text, YAML, Python, C++. Nothing here knows operators."""
