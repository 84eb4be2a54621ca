"""Reads the submits of an orchestration source: its exported functions, followed into the functions of the same file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from opschema_cli.readings import Reading
from opschema_cli.source.cpp import CppNode, CppTree
from opschema_cli.source.preprocessor import is_dead
from opschema_rules.pypto.cpp_checks import PLAIN
from opschema_rules.pypto.cpp_declarations import declared_name, parameters_of, type_of
from opschema_rules.pypto.cpp_numbers import number_of
from opschema_rules.pypto.cpp_statements import Statements
from opschema_rules.pypto.cpp_walk import Parts
from opschema_rules.pypto.facts import Entry, Orchestration, ScalarRead
from opschema_rules.pypto.scalar_reads import scalar_reads

_REALS = re.compile(r"\busing\s+(\w+)\s*=\s*(?:float|double)\b|\btypedef\s+(?:float|double)\s+(\w+)")
"""Other names of such a type."""

_CONFIGURATION = "aicpu_orchestration_config"
_SUBMIT = re.compile(r"\b(?:pto2_)?rt_submit_\w+\s*\(")
_EXPECTED = re.compile(r"expected_arg_count\s*=(?!=)\s*([^,;}]*)")


def read_orchestration(tree: CppTree) -> Orchestration:
    """Return the entries of one C++ file, with their submits."""
    functions = _functions(tree)
    parts = Parts(functions, dict(_constants(tree)), {item.name: item for item in tree.directives.macros})
    called = {name: node for name, node in functions.items() if node is not None and _is_called(name, node)}
    walks = {name: Statements(parts) for name in called}
    for name, node in called.items():
        walks[name].run(node)
    missed = _missed(tree, {at for walk in walks.values() for at in walk.reached}) if walks else []
    expected = _expected(functions.get(_CONFIGURATION))
    graphs = [walks[name] for name, node in called.items() if _is_graph(node)]
    entries = []
    for name, node in called.items():
        others = [other.span for other in called.values() if other is not node]
        own = [at for at in missed if not any(span.start <= at < span.end for span in others)]
        lost = f"the code that submits in line {tree.text.count(chr(10), 0, own[0]) + 1} is not followed" if own else ""
        entries.append(_entry(name, node, walks[name], expected, lost, [] if _is_graph(node) else graphs))
    return Orchestration(tuple(entries))


def _missed(tree: CppTree, reached: Collection[int]) -> list[int]:
    """Return the submits in the file that no entry reaches: an entry may submit more than is found."""
    if all(match.start() in reached for match in _SUBMIT.finditer(tree.text)):
        return []
    calls = (node for node in tree.root.walk() if node.kind == "call_expression" and node.span.start not in reached)
    live = [node for node in calls if _SUBMIT.match(node.text) and not is_dead(tree.conditions(node))]
    return [node.span.start for node in live]


def _entry(name: str, node: CppNode, walk: Statements, expected: int, lost: str, graphs: Sequence[Statements]) -> Entry:
    notes, taken, conditions = walk.notes, tuple(sorted(walk.taken.items())), node.tree.directives.conditions
    found = (item for item in walk.beyond.values() if item is not None)
    beyond = tuple(item for item in found if not conditions(item.span.start))
    needed = tuple(item for item in walk.needed.values() if not conditions(item.span.start))
    certain = tuple(item for item in sorted(walk.certain.items()) if not conditions(item[1].start))
    reason, submits, uses = notes.unresolved or lost, tuple(notes.submits), tuple(notes.uses)
    names = dict(item for part in (*graphs, walk) for item in part.checks.names.items())
    wrong = {item.span: item for part in graphs for item in part.checks.misfits.values() if item.kind in PLAIN}
    misfits = tuple({**wrong, **walk.checks.misfits}.values())
    scalars = _scalars(node)
    return Entry(
        name,
        node.span,
        submits,
        uses,
        taken,
        expected,
        reason,
        beyond,
        needed,
        tuple(names.values()),
        misfits,
        scalars,
        certain,
    )


def _scalars(function: CppNode) -> tuple[ScalarRead, ...]:
    """Return the scalars among an entry's own arguments that it reads as one type."""
    names = [declared_name(item) for item in parameters_of(function)]
    if len(names) != 1 or not names[0]:
        return ()
    subject = re.compile(rf"{names[0]}(?<!\w{names[0]})\s*\.\s*scalar\s*\(\s*(\d+)\s*\)")
    return scalar_reads(function.tree.text, function.span.start, subject, function.span.end)


