"""What torch makes of a tree of Python modules that register operators: each is imported in a process of its own, and every
operator that it registers is called, for each device that has a kernel, with each argument set to another value.

Probes and their levels:

- ``import``: whether the modules can be imported.
- ``NAME on KEY``: the call with required arguments only. ``NAME on KEY, a``: the same with another value of ``a``; *wrong* if
  no value changes the result, since nothing reads the argument then. In both, *wrong* if the call gives another result than
  the function does that is registered when it is given every argument, the schema's defaults included.
- ``... fake``: the call under FakeTensorMode; *wrong* if number, shapes, dtypes or devices are not those of the real call.
- ``... vmap``: the call under `torch.vmap`; *wrong* if it differs from the calls one by one.
- ``NAME opcheck``: `torch.library.opcheck` (schema and fake).

Run as a script it reads workspaces (JSON, texts by path) from stdin and answers a line each.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from opschema_cli.proof import Files, Observation, Seen

KEYS = ("CPU", "CUDA", "XPU", "PrivateUse1")
"""The devices whose kernels are called, with tensors of the CPU: they are Python functions."""


def observe(workspaces: Sequence[Files]) -> list[Observation]:
    """The oracle, in a process of its own; see :data:`opschema_cli.proof.Oracle`.

    Raises:
        subprocess.CalledProcessError: the oracle itself fails.
        subprocess.TimeoutExpired: a workspace does not end.
    """
    data = msgspec.json.encode([dict(files) for files in workspaces])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, __file__], input=data, stdout=subprocess.PIPE, check=True, timeout=1200, env=environment
    )
    return [msgspec.json.decode(line, type=dict[str, Seen]) for line in done.stdout.splitlines()]


def _failure(error: BaseException) -> Seen:
    return Seen("refused", f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}"[:300])


# --- in the forked process


def examine(files: Files) -> dict[str, Seen]:
    """The outcomes of one workspace."""
    import torch

    registered = _record_registrations()
    known = set(torch._C._dispatch_get_all_op_names())
    found: dict[str, Seen] = {}
    try:
        _import(files)
    except Exception as error:
        found["import"] = _failure(error)
    else:
        found["import"] = Seen("right")
    for name in sorted(set(torch._C._dispatch_get_all_op_names()) - known):
        found |= _Operator(name, registered).outcomes()
    return found


def _import(files: Files) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode())
        sys.path.insert(0, folder)
        for path in sorted(files):
            if path.endswith(".py"):
                importlib.import_module(path[: -len(".py")].replace("/", ".").removesuffix(".__init__"))


def _record_registrations() -> dict[tuple[str, str], Callable[..., Any]]:
    """The functions that are registered from now on, by operator and dispatch key."""
    import torch

    found: dict[tuple[str, str], Callable[..., Any]] = {}
    original = torch.library.Library.impl

    def impl(self: Any, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> Any:
        name = op_name if isinstance(op_name, str) else op_name._schema.name + "." + op_name._schema.overload_name
        name = name if "::" in name else f"{self.ns}::{name}"
        done = original(self, op_name, fn, dispatch_key, **options)
        found[name.rstrip(".").removesuffix(".default"), dispatch_key or self.dispatch_key] = fn
        return done

    torch.library.Library.impl = impl  # type: ignore[method-assign, assignment]
    return found


class _Operator:
    """One registered operator and its calls."""

    def __init__(self, name: str, registered: Mapping[tuple[str, str], Callable[..., Any]]) -> None:
        import torch

        qualname, _, overload = name.partition(".")
        namespace, _, short = qualname.partition("::")
        self.name = name
        self.op = getattr(getattr(getattr(torch.ops, namespace), short), overload or "default")
        self.schema = self.op._schema
        self.registered = registered

    def outcomes(self) -> dict[str, Seen]:
        import torch

        found: dict[str, Seen] = {}
        for key in KEYS:
            if torch._C._dispatch_has_kernel_for_dispatch_key(self.name, key):
                found |= dict(self._of_key(key))
        found |= dict(self._transforms())
        return found

    def _of_key(self, key: str) -> Iterator[tuple[str, Seen]]:
        title = f"{self.name} on {key}"
        base = self._call(key, {})
        yield title, base
        for argument in self.schema.arguments:
            values = _values(argument)[1:] or _values(argument)
            seen = [self._call(key, {argument.name: value}) for value in values]
            accepted = [item for item in seen if item.level == "right"]
            if len(accepted) < len(seen):
                yield f"{title}, {argument.name}", next(item for item in seen if item.level != "right")
            elif base.level == "right" and all(item.result == base.result for item in seen):
                yield f"{title}, {argument.name}", Seen("wrong", f"nothing depends on `{argument.name}`")
            else:
                yield f"{title}, {argument.name}", seen[0]

    def _call(self, key: str, changed: Mapping[str, object]) -> Seen:
        """The dispatcher's call of a kernel, held against a call of its function with every argument."""
        import torch

        args, kwargs = self._arguments(changed)
        try:
            result = _digest(self.op._op_dk(getattr(torch._C.DispatchKey, key), *args, **kwargs))
        except Exception as error:
            return _failure(error)
        explicit = self._explicit(key, changed)
        if explicit not in ("", result):
            return Seen("wrong", "with every argument passed the function gives another result", result)
        return Seen("right", result=result)

    def _explicit(self, key: str, changed: Mapping[str, object]) -> str:
        function = self.registered.get((self.name.removesuffix(".default"), key))
        if function is None:
            return ""
        args, kwargs = self._arguments(changed, every=True)
        try:
            return _digest(function(*args, **kwargs))
        except Exception:
            return ""

    def _transforms(self) -> Iterator[tuple[str, Seen]]:
        """Fakes and vmap rules, with the defaults and with each argument changed."""
        for argument in (None, *self.schema.arguments):
            title = f"{self.name}, {argument.name if argument else 'defaults'}"
            values = [None] if argument is None else _values(argument)[1:]
            for number, value in enumerate(values):
                changed = {} if argument is None else {argument.name: value}
                yield from self._fake(f"{title} {number} fake", changed)
                yield from self._vmap(f"{title} {number} vmap", changed)
        yield from self._opcheck()

    def _fake(self, title: str, changed: Mapping[str, object]) -> Iterator[tuple[str, Seen]]:
        from torch._subclasses.fake_tensor import FakeTensorMode

        args, kwargs = self._arguments(changed)
        try:
            real = _looks(self.op(*args, **kwargs))
        except Exception:
            return
        mode = FakeTensorMode()
        try:
            with mode:
                fake = _looks(
                    self.op(*_faked(args, mode), **dict(zip(kwargs, _faked(kwargs.values(), mode), strict=True)))
                )
        except Exception as error:
            yield title, _failure(error)
            return
        yield title, Seen("right", result=real) if fake == real else Seen("wrong", f"fake {fake}, real {real}")

    def _vmap(self, title: str, changed: Mapping[str, object]) -> Iterator[tuple[str, Seen]]:
        import torch

        args, kwargs = self._arguments(changed)
        if not args or not isinstance(args[0], torch.Tensor):
            return
        try:
            one_by_one = torch.stack([self.op(part, *args[1:], **kwargs) for part in args[0]])
        except Exception:
            return
        try:
            together = torch.vmap(lambda part: self.op(part, *args[1:], **kwargs))(args[0])
        except Exception as error:
            yield title, _failure(error)
            return
        same = _digest(together) == _digest(one_by_one)
        yield title, Seen("right", result=_digest(together)) if same else Seen("wrong", "not the calls one by one")

    def _opcheck(self) -> Iterator[tuple[str, Seen]]:
        import torch

        args, kwargs = self._arguments({})
        try:
            with torch.no_grad():
                self.op(*args, **kwargs)
        except Exception:
            return
        try:
            torch.library.opcheck(self.op, args, kwargs, test_utils=("test_schema", "test_faketensor"))
        except Exception as error:
            yield f"{self.name} opcheck", _failure(error)
            return
        yield f"{self.name} opcheck", Seen("right")

    def _arguments(self, changed: Mapping[str, object], *, every: bool = False) -> tuple[list[Any], dict[str, Any]]:
        """Arguments of a call: those without a default, those up to the last changed one, or all."""
        positional = [item for item in self.schema.arguments if not item.kwarg_only]
        last = max((n for n, item in enumerate(positional) if item.name in changed or every), default=-1)
        args = [
            self._value(item, changed) for n, item in enumerate(positional) if n <= last or not item.has_default_value()
        ]
        kwargs = {
            item.name: self._value(item, changed)
            for item in self.schema.arguments
            if item.kwarg_only and (every or item.name in changed or not item.has_default_value())
        }
        return args, kwargs

    def _value(self, argument: Any, changed: Mapping[str, object]) -> object:
        if argument.name in changed:
            return _copied(changed[argument.name])
        if argument.has_default_value():
            return argument.default_value
        return _values(argument)[0]


