"""Detects that a tree registers operators with ``torch.library``, without importing the rest of the pack."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.file_kinds import is_cpp
from opschema_cli.gitignore import glob_spec
from opschema_cli.lint.pack import Speed
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.text import is_found
from opschema_rules import TORCH_RELEASES
from opschema_rules.shipped import shipped_pack
from opschema_rules.torchlib.ops_words import ASKED_LATER
from opschema_rules.torchlib.sightings import KERNELS, ROWS, SIGHTINGS

_TEST = re.compile(r"(?:^|/)(?:tests?/|test_[^/]*\.py\Z|[^/]*_test\.py\Z|conftest\.py\Z)")

_PARTS = (b"custom_op", b"triton_op", b"register_", b"impl_abstract", b"library")
_DOT = rb"[\s\\]*\.[\s\\]*"
"""A Python dot, possibly with white space around it."""
_REGISTERS = re.compile(
    rb"\b(?:custom_op|triton_op|register_fake|impl_abstract|register_autograd|register_kernel|register_vmap|_scoped_library"
    rb"|direct_register_custom_op|torch%s(?:_?library|_custom_op\w*))\b" % _DOT
)

_IMPORTED_PARTS = (b"library", b"_custom_op")
_REACHES = re.compile(rb"\.[\s\\]*_?library\b|\btorch%s_custom_op|\bdirect_register_custom_op\b" % _DOT)
_IMPORTED = re.compile(rb"from\s+torch\s+import\s*(?:\([^)]*|[^\n]*)\b(?:_?library|_custom_ops?)\b")
"""One of both is in every file that uses ``torch.library``, or vLLM's helper; the latter without a word's end before it, so that
it is found many times as fast.
"""

CPP_REGISTERS = re.compile(rb"(?<![A-Za-z0-9])TORCH_LIBRARY|RegisterOperators|\.impl\s*\(|\b(?:torch|c10)::Library\b")
"""Text in every C++ file that registers operators, or defines macros which do."""


_CPP_PARTS = (b"TORCH_LIBRARY", b"RegisterOperators", b".impl", b"::Library")
"""Each match of the former holds one of these, as each of ``_REGISTERS`` one of ``_PARTS``."""

_INLINE_PARTS = (b"TORCH_LIBRARY", b"RegisterOperators")

_NAMESPACE = re.compile(r"[A-Za-z_]\w*", re.ASCII)

_REACH = 100
"""Maximum number of characters of a match on either side of such a part."""


class TorchlibOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``torch`` is the torch version that the tree is for (``2.6``); ``tests`` also reads registrations in tests.

    ``namespaces`` gives the namespace of C++ sources whose build sets it, by gitignore patterns of their paths; the first that
    fits counts.
    """

    torch: str = ""
    tests: bool = False
    namespaces: dict[str, str] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse patterns and namespaces that are malformed.

        Raises:
            OpschemaError: naming the one that is.
        """
        for pattern, name in self.namespaces.items():
            glob_spec([pattern], "tool.opschema.torchlib: `namespaces`")
            if not _NAMESPACE.fullmatch(name):
                raise OpschemaError(f"tool.opschema.torchlib: `namespaces`: `{name}` is not a name of C++")

    def __hash__(self) -> int:
        return hash((self.torch, self.tests, *self.namespaces.items()))


def registers(data: bytes) -> bool:
    """Whether a Python file may register an operator."""
    return is_found(_REGISTERS, data, _PARTS, _REACH)


def cpp_registers(data: bytes) -> bool:
    """Whether a C++ file may register operators, or define macros which do."""
    return is_found(CPP_REGISTERS, data, _CPP_PARTS, _REACH)


def _registers_inline(data: bytes) -> bool:
    return b"load_inline" in data and any(part in data for part in _INLINE_PARTS)


def _registers_classes(data: bytes) -> bool:
    return b"paque" in data and (b"register_opaque" in data or b"OpaqueBase" in data)


def _reaches(data: bytes) -> bool:
    if b"torch" not in data and b"direct_register_custom_op" not in data:
        return False
    imports = any(part in data for part in _IMPORTED_PARTS)
    return imports and (is_found(_REACHES, data, _IMPORTED_PARTS, _REACH) or _IMPORTED.search(data) is not None)


_REACHES_TORCH = Reading("torchlib reaches torch", _reaches, bool)
_REGISTERS_INLINE = Reading("torchlib registers in C++ of strings", _registers_inline, bool)
REGISTERS_CLASSES = Reading("torchlib registers classes", _registers_classes, bool)
"""Whether a file may register classes that torch then takes as types of arguments."""
_LATER = (_REGISTERS_INLINE, REGISTERS_CLASSES, ROWS, KERNELS, *ASKED_LATER)
_REGISTERS_PYTHON = Reading("torchlib registers", registers, bool, _LATER)
_REACHES_ALONG = Reading(
    "torchlib reaches torch", _reaches, bool, (*_LATER, Reading("torchlib registers", registers, bool))
)
"""The first of them, with all readings of the same files once the pack is in use."""
REGISTERS_CPP = Reading("torchlib registers in C++", cpp_registers, bool)
"""Whether a C++ file may register operators, or define macros which do."""


def detect(project: Project, options: TorchlibOptions) -> bool:
    """Whether a file of the workspace may register an operator."""
    reaches = any(found for _, found in project.scan(_REACHES_TORCH, sources(project, options)))
    return reaches or bool(cpp_sources(project, options))


def reaching(project: Project, options: TorchlibOptions) -> Iterable[str]:
    """Return the Python files that mention ``torch.library``; without one, code that looks like a registration is not torch's."""
    return (path for path, found in project.scan(_REACHES_ALONG, sources(project, options)) if found)


