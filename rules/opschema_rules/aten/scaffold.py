"""The smallest backend outside of PyTorch that torch loads: its YAML, kernels, device and Python package."""

from __future__ import annotations

import keyword
import sys
from importlib.resources import files

from opschema_cli.errors import OpschemaError
from opschema_rules.aten.torchgen_table import ever_operators

_FILES = {
    "csrc/NAME.yaml": "backend.yaml",
    "csrc/kernels.cpp": "kernels.cpp",
    "csrc/device.h": "device.h",
    "csrc/device.cpp": "device.cpp",
    "NAME/__init__.py": "__init__.py",
    "setup.py": "setup.py",
}
"""The files and their templates."""

_TAKEN = frozenset(
    (
        *("cpu", "cuda", "hip", "xla", "mps", "xpu", "hpu", "ve", "lazy", "mtia", "maia", "meta", "ipu", "fpga"),
        *("vulkan", "metal", "ideep", "mkldnn", "opengl", "opencl", "torch", "csrc"),
    )
)
"""Names of other devices, and of folders of the backend itself."""

NEXT = (
    "opschema stubs csrc/NAME.yaml --output-dir csrc --apply",
    "python setup.py build_ext --inplace",
    "python -c 'import torch, NAME; print(torch.ones(3).to(\"NAME\") + 1)'",
    "opschema lint",
)
"""Commands that follow."""


def scaffold(key: str, name: str) -> tuple[dict[str, str], list[str]]:
    """The files of a backend called ``name`` by path, and the commands that follow.

    Raises:
        OpschemaError: it cannot have that dispatch key or name.
    """
    if key != "PrivateUse1":
        raise OpschemaError(
            f"a backend outside of PyTorch has the dispatch key `PrivateUse1`, which takes a name; not `{key}`"
        )
    _check_name(name)
    folder = files("opschema_rules.aten") / "templates"
    texts = {path: (folder / f"{template}.txt").read_text(encoding="utf-8") for path, template in _FILES.items()}
    found = {path.replace("NAME", name): text.replace("mydevice", name) for path, text in texts.items()}
    return found, [line.replace("NAME", name) for line in NEXT]


def _check_name(name: str) -> None:
    """Refuse a name that torch cannot give to a device.

    Raises:
        OpschemaError: torch has it already, or it is not one word in lower case.
    """
    operators = {operator.partition(".")[0] for operator in ever_operators()}
    if not (name.isidentifier() and name.isascii() and name == name.lower()) or keyword.iskeyword(name):
        raise OpschemaError(f"`{name}` cannot be the name of a device: it is a word in lower case, such as `mydevice`")
    if name in operators:
        raise OpschemaError(f"`{name}` cannot be the name of a device: torch.{name} is a function")
    if name in _TAKEN or name in sys.stdlib_module_names:
        raise OpschemaError(f"`{name}` cannot be the name of a device: it is taken")
