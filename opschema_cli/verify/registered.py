"""Operators of torch.library in a worker: the imports of a target register them, and ``torch.ops`` calls them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from keyword import iskeyword
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch._ops import OpOverload

from opschema_cli.phrases import listed
from opschema_cli.verify import backends
from opschema_cli.verify.loading import AbsentError, RefusedError, import_module, import_op, imported_names, see_tree
from opschema_cli.verify.model import Target

_EXTENSIONS = (".so", ".pyd", ".dylib")


def import_target(target: Target) -> Callable[..., object]:
    """The class, function or operator that a target names.

    Raises:
        RefusedError: it is not there, it comes from another tree, or a module of others is not installed.
        Exception: whatever an import raises.
    """
    see_tree(target)
    return import_operator(target) if target.operator else import_op(target)


def import_operator(target: Target) -> Callable[..., object]:
    """The operator of a target as a function whose signature is the operator's schema; ``overload`` is the operator itself.

    Raises:
        AbsentError: nothing that is imported registers it, or its kernel for a backend.
        RefusedError: it comes from another tree.
        Exception: whatever an import raises.
    """
    for item in (*target.imports, *(target.cuda_imports if torch.cuda.is_available() else ())):
        _import_extra(item, target)
    module = import_module(target) if target.module else None
    overload = find_operator(target.operator)
    if overload is None and target.compiling:
        _compile(module, target)
        overload = find_operator(target.operator)
    if overload is None:
        imported = imported_names(target)
        after = f"importing {listed(imported)}" if imported else "importing nothing"
        raise AbsentError(f"{after} does not register it")
    return as_function(overload, on_backend=target.backend)


def _compile(module: object, target: Target) -> None:
    """Call the functions of a module that compile the operator of a target, until it is registered.

    Raises:
        Exception: what the first of them raised, if it is not registered then.
    """
    errors: list[Exception] = []
    for name in target.compiling:
        try:
            getattr(module, name)()
        except Exception as error:  # another one may be for this device
            errors.append(error)
        if find_operator(target.operator) is not None:
            return
    if errors:
        raise errors[0]


def find_operator(name: str) -> OpOverload | None:
    """The registered operator ``namespace::name`` or ``namespace::name.overload``; without an overload the default or only one."""
    namespace, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), base, None)
    if packet is None:
        return None
    known = packet.overloads()
    chosen = overload or ("default" if "default" in known else known[0] if len(known) == 1 else "")
    return getattr(packet, chosen) if chosen in known else None


def as_function(overload: OpOverload, *, on_backend: bool = False) -> Callable[..., object]:
    """A function that calls an operator, on a backend's device if that is wanted, with a signature.

    Raises:
        AbsentError: the backend has no kernel for it, or no memory.
    """
    function = backends.on_backend(overload) if on_backend else overload

    def call(*args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = str(overload)
    call.__signature__ = _signature(overload._schema)  # type: ignore[attr-defined]
    call.on_backend = on_backend  # type: ignore[attr-defined]
    call.overload = overload  # type: ignore[attr-defined]
    return call


def _signature(schema: torch.FunctionSchema) -> Signature:
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return Signature(
        [
            _parameter(
                argument.name,
                kinds[argument.kwarg_only],
                argument.default_value if argument.has_default_value() else Parameter.empty,
            )
            for argument in schema.arguments
        ]
    )


def _parameter(name: str, kind: Any, default: object) -> Parameter:
    """A parameter that may have the name of a keyword, as in ``aten::uniform_(Tensor(a!) self, float from=0., ...)``."""
    if not iskeyword(name):
        return Parameter(name, kind, default=default)
    parameter = Parameter(f"{name}_", kind, default=default)
    parameter._name = name  # type: ignore[attr-defined]
    return parameter


def _import_extra(item: str, target: Target) -> None:
    """Import an item that the user named: a file or folder of extensions, relative to the tree, or a module. For a package both are
    done, because its code may do more than load the extensions.

    Raises:
        RefusedError: it is not there, or no extension is in the folder.
        Exception: whatever the import raises.
    """
    place = Path(target.root, item)
    is_package = item.isidentifier() and (place / "__init__.py").is_file()
    if is_package:
        import_module(msgspec.structs.replace(target, module=item))
    if place.exists():
        found = sorted(_extensions(place))
        if not found and not is_package:
            raise RefusedError(f"there is no built extension in {place}")
        for path in found:
            torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
        return
    if os.sep in item or item.endswith(_EXTENSIONS):
        raise RefusedError(f"there is no {place}: build the extension there, or name another folder with --import")
    import_module(msgspec.structs.replace(target, module=item))


def _extensions(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    yield from (path for path in place.rglob("*") if path.suffix in _EXTENSIONS and path.is_file())