def _copied(value: object) -> object:
    import torch

    return value.clone() if isinstance(value, torch.Tensor) else value


def _values(argument: Any) -> list[Any]:
    """Values for an argument: the first to call with, the others to see whether anything depends on it."""
    import torch

    one = torch.arange(6, dtype=torch.float32).reshape(2, 3) + 1
    other = (torch.arange(6, dtype=torch.float32).reshape(2, 3) - 2) * 0.5
    by_type: dict[str, list[Any]] = {
        "Tensor": [one, other],
        "int": [2, 3, 1],
        "SymInt": [2, 3, 1],
        "float": [0.5, 1.5, 3.0],
        "number": [2, 3, 0.5],
        "bool": [False, True],
        "str": ["mean", "sum", "cpu"],
        "Device": [torch.device("cpu")],
        "ScalarType": [torch.float64, torch.float32, torch.int32],
        "int[]": [[2, 3], [1, 2], [3]],
        "List[int]": [[2, 3], [1, 2], [3]],
        "List[SymInt]": [[2, 3], [1, 2], [3]],
        "List[float]": [[0.5, 1.5], [2.0, 3.0]],
        "List[bool]": [[True, False], [False, True]],
        "List[Tensor]": [[one, other], [other]],
        "List[str]": [["mean"], ["sum"]],
    }
    kind = str(argument.real_type if hasattr(argument, "real_type") else argument.type)
    kind = "ScalarType" if kind == "ScalarType" or "dtype" in kind else kind
    if kind.startswith("Optional["):
        return [None, *by_type.get(kind[len("Optional[") : -1], [])]
    values = by_type.get(kind, [None])
    if argument.has_default_value():
        default = argument.default_value
        values = [default, *(value for value in values if not _is_same(value, default))]
    return values


