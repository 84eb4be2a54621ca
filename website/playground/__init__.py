"""The page that lints in the browser: what it downloads, its examples, and the Python that answers there."""