def _functions(tree: CppTree) -> dict[str, CppNode | None]:
    """Return the functions of a file by name, without those that are never compiled; None for names with several definitions."""
    found: dict[str, CppNode | None] = {}
    for node in tree.root.walk(lambda item: item.kind == "compound_statement"):
        if node.kind == "function_definition" and not is_dead(tree.conditions(node)):
            name = _name_of(node)
            if name:
                found[name] = None if name in found else node
    return found


def _name_of(function: CppNode) -> str:
    declarator = function.field("declarator")
    while declarator is not None and declarator.kind not in ("identifier", "qualified_identifier"):
        declarator = declarator.field("declarator") or (declarator.children[-1] if declarator.children else None)
    return declarator.text if declarator is not None else ""


def _is_called(name: str, function: CppNode) -> bool:
    """Whether the runtime calls a function: it is exported, and takes the arguments of a task."""
    declarator = function.field("declarator")
    exported = any(item.kind == "linkage_specification" for item in function.ancestors)
    takes = declarator is not None and re.search(r"\b\w*Args\b", declarator.text) is not None
    return exported and takes and name != _CONFIGURATION


def _is_graph(function: CppNode) -> bool:
    """Whether a function submits the tasks of a graph that an entry of its file makes."""
    return any(type_of(item) == "GraphTaskArgs" for item in parameters_of(function))


def _expected(configuration: CppNode | None) -> int:
    """Return the number of arguments in the configuration beside the entry; -1 if it has none."""
    found = set(_EXPECTED.findall(configuration.text)) if configuration is not None else set[str]()
    number = found.pop().strip() if len(found) == 1 else ""
    return int(number) if number.isdecimal() else -1


def _constants(tree: CppTree) -> Iterator[tuple[str, int]]:
    """Yield the integers of names in the file: macros, enumerators, constants outside of functions."""
    for macro in tree.directives.defined.values():
        value = _whole(macro.body) if macro.parameters is None else None
        if value is not None:
            yield macro.name, value
    reals = {"float", "double", *(name for names in _REALS.findall(tree.text) for name in names if name)}
    for node in tree.root.walk(lambda item: item.kind == "compound_statement"):
        if node.kind == "enumerator_list":
            yield from _enumerators(node)
        elif node.kind == "declaration" and _is_constant(node, reals):
            yield from _declared(node)


def _is_constant(node: CppNode, reals: Collection[str]) -> bool:
    """Whether a declaration is one of constants, without those of real types."""
    return type_of(node) not in reals and re.search(r"\bconst(?:expr)?\b", node.text) is not None


def _declared(node: CppNode) -> Iterator[tuple[str, int]]:
    for declarator in node.fields("declarator"):
        given, name = declarator.field("value"), declarator.field("declarator")
        value = _whole(given.text) if given is not None else None
        if value is not None and name is not None:
            yield name.text, value


def _enumerators(node: CppNode) -> Iterator[tuple[str, int]]:
    following: int | None = 0
    for item in node.children:
        name, given = item.field("name"), item.field("value")
        if given is not None:
            following = _whole(given.text)
        if name is not None and following is not None:
            yield name.text, following
            following += 1


def _whole(text: str) -> int | None:
    """Return the integer in a text, also in parentheses and with a sign."""
    inner = text.strip(" ()")
    found = number_of(inner.removeprefix("-").strip())
    return -found if found is not None and inner.startswith("-") else found


ORCHESTRATION = Reading("pypto orchestration", read_orchestration, Orchestration)
