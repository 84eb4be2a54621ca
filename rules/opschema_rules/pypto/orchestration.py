"""Reads what an orchestration source submits: its exported functions, followed into the functions of the same file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.project import CppReading
from opschema_cli.source.cpp import CppNode, CppTree
from opschema_cli.source.preprocessor import is_dead
from opschema_rules.pypto.cpp_walk import Walk
from opschema_rules.pypto.facts import Entry, Orchestration

_NUMBER = re.compile(r"\(*\s*(-?(?:0[xX][\da-fA-F]+|\d+))[uUlL]*\s*\)*")
_EXPECTED = re.compile(r"expected_arg_count\s*=\s*(\d+)")


def read_orchestration(tree: CppTree) -> Orchestration:
    """The entries of one C++ file, with what they submit."""
    functions = dict(_functions(tree))
    constants = dict(_constants(tree))
    entries = [
        _entry(name, node, functions, constants, _expected(tree, functions))
        for name, node in functions.items()
        if _takes_arguments(node) and name != "aicpu_orchestration_config"
    ]
    return Orchestration(tuple(entries))


def _functions(tree: CppTree) -> Iterator[tuple[str, CppNode]]:
    """The functions of a file by name, but those that are never compiled; of overloads none."""
    found: dict[str, list[CppNode]] = {}
    for node in tree.root.walk(lambda item: item.kind == "compound_statement"):
        if node.kind == "function_definition" and not is_dead(tree.conditions(node)):
            name = _name_of(node)
            if name:
                found.setdefault(name, []).append(node)
    yield from ((name, nodes[0]) for name, nodes in found.items() if len(nodes) == 1)


def _name_of(function: CppNode) -> str:
    declarator = function.field("declarator")
    while declarator is not None and declarator.kind not in ("identifier", "qualified_identifier"):
        declarator = declarator.field("declarator") or (declarator.children[-1] if declarator.children else None)
    return declarator.text if declarator is not None else ""


def _takes_arguments(function: CppNode) -> bool:
    """Whether a function is one that the runtime calls: it is exported, and takes the arguments of a task."""
    declarator = function.field("declarator")
    exported = any(item.kind == "linkage_specification" for item in function.ancestors)
    return exported and declarator is not None and re.search(r"\b\w*Args\b", declarator.text) is not None


def _entry(name: str, node: CppNode, functions: dict[str, CppNode], constants: dict[str, int], expected: int) -> Entry:
    walk = Walk(functions, constants)
    walk.run(node)
    lost = walk.unresolved or ("a tensor is taken by a number that is not known" if walk.arguments_lost else "")
    return Entry(
        name,
        node.span,
        tuple(walk.submits),
        tuple(walk.uses),
        tuple(sorted(walk.taken.items())),
        expected,
        lost,
    )


def _expected(tree: CppTree, functions: dict[str, CppNode]) -> int:
    """What the configuration beside the entry says of the number of arguments; -1 when it says nothing."""
    configuration = functions.get("aicpu_orchestration_config")
    match = _EXPECTED.search(configuration.text) if configuration is not None else None
    return int(match[1]) if match else -1


def _constants(tree: CppTree) -> Iterator[tuple[str, int]]:
    """The whole numbers that names of the file stand for: macros, enumerators, constants outside of functions."""
    for macro in tree.directives.defined.values():
        match = _NUMBER.fullmatch(macro.body) if macro.parameters is None else None
        if match is not None:
            yield macro.name, int(match[1], 0)
    for node in tree.root.walk(lambda item: item.kind == "compound_statement"):
        if node.kind == "enumerator_list":
            yield from _enumerators(node)
        elif node.kind == "declaration" and re.search(r"\bconst(?:expr)?\b", node.text):
            for declarator in node.fields("declarator"):
                value, name = declarator.field("value"), declarator.field("declarator")
                match = _NUMBER.fullmatch(value.text) if value is not None else None
                if match is not None and name is not None:
                    yield name.text, int(match[1], 0)


def _enumerators(node: CppNode) -> Iterator[tuple[str, int]]:
    following: int | None = 0
    for item in node.children:
        name, value = item.field("name"), item.field("value")
        if value is not None:
            match = _NUMBER.fullmatch(value.text)
            following = int(match[1], 0) if match is not None else None
        if name is not None and following is not None:
            yield name.text, following
            following += 1


ORCHESTRATION = CppReading("pypto orchestration", read_orchestration, Orchestration)
