"""Imports an op from one side's tree, in a worker, and makes sure that it comes from there."""

from __future__ import annotations

import importlib
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from opcode import opmap
from pathlib import Path
from types import TracebackType

from opschema_cli.verify.model import Target

package_seconds: dict[str, float] = {}
"""Seconds that the first import of each package in this process took, with the packages around it, by name."""

_kept_paths: set[tuple[str, ...]] = set()
"""The places of trees for which the import path of this process is final."""

ITS_OWN = (RuntimeError, ValueError, TypeError, AssertionError)
"""Errors of an op that refuses the device or layout of tensors."""

_TORCH_CHECKS = ("_check_with", "_check_tensor_all_with")
"""Functions of torch in which ``torch._check`` and its kin raise."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


class RefusedError(Exception):
    """A cell cannot be run here; the message says why."""


class MissingPackageError(RefusedError):
    """A package that an op needs is not installed."""


class AbsentError(RefusedError):
    """The tree does not have the op: no module, no class or function of its name, or nothing registers it."""


class HarnessError(Exception):
    """The harness itself failed, not the op; the message says how."""


def import_op(target: Target) -> Callable[..., object]:
    """The class or function that a target names.

    Raises:
        RefusedError: it is not there, it comes from another tree, or a module of others is not installed.
        Exception: whatever the import raises.
    """
    see_tree(target)
    found = import_module(target)
    for part in target.name.split("."):
        if not hasattr(found, part):
            raise AbsentError(f"`{target.module}` has no `{target.name}` in {target.root}")
        found = getattr(found, part)
    if not callable(found):
        raise RefusedError(f"`{target.module}.{target.name}` is neither a class nor a function")
    return found


def import_module(target: Target) -> object:
    """The module of a target, from its tree.

    Raises:
        RefusedError: it is not there, it comes from another tree, or a module of others is not installed.
        Exception: whatever the import raises.
    """
    started = time.monotonic()
    try:
        for package in _packages(target.module):
            importlib.import_module(package)
            package_seconds.setdefault(package, time.monotonic() - started)
        found: object = importlib.import_module(target.module)
    except ModuleNotFoundError as error:
        raise _missing(error, target) from error
    _stays_in(target)
    return found


def _packages(module: str) -> Iterator[str]:
    """The packages around a module, the outermost first: the order in which Python imports them."""
    parts = module.split(".")[:-1]
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def see_tree(target: Target) -> None:
    """Put a tree before everything else that can be imported, here and in processes that are started from here."""
    places = _places(target)
    if tuple(sys.path[: len(places)]) == places or places in _kept_paths:
        return
    sys.path[:0] = places
    others = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([*places, *([others] if others else [])])


def keep_import_path(target: Target) -> None:
    """Leave the import path unchanged from now on, here and in forks, as packages of the tree may have added to it."""
    _kept_paths.add(_places(target))


def forget_start_folder() -> None:
    """Import nothing from the folder that this process was started in, where that is still the first place."""
    if not _kept_paths and sys.path and os.path.realpath(sys.path[0]) == os.getcwd():
        del sys.path[0]


def _places(target: Target) -> tuple[str, ...]:
    return tuple(os.path.abspath(os.path.join(target.root, path)) for path in target.paths or ("",))


def imported_names(target: Target) -> list[str]:
    """The modules and files that are imported for an op."""
    return list(dict.fromkeys(name for name in (*target.imports, target.module) if name))


def described(error: BaseException, root: str) -> str:
    """Describe an exception for a cell: its message, and the last place in the tree in its traceback."""
    message = _message(error)
    says = f"{type(error).__name__}: {message}" if message else traceback.format_exception_only(error)[-1].strip()
    tree = os.path.realpath(root) + os.sep
    places = [
        f"{os.path.realpath(frame.filename).removeprefix(tree)}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if os.path.realpath(frame.filename).startswith(tree)
    ]
    return printable("\n".join([says[:4000], *places[-1:]]))


def _message(error: BaseException) -> str:
    """The message of an exception; reading it may run code of the op library, which may fail."""
    try:
        return str(error)
    except Exception as another:
        return f"(its message cannot be read: {type(another).__name__})"


def printable(text: str) -> str:
    """Text without lone surrogates, which nothing can write."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def same_anywhere(error: BaseException, root: str) -> str:
    """Return an exception's type and message in a form that is equal for both trees: without the tree's place and without
    addresses.
    """
    text = f"{type(error).__name__}: {_message(error)}"
    for place in (os.path.realpath(root), os.path.abspath(root)):
        text = text.replace(place, "")
    return printable(_ADDRESS.sub("0x", text)[:4000])


def raised_in(error: BaseException, root: str) -> str:
    """Return the function of the tree that raised an exception or called the code that raised it, or an empty text if there is
    none.
    """
    tree = os.path.realpath(root) + os.sep
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.name for frame in reversed(frames) if os.path.realpath(frame.filename).startswith(tree)), "")


def deliberate(error: BaseException, root: str) -> bool:
    """Whether the tree raises an exception on purpose: in a statement of its own, through ``torch._check`` and similar
    functions, or in a registered operator, whose C++ code is not visible.
    """
    last = _innermost(error.__traceback__)
    if last is None:
        return False
    code, tree = last.tb_frame.f_code, os.path.realpath(root) + os.sep
    if os.path.realpath(code.co_filename).startswith(tree) or code.co_name in _TORCH_CHECKS:
        return code.co_code[last.tb_lasti] == opmap["RAISE_VARARGS"]  # of `raise` and of `assert`
    return os.path.basename(code.co_filename) == "_ops.py"


def _innermost(found: TracebackType | None) -> TracebackType | None:
    while found is not None and found.tb_next is not None:
        found = found.tb_next
    return found


def place_in_harness(error: BaseException) -> str:
    """The last place of the harness's own that an exception passed through."""
    ours = str(Path(__file__).parent)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(ours)]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""


def passes(error: BaseException, root: str) -> bool:
    """Whether an exception passed through a file of the tree."""
    tree = os.path.realpath(root) + os.sep
    return any(os.path.realpath(frame.filename).startswith(tree) for frame in traceback.extract_tb(error.__traceback__))


def _missing(error: ModuleNotFoundError, target: Target) -> Exception:
    """The op's own module is not there; or a module of others is not installed; or the tree's import is broken."""
    name = error.name or ""
    if name == target.module or target.module.startswith(name + "."):
        return AbsentError(f"there is no module `{target.module}` in {target.root}")
    if name.partition(".")[0] != target.module.partition(".")[0] and not _in_tree(name, target):
        return MissingPackageError(f"`{name}`, which it imports, is not installed")
    return error


def _in_tree(name: str, target: Target) -> bool:
    top = name.partition(".")[0]
    places = [Path(target.root, path) for path in target.paths or ("",)]
    return any((place / top).is_dir() or (place / f"{top}.py").is_file() for place in places)


def _stays_in(target: Target) -> None:
    """An installed copy of the library would be compared with itself.

    Raises:
        RefusedError: a module of the op's package comes from elsewhere.
    """
    tree = os.path.realpath(target.root) + os.sep
    for name, place in _files(target.module.partition(".")[0]):
        if not os.path.realpath(place).startswith(tree):
            raise RefusedError(f"`{name}` was imported from {place}, which is not in {target.root}")


def _files(package: str) -> Iterator[tuple[str, str]]:
    for name, module in sorted(sys.modules.items()):
        place = getattr(module, "__file__", None)
        if (name == package or name.startswith(package + ".")) and isinstance(place, str):
            yield name, place