def _is_same(one: object, other: object) -> bool:
    import torch

    if isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor):
        return one is other
    return bool(one == other)


def _faked(values: Any, mode: Any) -> list[Any]:
    import torch
    from torch.utils._pytree import tree_map

    return [
        tree_map(lambda item: mode.from_tensor(item) if isinstance(item, torch.Tensor) else item, value)
        for value in values
    ]


def _flat(output: object) -> list[object]:
    if isinstance(output, (tuple, list)):
        return [item for part in output for item in _flat(part)]
    return [output]


def _looks(output: object) -> str:
    import torch

    return str(
        [
            (tuple(item.shape), str(item.dtype), item.device.type) if isinstance(item, torch.Tensor) else type(item)
            for item in _flat(output)
        ]
    )


def _digest(output: object) -> str:
    import torch

    parts = [
        f"{item.dtype}{tuple(item.shape)}{item.tolist()}" if isinstance(item, torch.Tensor) else repr(item)
        for item in _flat(output)
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


# --- the process that forks


def _warm() -> None:
    """Load what the workspaces need before the forks, but for autograd's engine, whose threads do not survive a fork."""
    import torch
    import torch._functorch.pyfunctorch
    import torch.testing._internal.optests
    from torch._subclasses.fake_tensor import FakeTensorMode

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    mode = FakeTensorMode()
    mode.from_tensor(torch.ones(2)).new_empty((2,))
    gc.freeze()


def _answer(files: Files) -> bytes:
    """The outcomes of a workspace, from a fork; a process that dies is a refusal."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(2, 1)
        try:
            with os.fdopen(writer, "wb") as stream:
                stream.write(msgspec.json.encode(examine(files)))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    return data or msgspec.json.encode({"import": Seen("refused", "the process died")})


if __name__ == "__main__":
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=list[dict[str, str]])
    _warm()
    for item in given:
        sys.stdout.buffer.write(_answer(item) + b"\n")
