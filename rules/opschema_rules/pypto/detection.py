"""Detects trees with programs for pypto's runtime, without importing the rest of the pack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Literal

import msgspec

from opschema_cli.lint.pack import Speed
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_rules.shipped import shipped_pack

_TARGET = rb"%s(?<![.\w\"']%s)\s*(?:[:,)\]\\#]|=(?!=))"
_KERNELS, _CALLABLE = (re.compile(_TARGET % (name, name)) for name in (b"KERNELS", b"CALLABLE"))
"""Pattern of texts that may assign a name; it does not match reads, strings, or names of other objects."""

_SPECIFIES = re.compile(rb"\bTensorSpec\s*\(")
_PASSES = re.compile(
    rb"\b(?:(?:run|run_jit|compile_and_run)\s*[(\\#]|(?:define_tensors|get_program)\b|specs\s*(?:=(?!=)|[\\#]))"
)
_HARNESS = re.compile(rb"\bpypto\b|^[ \t]*(?:from|import)[ \t]+golden\b", re.MULTILINE)


_BUILDS = (b"ChipCallable.build(", b"CoreCallable.build(", b"compile_orchestration", b".cpp")
_EXPECTS_ERROR = re.compile(rb"\b(?:raises|assertRaises\w*)\s*\(|\bxfail\b|\bexcept\s+\(?RuntimeError\b")
"""Code whose programs may be wrong on purpose."""


class PyptoOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``signatures`` is how a kernel's signature is matched with the payload (``sum``, ``arg-index``, ``widest``),
    ``max-tensors`` and ``max-scalars`` the limits of one kernel's arguments; options that are not set are derived from the tree.
    """

    signatures: Literal["", "sum", "arg-index", "widest"] = ""
    max_tensors: int = 0
    max_scalars: int = 0


def detect(project: Project, options: PyptoOptions) -> bool:
    """Whether a file describes kernels, or specs of an entry."""
    return next(describing(project), None) is not None or next(specifying(project), None) is not None


def describing(project: Project) -> Iterator[str]:
    """Yield the Python files that may describe a program: they mention ``func_id`` and assign a list of kernels. Templates of
    such files count too.
    """
    yield from _python(project, _DESCRIBES)
    templates = (path for path in project.workspace.files if path.endswith(".py.in"))
    yield from (path for path, found in project.scan(_IS_TEMPLATE, templates) if found)


def _is_template(data: bytes) -> bool:
    """Whether a template is valid Python as it is: its placeholders are in strings."""
    # Not at the top: few trees have templates.
    import ast

    try:
        return _describes(data) and bool(ast.parse(data))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False


def _describes(data: bytes) -> bool:
    if b"func_id" in data and (
        _KERNELS.search(data) is not None or (b"incores" in data and _CALLABLE.search(data) is not None)
    ):
        return True
    return all(word in data for word in _BUILDS) and _EXPECTS_ERROR.search(data) is None


def specifying(project: Project) -> Iterator[str]:
    """Yield the Python files that may pair specs of tensors with an entry in pypto's language. Specs imported from other files
    are read there.
    """
    return _python(project, _SPECIFIES_ENTRY)


def _specifies(data: bytes) -> bool:
    marks = (_SPECIFIES, _HARNESS, _PASSES)
    return b"TensorSpec" in data and all(mark.search(data) for mark in marks)


_DESCRIBES = Reading("pypto describes", _describes, bool)
_IS_TEMPLATE = Reading("pypto template", _is_template, bool)
_SPECIFIES_ENTRY = Reading("pypto specifies", _specifies, bool)


def _python(project: Project, scan: Reading[bytes, bool]) -> Iterator[str]:
    paths = (path for path in project.workspace.files if path.endswith(".py"))
    return (path for path, found in project.scan(scan, paths) if found)


def reads(project: Project, options: PyptoOptions) -> Iterator[str]:
    """Yield the Python files that the pack always reads."""
    return chain(describing(project), specifying(project))


def claims(project: Project, options: PyptoOptions, path: str) -> bool:
    """Whether a Python file describes kernels, or specs of an entry."""
    data = project.workspace.peek(path)
    if path.endswith(".py.in"):
        return _is_template(data)
    return path.endswith(".py") and (_describes(data) or _specifies(data))


LAZY_PACK = shipped_pack(__name__, detect, PyptoOptions, claims, speed=Speed(reads))
