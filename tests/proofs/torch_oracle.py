"""What torch makes of a tree of Python modules that register operators: each is imported in a process of its own, and every
operator that it registers is called, on each device that has a kernel, with each argument set to other values.

Probes and their levels:

- ``import``: whether the modules can be imported; if not, nothing else is tried.
- ``NAME``: the operator is defined. ``PATH, schema N``: torch's parser takes a schema of C++.
- ``NAME on KEY``: the call with required arguments only. ``NAME on KEY, a changed to value 1``: the same with another value of
  ``a``; *wrong* if no value changes the result, since nothing reads the argument then. In both, *wrong* if the call gives another
  result than the function does that is registered when it is given every argument by name, the schema's defaults included.
- ``... in the schema test of opcheck``: *wrong* if the operator writes or returns what its schema does not say.
- ``... under FakeTensorMode``: *wrong* if number, shapes, dtypes or devices are not those of the real call.
- ``... under vmap``: for operators with a vmap rule; *wrong* if it differs from the calls one by one.

Run as a module it reads workspaces (JSON, texts by path) from stdin and answers a line each.
"""

from __future__ import annotations

import ast
import importlib
import logging
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from opschema_cli.proof import Files, Observation, Seen
from tests.proofs import processes, records
from tests.proofs.processes import write_files


def observe(workspaces: Sequence[Files]) -> list[Observation]:
    """The oracle, in a process of its own; see :data:`opschema_cli.proof.Oracle`."""
    return records.ask("tests.proofs.torch_oracle", workspaces)


# --- in the forked process


def examine(files: Files) -> dict[str, Seen]:
    """The outcomes of one workspace."""
    import torch

    from tests.proofs.torch_calls import OperatorCalls, failure

    functions = _record_registrations()
    known = set(torch._C._dispatch_get_all_op_names())
    found: dict[str, Seen] = dict(_schemas(files))
    try:
        import_all(files)
    except Exception as error:
        return found | {"import": failure(error)}
    found["import"] = Seen("right")
    for name in sorted(set(torch._C._dispatch_get_all_op_names()) - known):
        found |= dict(OperatorCalls(name, functions).outcomes())
    return found


def import_all(files: Files) -> None:
    """Write a workspace to a folder and import its Python modules."""
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), files)
        sys.path.insert(0, folder)
        for path in sorted(files):
            if path.endswith(".py"):
                importlib.import_module(path[: -len(".py")].replace("/", ".").removesuffix(".__init__"))


def _schemas(files: Files) -> Iterator[tuple[str, Seen]]:
    """Whether torch's parser takes the schemas of ``m.def("...")``."""
    import torch

    from tests.proofs.torch_calls import failure

    for path, text in files.items():
        written = re.findall(r'\.def\(\s*("(?:[^"\\\n]|\\.)*")', text) if path.endswith(".cpp") else []
        for number, literal in enumerate(written, 1):
            try:
                torch._C.parse_schema(ast.literal_eval(literal))
            except Exception as error:
                yield f"{path}, schema {number}", failure(error)
            else:
                yield f"{path}, schema {number}", Seen("right")


def _record_registrations() -> dict[tuple[str, str], Callable[..., Any]]:
    """The functions that are registered from now on, by operator and dispatch key."""
    import torch
    from torch._library.custom_ops import CustomOpDef

    found: dict[tuple[str, str], Callable[..., Any]] = {}
    impl, kernel, vmap = torch.library.Library.impl, CustomOpDef.register_kernel, CustomOpDef.register_vmap

    def record_impl(self: Any, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> Any:
        done = impl(self, op_name, fn, dispatch_key, **options)
        name = op_name if isinstance(op_name, str) else op_name._schema.name + "." + op_name._schema.overload_name
        name = name if "::" in name else f"{self.ns}::{name}"
        key = dispatch_key or self.dispatch_key
        if key == "FuncTorchBatched" or not options.get("with_keyset"):
            found.setdefault((name.rstrip(".").removesuffix(".default"), key), fn)
        return done

    def record_kernel(self: Any, device_types: Any, fn: Any = None, /) -> Any:
        if fn is None:
            return lambda function: record_kernel(self, device_types, function)
        devices = [device_types] if isinstance(device_types, str) else device_types
        for key in ["CompositeExplicitAutograd"] if devices is None else map(_key, devices):
            found[self._qualname, key] = fn
        return kernel(self, device_types, fn)

    def record_vmap(self: Any, func: Any = None) -> Any:
        found[self._qualname, "FuncTorchBatched"] = func
        return vmap(self, func)

    torch.library.Library.impl = record_impl  # type: ignore[method-assign, assignment]
    CustomOpDef.register_kernel = record_kernel  # type: ignore[method-assign, assignment]
    CustomOpDef.register_vmap = record_vmap  # type: ignore[method-assign, assignment]
    return found


def _key(device: str) -> str:
    import torch

    try:
        return str(torch._C._dispatch_key_for_device(device))
    except Exception:
        return device


# --- the process that forks


def warm() -> None:
    """Load what the workspaces need before the forks, but for autograd's engine, whose threads do not survive a fork."""
    import torch
    import torch._functorch.pyfunctorch
    from torch._subclasses.fake_tensor import FakeTensorMode

    importlib.import_module("tests.proofs.torch_calls")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    mode = FakeTensorMode()
    mode.from_tensor(torch.ones(2)).new_empty((2,))
    torch.vmap(lambda x: x + 1)(torch.ones(2))


if __name__ == "__main__":
    warm()
    processes.serve(examine)
