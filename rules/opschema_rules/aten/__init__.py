"""PyTorch's own schemas: native_functions.yaml, derivatives.yaml, tags.yaml, and the YAML of backends outside of its tree."""
