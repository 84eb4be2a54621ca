"""FlyDSL kernels: signatures, launches, buffer descriptors and what the compile cache does not see."""
