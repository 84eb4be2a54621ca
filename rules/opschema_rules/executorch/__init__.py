"""Operator lists of ExecuTorch: the YAML that its code generator reads, against schemas, C++ kernels and other declarations."""