def registering(project: Project, options: TorchlibOptions) -> Iterable[str]:
    """The Python files that may register an operator."""
    return (path for path, found in project.scan(_REGISTERS_PYTHON, sources(project, options)) if found)


def sources(project: Project, options: TorchlibOptions) -> list[str]:
    """The Python files, those of tests only where the options ask for them."""
    return [
        path for path in project.workspace.files if path.endswith(".py") and (options.tests or not _TEST.search(path))
    ]


def cpp_sources(project: Project, options: TorchlibOptions) -> list[str]:
    """Return all C++ files if one of them contains operators, and the Python files that compile operators from C++ in their
    strings.
    """
    found = [path for path in project.workspace.files if is_cpp(path) and (options.tests or not _TEST.search(path))]
    inline = [path for path, holds in project.scan(_REGISTERS_INLINE, sources(project, options)) if holds]
    return (found if any(registers for _, registers in project.scan(REGISTERS_CPP, found)) else []) + inline


_SURELY_REGISTERS = re.compile(
    rb"(?m)^[ \t]*(?:@|from\b|import\b|with\b)[^\n]*(?:%s)|\b(?:torch\.library\.\w+|direct_register_custom_op)[ \t]*\("
    % _REGISTERS.pattern
)
_SURELY_REGISTERS_CPP = re.compile(
    rb"(?m)^[ \t]*TORCH_LIBRARY\w*[ \t]*\(|\bRegisterOperators\b|\b(?:torch|c10)::Library\b"
)


def claims(project: Project, options: TorchlibOptions, path: str) -> bool:
    """Whether a file plainly registers operators."""
    surely = _SURELY_REGISTERS if path.endswith(".py") else _SURELY_REGISTERS_CPP if is_cpp(path) else None
    if surely is None or (_TEST.search(path) and not options.tests):
        return False
    return surely.search(project.workspace.peek(path)) is not None


LAZY_PACK = shipped_pack(
    __name__,
    detect,
    TorchlibOptions,
    claims,
    speed=Speed(reaching, reads_first=True),
    unread=SIGHTINGS,
    releases=TORCH_RELEASES,
)
