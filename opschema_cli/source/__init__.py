"""What a file says and where: text, YAML and Python. Nothing here knows operators."""
