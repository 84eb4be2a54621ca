"""The environment of worker processes: one side's caches of compiled kernels are never those of the other."""

from __future__ import annotations

import os
from pathlib import Path

import opschema_cli

_CACHES = {
    "XDG_CACHE_HOME": "xdg",
    "TRITON_CACHE_DIR": "triton",
    "TILELANG_CACHE_DIR": "tilelang",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "CUDA_CACHE_PATH": "cuda",
}


def environment(caches: Path) -> dict[str, str]:
    """The environment of one side: this one's, with caches of its own, and such that nothing is written into its tree."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV_CORE_", "PYTEST_"))}
    ours = str(Path(opschema_cli.__file__).resolve().parents[1])
    theirs = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {
        **kept,
        **{name: str(caches / folder) for name, folder in _CACHES.items()},
        "PYTHONPATH": os.pathsep.join(dict.fromkeys([*theirs, ours])),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "TORCHINDUCTOR_DETERMINISTIC": "1",  # compiled ops do not choose their kernels by how long these take
    }
