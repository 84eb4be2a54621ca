"""Bindings of C++ functions without schemas: pybind11 and nanobind modules, against C++ signatures, Python callers and stubs."""
