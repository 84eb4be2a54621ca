"""The C++ functions of bindings: the arguments of ``m.def``, resolved to a signature."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial

from msgspec.structs import replace

from opschema_cli.cpp_units import CppUnits
from opschema_cli.project import Project
from opschema_cli.source.resolution import Unresolved
from opschema_rules.bindings.model import Binding
from opschema_rules.torchlib.cpp_kernels import Asked, CppKernels, cast_name, name_of
from opschema_rules.torchlib.cpp_signature import CppSignature

_OVERLOAD = re.compile(
    r"(?:::)?(?:py|pybind11|nb|nanobind)::overload_cast\s*<(.*)>\s*\(\s*&?\s*([\w:\s]+?)\s*(?:,[^()]*)?\)", re.DOTALL
)
_WRAPPED = re.compile(r"(?:torch::)?wrap_pybind_function(?:_no_gil)?\s*\(\s*(.*?)\s*\)", re.DOTALL)
_CLASS = re.compile(r"(?<![\w:])[A-Z]\w*\b(?!\s*::)")
"""A class without its namespace, as torch writes the names of its own."""


def plain_function(binding: Binding) -> str:
    """The source text of the function without the wrappers of pybind11 and torch; an overload is written as a cast."""
    text = binding.step.value.strip()
    wrapped = _WRAPPED.fullmatch(text)
    text = wrapped[1] if wrapped is not None else text
    chosen = _OVERLOAD.fullmatch(text)
    return f"static_cast<auto (*)({chosen[1]})>(&{chosen[2]})" if chosen is not None else text


def function_name(binding: Binding) -> str:
    """Return the qualified name of the function; empty for a lambda and for anything that is not understood."""
    text = plain_function(binding)
    return name_of(text) or cast_name(text)


def is_local(binding: Binding) -> bool:
    """Whether the name of the function is that of a variable, a parameter or a ``using`` of the block."""
    return binding.block is not None and function_name(binding) in binding.block.locals


def find_functions(project: Project, bindings: Iterable[Binding]) -> None:
    """Find the signature of each binding."""
    asked = [(item, _asked(item)) for item in bindings]
    known = CppKernels(CppUnits(project, "bindings"), [one for _, one in asked])
    for binding, one in asked:
        name = function_name(binding)
        if is_local(binding):
            binding.found = Unresolved(f"`{name}` is a name of the block around it")
        elif known.is_method(one):
            binding.found = Unresolved(f"`{name}` is a method")
        else:
            found = known.find(one)
            own = partial(known.is_own_type, binding.path)
            binding.found = found if isinstance(found, Unresolved) else tuple(_with_own(item, own) for item in found)


def _with_own(signature: CppSignature, is_own: Callable[[str], bool]) -> CppSignature:
    """Return a signature in which a class that may be one of the tree, not of torch, is written ``class Tensor``."""

    def marked(written: str) -> str:
        return _CLASS.sub(lambda match: f"class {match[0]}" if is_own(match[0]) else match[0], written)

    parameters = tuple(replace(item, type=marked(item.type)) for item in signature.parameters)
    return replace(signature, parameters=parameters, returns=marked(signature.returns))


def _asked(binding: Binding) -> Asked:
    namespace = binding.block.namespace if binding.block is not None else ""
    return Asked(plain_function(binding), binding.path, binding.function_place, namespace, binding.conditions)
