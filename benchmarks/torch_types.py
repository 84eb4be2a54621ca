"""Writes which types ``infer_schema`` takes in each release of torch: every type is put to the release's own function.

    python -m benchmarks.torch_types corpus-folder   # the releases in the corpus; writes the table of the pack torchlib
    python -m benchmarks.torch_types                 # the torch that this interpreter has; prints its types

A release's ``infer_schema.py`` runs beside the installed torch, so that no other release has to be installed: it needs
nothing of torch but the types that it compares. Only the module that knows registered classes is replaced, by one that
knows one class.
"""

from __future__ import annotations

import collections.abc
import importlib.util
import json
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import torch

TABLE = Path(__file__).parents[1] / "rules/opschema_rules/torchlib/types.json"

Table = dict[str, dict[str, str]]
"""The schema type of each parameter's and each return's type."""


class Opaque:
    """A class that is registered with torch as opaque."""


def _bases() -> dict[str, object]:
    """The types that lists and optionals are made of, by how the table writes them."""
    found: dict[str, object] = {
        "Tensor": torch.Tensor,
        "int": int,
        "float": float,
        "bool": bool,
        "str": str,
        "Number": torch.types.Number,
        "dtype": torch.dtype,
        "device": torch.device,
        "complex": complex,
        "layout": torch.layout,
        "memory_format": torch.memory_format,
        "SymInt": torch.SymInt,
        "Opaque": Opaque,
    }
    distributed = getattr(torch.distributed, "distributed_c10d", None)
    group = getattr(distributed, "GroupName", None)
    return {**found, "GroupName": group} if group is not None else found


_LISTS: dict[str, Callable[[object], object]] = {
    "List": lambda item: typing.List[item],  # type: ignore[valid-type]  # noqa: UP006
    "Sequence": lambda item: typing.Sequence[item],  # type: ignore[valid-type]
    "list": lambda item: types.GenericAlias(list, (item,)),
    "abc.Sequence": lambda item: types.GenericAlias(collections.abc.Sequence, (item,)),
}


def _forms() -> Iterator[tuple[str, object]]:
    """Every type that is tried, by how the table writes it."""
    for name, base in _bases().items():
        optional = typing.Optional[base]  # type: ignore[valid-type]  # noqa: UP045 - what is compared
        yield name, base
        yield f"Optional[{name}]", optional
        for word, make in _LISTS.items():
            for inner, item in ((name, base), (f"Optional[{name}]", optional)):
                yield f"{word}[{inner}]", make(item)
                yield f"Optional[{word}[{inner}]]", typing.Optional[make(item)]  # noqa: UP045


def probe(infer_schema: Callable[..., str]) -> Table:
    """The types that an ``infer_schema`` takes."""
    parameters = {name: _asked(infer_schema, type_, None) for name, type_ in _forms()}
    returns = {name: _asked(infer_schema, torch.Tensor, type_) for name, type_ in _forms()}
    parameters["list['Tensor']"] = _asked(infer_schema, types.GenericAlias(list, ("torch.Tensor",)), None)
    return {
        "parameters": {name: schema[1:].partition(" x)")[0] for name, schema in parameters.items() if schema},
        "returns": {name: schema.rpartition(" -> ")[2] for name, schema in returns.items() if schema},
    }


def _asked(infer_schema: Callable[..., str], parameter: object, returned: object) -> str:
    """The schema of a function with one parameter; empty where it is refused."""

    def function(x):  # type: ignore[no-untyped-def]
        ...

    function.__annotations__ = {"x": parameter, "return": returned}
    try:
        return infer_schema(function, mutates_args=())
    except (ValueError, AttributeError):  # the latter of 2.5, for a type without `__origin__`
        return ""


def release_function(folder: Path) -> Callable[..., str]:
    """The ``infer_schema`` of the torch whose files lie in ``folder``."""
    top = f"torch_{folder.name}".replace(".", "_").replace("-", "_")
    parent, package = types.ModuleType(top), types.ModuleType(f"{top}._library")
    vars(parent).update({name: getattr(torch, name) for name in ("device", "dtype", "Tensor", "types")})
    parent.__path__, package.__path__ = [], []
    known = types.ModuleType(f"{top}._library.opaque_object")
    info = types.SimpleNamespace(class_name="Opaque")
    for name in ("is_opaque_type", "is_opaque_reference_type", "is_custom_class", "is_opaque_symbolic_type"):
        setattr(known, name, lambda type_: type_ is Opaque)
    vars(known).update(_OPAQUE_TYPES={Opaque: info}, _resolve_opaque_type_info=lambda type_: info)
    sys.modules.update({item.__name__: item for item in (parent, package, known)})
    spec = importlib.util.spec_from_file_location(
        f"{top}._library.infer_schema", folder / "torch/_library/infer_schema.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[..., str] = module.infer_schema
    return found


def changes(tables: Mapping[str, Table]) -> Iterator[tuple[str, dict[str, dict[str, str | None]]]]:
    """Types that each release accepts differently from the release before; None for those that it rejects."""
    before: Table = {"parameters": {}, "returns": {}}
    for release, table in tables.items():
        found: dict[str, dict[str, str | None]] = {}
        for part, now in table.items():
            names = sorted({*now, *before[part]})
            found[part] = {name: now.get(name) for name in names if now.get(name) != before[part].get(name)}
        yield release, {part: items for part, items in found.items() if items}
        before = table


def _text(tables: Mapping[str, Table]) -> str:
    """The table as JSON, a type a line."""
    return json.dumps(dict(changes(tables)), indent=1) + "\n"


def write(corpus: Path) -> None:
    """Write the table of the releases in the corpus."""
    folders = {folder.name.removeprefix("torch-"): folder for folder in corpus.glob("aten/torch-*")}
    releases = sorted(folders, key=lambda release: tuple(map(int, release.split("."))))
    TABLE.write_text(_text({item: probe(release_function(folders[item])) for item in releases}), encoding="utf-8")


def main() -> None:
    """Write the table of the corpus, or print that of the installed torch."""
    if len(sys.argv) == 1:
        print(json.dumps(probe(torch.library.infer_schema), indent=1))
    else:
        write(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
