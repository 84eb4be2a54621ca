"""Manifests of TileOPs' kind, observed by what reads and runs them.

:func:`rows`: PyYAML loads the manifest, and torch runs the op on each workload row and dtype. Probes and levels:

- ``FILE loads``, with PyYAML, and ``FILE loads strictly``, with ruamel.yaml, which refuses a key that is given twice.
- ``OP is found``: the class is defined in ``source.op``. ``OP KEY PATH``: another path of ``source``; *wrong* if it is
  listed twice.
- ``OP defaults``: *wrong* if a declared default is not a value of the declared type.
- ``OP labels``: *wrong* if a row's label is not text. ``OP combinations``: *wrong* if one is listed twice.
- ``OP takes PARAM=None``, where the declared type admits None.
- ``OP without PARAM``: *wrong* if the constructor does without a parameter that the manifest requires.
- ``OP PARAM by position`` / ``by name``: whether the constructor takes it as the manifest says.
- ``OP row SHAPES DTYPE``: constructor and call. *Wrong* if the result without the declared defaults is not that with them, if an
  output has not the declared dtype, if a shape rule does not hold or gives no truth value, or if the row is listed twice.

:func:`validator`: TileOPs' own `validate_manifest.py`, from a checkout. ``FILE has at most N errors of CHECK``, for each check that
it comes to.
"""

from __future__ import annotations

import collections
import ctypes
import hashlib
import importlib
import itertools
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from opschema_cli.proof import Files, Observation, Seen
from tests.proofs.processes import failure, in_folder, serve
from tests.proofs.records import ask

_COUNTED = 8
"""Errors of one check that are counted, so that one that is cured among others shows."""

VALIDATOR = "tileops-52dbc086/scripts/validate_manifest.py"
"""The validator's path in the corpus."""


def rows(workspaces: Sequence[Files]) -> list[Observation]:
    """The results of PyYAML and torch for manifests and their ops; see :data:`opschema_cli.proof.Oracle`."""
    return ask("tests.proofs.tileops_oracle", workspaces)


def validator(workspaces: Sequence[Files]) -> list[Observation]:
    """The errors that TileOPs' own validator reports."""
    return ask("tests.proofs.tileops_oracle", workspaces, str(Path(os.environ["OPSCHEMA_CORPUS"], VALIDATOR)))


# --- in the forked process: PyYAML and torch


def examine(root: Path, files: Mapping[str, str]) -> dict[str, Seen]:
    """The outcomes of one workspace under :func:`rows`."""
    import yaml

    sys.path.insert(0, str(root))
    found: dict[str, Seen] = {}
    for path in sorted(path for path in files if path.endswith(".yaml")):
        try:
            entries = yaml.load((root / path).read_bytes(), yaml.SafeLoader)
        except Exception as error:
            found[f"{path} loads"] = failure(error)
            continue
        found[f"{path} loads"] = Seen("right")
        found[f"{path} loads strictly"] = _strictly((root / path).read_bytes())
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            try:
                found |= dict(_Op(root, str(name), entry).outcomes())
            except Exception as error:  # an entry of another form
                found[f"{name} can be read"] = failure(error)
    return found


def _strictly(data: bytes) -> Seen:
    from ruamel.yaml import YAML

    try:
        YAML(typ="safe", pure=True).load(data)
    except Exception as error:
        return failure(error)
    return Seen("right")


