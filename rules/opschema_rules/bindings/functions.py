"""The C++ functions behind bindings: what ``m.def`` is given, followed to a signature."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from opschema_cli.cpp_units import CppUnits
from opschema_cli.project import Project
from opschema_cli.schema.cpp_inference import split_arguments
from opschema_cli.schema.cpp_spelling import spelling
from opschema_cli.source.cpp_functions import CppParameterText
from opschema_cli.source.resolution import Unresolved
from opschema_cli.source.text import Span
from opschema_rules.bindings.model import Binding
from opschema_rules.torchlib.cpp_kernels import Asked, CppKernels, name_of
from opschema_rules.torchlib.cpp_signature import CppSignature, signature_of

_OVERLOAD = re.compile(
    r"(?:::)?(?:py|pybind11|nb|nanobind)::overload_cast\s*<(.*)>\s*\(\s*&?\s*([\w:\s]+?)\s*\)", re.DOTALL
)
_CAST = re.compile(r"static_cast\s*<(.*)\(\s*\*\s*\)\s*\((.*)\)\s*>\s*\(\s*&?\s*([\w:\s]+?)\s*\)", re.DOTALL)
_WRAPPED = re.compile(r"(?:torch::)?wrap_pybind_function(?:_no_gil)?\s*\(\s*(.*?)\s*\)", re.DOTALL)


def plain_function(binding: Binding) -> str:
    """The function as it is written, without what pybind11 and torch wrap around it."""
    text = binding.step.value.strip()
    wrapped = _WRAPPED.fullmatch(text)
    return wrapped[1] if wrapped is not None else text


def function_name(binding: Binding) -> str:
    """The qualified name of the function; empty for a lambda and what is not understood."""
    text = plain_function(binding)
    chosen = _OVERLOAD.fullmatch(text) or _CAST.fullmatch(text)
    return name_of(chosen[chosen.re.groups] if chosen is not None else text)


def find_functions(project: Project, bindings: Iterable[Binding]) -> None:
    """Find the signature behind each binding."""
    units = CppUnits(project)
    asked = [(item, _asked(item)) for item in bindings]
    known = CppKernels(
        units, [Asked(name, one.path, one.place) for item, one in asked if (name := function_name(item))]
    )
    for binding, one in asked:
        binding.found = _found(known, binding, one)
        if _is_method(units, binding):
            binding.found = Unresolved(f"`{function_name(binding)}` is a method")


def _is_method(units: CppUnits, binding: Binding) -> bool:
    """Whether a function is a method of a class, which Python passes the object."""
    qualifier, _, own = function_name(binding).rpartition("::")
    name = qualifier.rpartition("::")[2].partition("<")[0]
    if not name:
        return False
    files = units.files(binding.path)
    head = rf"\b(?:class|struct)\s+(?:\w+\s+)*(?:\w+\s*::\s*)*{re.escape(name)}\s*(?:<[^;{{}}]*>\s*)?"
    found = re.compile(rf"{head}(?:final\s*)?(?::(?!:)[^;{{}}]*)?\{{".encode())
    if not any(found.search(units.project.workspace.peek(path)) for path in files):
        return False
    for item in units.functions(binding.path, {own}):
        same = item.function.name == own and f"::{item.function.owner}".endswith(f"::{qualifier}")
        source = units.project.source(item.path) if same else None
        before = source.text[item.function.span.start : item.function.name_span.start] if source is not None else ""
        if re.search(r"\bstatic\b", before):
            return False
    return True


def _asked(binding: Binding) -> Asked:
    place = binding.function_place
    return Asked(plain_function(binding), binding.path, place, binding.namespace, binding.conditions)


def _found(known: CppKernels, binding: Binding, asked: Asked) -> tuple[CppSignature, ...] | Unresolved:
    overload = _OVERLOAD.fullmatch(asked.text)
    cast = _CAST.fullmatch(asked.text)
    if overload is not None:
        return _chosen(known, asked, overload[2], split_arguments(overload[1]), "")
    if cast is not None:
        return _chosen(known, asked, cast[3], split_arguments(cast[2]), cast[1].strip())
    return known.find(asked)


def _chosen(
    known: CppKernels, asked: Asked, name: str, types: Sequence[str], returns: str
) -> tuple[CppSignature, ...] | Unresolved:
    """The overload with these types of parameters, with its names if it is found, else without."""
    written = [item.strip() for item in types]
    qualifier, _, own = re.sub(r"\s+|^::", "", name).rpartition("::")
    for item in known.units.functions(asked.path, {own}):
        function = item.function
        there = [one.type for one in function.parameters]
        owner = f"::{function.owner}::" if function.owner else "::"
        meant = function.name == own and owner.endswith(f"::{qualifier}::" if qualifier else owner)
        if meant and list(map(_spelt, there)) == list(map(_spelt, written)):
            return (signature_of(item),)
    if qualifier:
        return Unresolved(f"no `{qualifier}::{own}` with these parameters is declared in the files that it sees")
    here = tuple(CppParameterText(item, "", Span(0, 0)) for item in written)
    return (CppSignature(own, returns, here, asked.place, tuple(asked.place for _ in here)),)


def _spelt(written: str) -> str:
    return spelling(written) or "".join(written.split())
