"""Static evaluation of Python expressions, once for all packs."""
