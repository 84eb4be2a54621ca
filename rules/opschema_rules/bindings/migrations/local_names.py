"""Names that a block of bindings declares itself: a function that needs one of them cannot be moved out of the block."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.project import Project
from opschema_cli.source.cpp import CppNode, CppTree
from opschema_cli.source.cpp_namespaces import is_within
from opschema_cli.source.cpp_scopes import Needed, declared_in, names_needed
from opschema_cli.source.text import Span
from opschema_rules.bindings.facts import Block
from opschema_rules.bindings.functions import function_name
from opschema_rules.bindings.model import Binding

_EVERYWHERE = re.compile(r"at|torch|c10|std|py|pybind11|nb|nanobind|(?:TORCH|AT|C10)_\w+")
"""Names that have the same meaning in every scope."""

_HEADS = {"template_declaration": "parameters", "function_definition": "declarator"}
"""Kinds of nodes around a block, and their fields that declare names for it."""


class LocalNames:
    """Finds what the functions of a tree's bindings need of their blocks."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._blocks: dict[tuple[str, int], dict[Span, Needed]] = {}

    def first(self, binding: Binding) -> str:
        """Return a name that the function of a binding needs of its block; empty if there is none."""
        block = binding.block
        tree = self._project.cpp(binding.path) if block is not None else None
        if block is None or tree is None:
            return ""
        key = (binding.path, block.span.start)
        if key not in self._blocks:
            self._blocks[key] = dict(_needs(tree, block))
        needed = self._blocks[key].get(binding.step.value_span, Needed())
        own = function_name(binding).partition("::")[0] if _is_around(binding, block) else ""
        brought = {name for name in needed.brought if not _EVERYWHERE.fullmatch(name)}
        return min(needed.declared, default="") or min(brought - {own}, default="")


def _is_around(binding: Binding, block: Block) -> bool:
    """Whether the name of a function is known in the namespace around a block."""
    name, full = function_name(binding), binding.signature.name if binding.signature is not None else ""
    return full.endswith(name) and is_within(block.namespace, full.removesuffix(name).removesuffix("::"))


def _needs(tree: CppTree, block: Block) -> Iterator[tuple[Span, Needed]]:
    """Yield what each function in a block needs of it, by the place of the function."""
    around = [node for node in tree.root.walk(lambda node: not _holds(node, block)) if _holds(node, block)]
    body = next((node for node in around if node.kind == "compound_statement" and node.span.end == block.end), None)
    if body is not None:
        heads = filter(None, (node.field(_HEADS[node.kind]) for node in around if node.kind in _HEADS))
        functions = {step.value_span for step in block.steps if step.kind == "def"}
        yield from names_needed(body, functions, [name for head in heads for name in declared_in(head)])


def _holds(node: CppNode, block: Block) -> bool:
    """Whether the end of a block is in a node."""
    return node.span.start < block.end <= node.span.end
