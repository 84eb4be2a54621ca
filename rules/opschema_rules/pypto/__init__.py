"""Programs for pypto's runtime (simpler): kernel configurations against the orchestration that submits the kernels."""