class _Op:
    """One entry of a manifest, and the class that implements it."""

    def __init__(self, root: Path, name: str, entry: dict[str, Any]) -> None:
        self.root = root
        self.name = name
        self.entry = entry
        self.signature = entry["signature"]
        self.params: dict[str, dict[str, Any]] = self.signature.get("params") or {}
        self.inputs: dict[str, dict[str, Any]] = self.signature["inputs"] or {}

    @cached_property
    def cls(self) -> Any:
        path = self.entry["source"]["op"]
        assert (self.root / path).is_file(), f"{path} is not a file"
        module = importlib.import_module(path[: -len(".py")].replace("/", "."))
        cls = getattr(module, self.name)
        assert cls.__module__ == module.__name__, f"{path} imports the class"
        if "default_kernel_map" in cls.__abstractmethods__:
            cls.default_kernel_map = {"example": _Plus}
        cls.__abstractmethods__ = frozenset()  # examples leave out what they are not about
        return cls

    def outcomes(self) -> Iterator[tuple[str, Seen]]:
        yield from self._sources()
        yield from self._values()
        if self.entry.get("status") != "implemented":
            yield f"{self.name} status", Seen("refused", f"{self.entry.get('status')} is not known")
        for param, spec in self.params.items():
            yield from self._param(param, spec)
        listed = collections.Counter(json.dumps(row, default=str) for row in self.entry.get("workloads") or ())
        for row in self.entry.get("workloads") or ():
            yield from self._row(row, twice=listed[json.dumps(row, default=str)] > 1)

    def _sources(self) -> Iterator[tuple[str, Seen]]:
        source = self.entry["source"]
        try:
            assert self.cls
            yield f"{self.name} is found", Seen("right")
        except Exception as error:
            yield f"{self.name} is found", failure(error)
        for key in ("kernel", "test", "bench"):
            paths = source.get(key) or ()
            paths = [paths] if isinstance(paths, str) else list(paths)
            for path in paths:
                level = Seen("right") if (self.root / path).is_file() else Seen("refused", "no such file")
                if paths.count(path) > 1:
                    level = Seen("wrong", "it is listed twice")
                yield f"{self.name} {key} {path}", level

    def _values(self) -> Iterator[tuple[str, Seen]]:
        """Values that nothing refuses, and that are not what they should be."""
        specs = [spec for spec in self.params.values() if "default" in spec]
        wrong = [spec for spec in specs if not _fits(spec["default"], _type_of(spec["type"]))]
        yield f"{self.name} defaults", _wrong(wrong)
        labels = [row.get("label", "") for row in self.entry.get("workloads") or ()]
        yield f"{self.name} labels", _wrong([label for label in labels if not isinstance(label, str)])
        listed = [self._resolved(combo) for combo in self.signature.get("dtype_combos") or ()]
        yield f"{self.name} combinations", _wrong([combo for combo in listed if listed.count(combo) > 1])

    def _resolved(self, combo: Mapping[str, str]) -> dict[str, str]:
        """A row of ``dtype_combos`` with what ``same_as()`` stands for."""
        return {name: combo.get(str(value)[len("same_as(") : -1], str(value)) for name, value in combo.items()}

    def _param(self, param: str, spec: dict[str, Any]) -> Iterator[tuple[str, Seen]]:
        default = spec.get("default", _ABSENT)
        try:
            kind = _type_of(spec["type"])
        except Exception as error:
            yield f"{self.name} {param} type", failure(error)
            return
        if _fits(None, kind) and kind is not object:
            yield f"{self.name} takes {param}=None", self._constructs({param: None})
        without = self._constructs({}, leave_out=param)
        if default is _ABSENT:
            done = Seen("wrong", f"{param} has a default") if without.level == "right" else Seen("right")
            yield f"{self.name} without {param}", done
        else:
            yield f"{self.name} without {param}", without
        by_name = self._constructs({param: default if default is not _ABSENT else _example(kind)})
        yield f"{self.name} {param} by name", by_name
        if spec.get("kw_only"):
            by_place = self._constructs_by_place(param)
            level = Seen("wrong", "it is taken by position, too") if by_place.level == "right" else Seen("right")
            yield f"{self.name} {param} by name only", level
        else:
            yield f"{self.name} {param} by position", self._constructs_by_place(param)

    def _constructs(self, values: Mapping[str, object], leave_out: str = "") -> Seen:
        required = {
            name: spec.get("default", _example(_type_of(spec["type"])))
            for name, spec in self.params.items()
            if name not in values and "default" not in spec and name != leave_out
        }
        try:
            self.cls(**required, **values)
        except Exception as error:
            return failure(error)
        return Seen("right")

    def _constructs_by_place(self, param: str) -> Seen:
        before = list(itertools.takewhile(lambda name: name != param, self.params))
        if any(self.params[name].get("kw_only") for name in before):
            before = []
        values = [
            self.params[name].get("default", _example(_type_of(self.params[name]["type"]))) for name in [*before, param]
        ]
        try:
            self.cls(*values)
        except Exception as error:
            return failure(error)
        return Seen("right")

    def _row(self, row: dict[str, Any], *, twice: bool) -> Iterator[tuple[str, Seen]]:
        shapes = {name: tuple(row[f"{name}_shape"]) for name in self.inputs if f"{name}_shape" in row}
        given = {name: row[name] for name in self.params if name in row}
        title = f"{self.name} row {json.dumps([shapes, given])}"
        missing = [name for name, spec in self.inputs.items() if name not in shapes and not spec.get("optional")]
        for dtype in row.get("dtypes") or ():
            if missing:
                yield f"{title} {dtype}", Seen("refused", f"no shape of {missing}")
            elif twice:
                yield f"{title} {dtype}", Seen("wrong", "it is measured twice")
            else:
                yield f"{title} {dtype}", self._run(shapes, given, str(dtype))

    def _run(self, shapes: Mapping[str, tuple[int, ...]], given: Mapping[str, object], dtype: str) -> Seen:
        import torch

        try:
            dtypes = {name: self._dtype(name, dtype) for name in self.inputs}
            tensors = {name: _tensor(shape, getattr(torch, dtypes[name])) for name, shape in shapes.items()}
            short = _results(self.cls(**given)(**tensors))
            defaults = {name: spec["default"] for name, spec in self.params.items() if "default" in spec}
            full = _results(self.cls(**{**defaults, **given})(**tensors))
        except Exception as error:
            return failure(error)
        if _digest(short) != _digest(full):
            return Seen("wrong", "the declared defaults give another result than no arguments")
        try:
            wrong = next(self._broken(tensors, {**defaults, **given}, short, dtype), "")
        except Exception as error:
            return failure(error)
        return Seen("wrong", wrong) if wrong else Seen("right", result=_digest(short))

    def _dtype(self, name: str, dtype: str) -> str:
        """The dtype of a tensor in a cell: its first declared one where the row's is not among them."""
        tensors = {**self.inputs, **self.signature["outputs"]}
        declared = str(tensors[name]["dtype"])
        same = re.fullmatch(r"same_as\((\w+)\)", declared)
        if same:
            return self._dtype(same.group(1), dtype)
        options = [item.strip() for item in declared.split("|")]
        return dtype if dtype in options else options[0]

    def _broken(
        self, tensors: Mapping[str, Any], params: Mapping[str, Any], outputs: Sequence[Any], dtype: str
    ) -> Iterator[str]:
        names = {**tensors, **params, **dict(zip(self.signature["outputs"], outputs, strict=True))}
        for name, output in zip(self.signature["outputs"], outputs, strict=True):
            if str(output.dtype) != f"torch.{self._dtype(name, dtype)}":
                yield f"{name} is of {output.dtype}, and not of the declared dtype"
        for rule in self.signature.get("shape_rules") or ():
            holds = eval(rule, {"len": len, "tuple": tuple, "all": all, "range": range}, names)
            if holds is not True:
                yield f"the rule {rule} gives {holds!r}"


