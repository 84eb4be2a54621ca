"""Detects C++ that binds functions of tensors to Python, without importing the rest of the pack."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.file_kinds import is_cpp
from opschema_cli.gitignore import glob_spec
from opschema_cli.importing_files import IMPORTED
from opschema_cli.lint.pack import Speed
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_rules.shipped import shipped_pack

if TYPE_CHECKING:
    from opschema_cli.cpp_units import CppUnits

MODULES = frozenset({"PYBIND11_MODULE", "NB_MODULE"})
"""The macros that open the block of a module."""

_BINDS = re.compile(rb"\b(?:PYBIND11_MODULE|NB_MODULE|(?:py|pybind11|nb|nanobind)::module_?)\b")
_BINDS_PARTS = (b"_MODULE", b"::module")
_OPENS = re.compile(rb"(?m)^[^#\n/]*\b(?:PYBIND11_MODULE|NB_MODULE)\s*\(")
OF_TENSORS = re.compile(
    rb"\bTORCH_EXTENSION_NAME\b|\b(?:at|torch)::Tensor\b|\bndarray\b|[<\"](?:torch|ATen)/|\bpy::array\b"
)
"""Words in a file of bindings that concern tensors."""


class BindingsOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``modules`` maps C++ files, as globs, to the Python names of extension modules: ``{"csrc/*.cpp" = "pkg._C"}``."""

    modules: dict[str, str] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse patterns and names that are malformed.

        Raises:
            OpschemaError: see there.
        """
        for pattern, name in self.modules.items():
            glob_spec([pattern], "tool.opschema.bindings: `modules`")
            if not all(part.isidentifier() for part in name.split(".")):
                raise OpschemaError(f"tool.opschema.bindings: `modules`: `{name}` is not a valid module name")

    def __hash__(self) -> int:
        return hash(tuple(self.modules.items()))


def _role(data: bytes) -> int:
    """0: binds nothing; 1: helps to; 2: has a module; 3: of tensors; 4: helps to, with functions of tensors."""
    if not any(part in data for part in _BINDS_PARTS) or _BINDS.search(data) is None:
        return 0
    of_tensors = OF_TENSORS.search(data) is not None
    return (4 if of_tensors else 1) if _OPENS.search(data) is None else 3 if of_tensors else 2


ROLES = Reading("bindings roles", _role, int)


_OF_TORCH = re.compile(rb"\b(?:at|torch)::Tensor\b|[<\"](?:torch|ATen)/")


def _mentions_torch(data: bytes) -> bool:
    return _OF_TORCH.search(data) is not None


_TORCH = Reading("bindings torch", _mentions_torch, bool)
_DECLARES = re.compile(rb"\bTensor\b")
_LONGEST = 4000
"""Maximum number of bytes before and after the name of a function that count as part of its declaration."""


def declares_tensors(units: CppUnits, path: str, functions: Collection[str]) -> bool:
    """Whether a header of the workspace that a C++ file includes, such as the ``ops.h`` beside it, declares one of some functions
    with tensors of torch.
    """
    names = "|".join(map(re.escape, sorted(functions)))
    called = re.compile(rf"\b(?:{names})\s*\(".encode()) if names else None
    return called is not None and any(
        _DECLARES.search(data, _before(data, match.start()), _behind(data, match.end())) is not None
        for data in map(units.project.workspace.peek, _with_tensors(units, path))
        for match in called.finditer(data)
    )


def _with_tensors(units: CppUnits, path: str) -> list[str]:
    """The headers of the workspace that a C++ file includes and that speak of torch."""
    return [header for header, found in units.project.scan(_TORCH, units.included(path)) if found]


def _before(data: bytes, at: int) -> int:
    """The beginning of the declaration around a place."""
    first = max(at - _LONGEST, 0)
    return max(first, *(data.rfind(end, first, at) + 1 for end in (b";", b"}", b"{", b"\n\n")))


def _behind(data: bytes, at: int) -> int:
    """Its end."""
    last = at + _LONGEST
    return min((found for end in (b";", b"{") if (found := data.find(end, at, last)) >= 0), default=last)


class Marks(NamedTuple):
    """Whether a Python file may make a module of C++ in strings, mentions ``cpp_extension``, has a class that names the sources of
    a module, and loads anything.
    """

    inline: bool
    extension: bool
    sources: bool
    loads: bool


def _marks(data: bytes) -> Marks:
    inline = b"load_inline(" in data and (b"functions=" in data or b"PYBIND11_MODULE" in data)
    return Marks(inline, b"cpp_extension" in data, b"def sources(" in data, b"load(" in data)


_MARKS: Reading[bytes, Marks] = Reading("bindings marks", _marks, Marks)
_MARKS_ALONG: Reading[bytes, Marks] = Reading("bindings marks", _marks, Marks, (IMPORTED,))
"""The marks, together with all readings of these files once the pack is in use."""


def python_marks(project: Project) -> Iterator[tuple[str, Marks]]:
    """The marks of all Python files, for a tree in which the pack is in use."""
    return _marked(project, _MARKS_ALONG)


def _marked(project: Project, reading: Reading[bytes, Marks]) -> Iterator[tuple[str, Marks]]:
    return project.scan(reading, (path for path in project.workspace.files if path.endswith(".py")))


def reads(project: Project, options: BindingsOptions) -> Iterator[str]:
    """The Python files that make modules of C++ in strings."""
    return (path for path, marks in python_marks(project) if marks.inline)


def detect(project: Project, options: BindingsOptions) -> bool:
    """Whether a file of the workspace binds functions of tensors."""
    by_path = dict(project.scan(ROLES, filter(is_cpp, project.workspace.files)))
    roles = set(by_path.values())
    if 3 in roles or {2, 4} <= roles:
        return True
    return any(marks.inline for _, marks in _marked(project, _MARKS)) or _binds_declared(project, by_path)


def _binds_declared(project: Project, roles: Mapping[str, int]) -> bool:
    """Whether the header of a file with a module declares functions of tensors."""
    modules = [path for path, role in roles.items() if role == 2]
    if not modules:
        return False
    # Not at the top: few trees need it.
    from opschema_cli.cpp_units import CppUnits

    units = CppUnits(project)
    return any(_with_tensors(units, path) for path in modules)


def claims(project: Project, options: BindingsOptions, path: str) -> bool:
    """Whether a file plainly binds functions of tensors."""
    return is_cpp(path) and _role(project.workspace.peek(path)) == 3


LAZY_PACK = shipped_pack(__name__, detect, BindingsOptions, claims, speed=Speed(reads))