_ABSENT = object()


def _wrong(found: Sequence[object]) -> Seen:
    return Seen("wrong", repr(found)[:300]) if found else Seen("right")


class _Plus:
    """The kernel of examples that leave theirs out."""

    def __call__(self, x: Any, *others: Any) -> Any:
        return x + sum(item for item in others if isinstance(item, (int, float)))


def _type_of(text: str) -> Any:
    import collections.abc

    import torch

    names = {"torch": torch, "dtype": torch.dtype, "Callable": collections.abc.Callable, "Sequence": Sequence}
    return eval(str(text), names)


def _fits(value: object, kind: Any) -> bool:
    import types
    import typing

    import torch

    if kind is None:
        return value is None
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return any(_fits(value, item) for item in typing.get_args(kind))
    if kind is type(None):
        return value is None
    if kind is torch.dtype:
        return isinstance(getattr(torch, str(value), None), torch.dtype)
    if kind is float:
        return isinstance(value, (int, float))
    if kind is int:
        return isinstance(value, int)
    origin = typing.get_origin(kind) or kind
    return isinstance(value, origin) or (origin is tuple and isinstance(value, list))


def _example(kind: Any) -> object:
    return next((value for value in (1, 0.5, True, "mean", [1], None) if _fits(value, kind)), None)


def _tensor(shape: Sequence[int], dtype: Any) -> Any:
    import math

    import torch

    return (torch.arange(math.prod(shape)) % 7 + 1).reshape(tuple(shape)).to(dtype)


def _results(output: Any) -> list[Any]:
    return list(output) if isinstance(output, (tuple, list)) else [output]


def _digest(outputs: Sequence[Any]) -> str:
    found = hashlib.sha256()
    for item in outputs:
        dense = item.contiguous()
        found.update(f"{item.dtype}{tuple(item.shape)}".encode())
        found.update(ctypes.string_at(dense.data_ptr(), dense.nbytes) if dense.nbytes else b"")
    return found.hexdigest()[:16]


# --- in the forked process: TileOPs' validator


def validate(root: Path, files: Mapping[str, str]) -> dict[str, Seen]:
    """The outcomes of one workspace under :func:`validator`."""
    import validate_manifest as peer

    sys.path.insert(0, str(root))
    (root / "src").symlink_to(root)  # where the validator looks for ops and kernels
    found: dict[str, Seen] = {}
    for path in sorted(path for path in files if path.endswith(".yaml")):
        try:
            errors, _ = peer.validate_manifest(manifest_path=root / path, repo_root=root, strict_parity=True)
        except Exception as error:
            found[f"{path} is validated"] = failure(error)
            continue
        found[f"{path} is validated"] = Seen("right")
        # The ops of examples validate nothing, which shows only where the validator comes to them.
        errors = [error for error in errors if "_validate_dtypes accepts" not in error]
        tags = [match.group(1) if (match := re.match(r"\[(\w+)\]", error)) else "other" for error in errors]
        reached = (
            ("schema",) if "schema" in tags else ("schema", "signature", "ctor", "shape", "dtype", "bench", "other")
        )
        for tag in {*reached, *tags}:
            said = [error for error, own in zip(errors, tags, strict=True) if own == tag]
            for most in range(_COUNTED):
                level = Seen("right") if len(said) <= most else Seen("refused", "; ".join(said)[:300])
                found[f"{path} has at most {most} errors of {tag}"] = level
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.path.insert(0, str(Path(sys.argv[1]).parent))
        import torch
        import validate_manifest
        from tileops.ops.op_base import Op  # once for all workspaces: it imports tilelang

        assert Op
        assert validate_manifest
        torch.set_num_threads(1)
        serve(in_folder(validate))
    else:
        import ruamel.yaml
        import torch
        import yaml

        torch.set_num_threads(1)
        assert ruamel.yaml
        assert yaml
        serve(in_folder(examine))
