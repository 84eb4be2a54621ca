"""The pack's operators for the table: entries with their kernels and gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opschema_cli.operators import model as table
from opschema_cli.project import Project
from opschema_cli.sequences import grouped
from opschema_cli.source.text import Place
from opschema_rules.paddle.cpp import FunctionCheck, cpp_names
from opschema_rules.paddle.cpp_types import passed_to, taken
from opschema_rules.paddle.detection import PaddleOptions
from opschema_rules.paddle.grammar import Arg
from opschema_rules.paddle.load import read_tree
from opschema_rules.paddle.model import OpEntry

_PREFIXES = {"": "", "fused": "", "sparse": "sparse::", "strings": "strings::"}
"""Namespaces of the C++ API; operators of other groups are distinguished by the group."""


def operators(project: Project, options: PaddleOptions) -> Iterator[table.Operator]:
    """The operators and gradients of all files."""
    tree = read_tree(project, options)
    checks = grouped((id(check.entry), check) for check in cpp_names(tree).checks())
    seen = set[str]()
    for entry in tree.entries:
        name = f"{_PREFIXES.get(entry.listed.group, f'{entry.listed.group}::')}{entry.name}".replace(" ", "_")
        if entry.name and name not in seen:
            seen.add(name)
            yield _operator(name, entry, checks)


def _operator(name: str, entry: OpEntry, checks: Mapping[int, list[FunctionCheck]]) -> table.Operator:
    forward, outputs = entry.forward.name, entry.signature.outputs
    arguments = tuple(_argument(entry, arg) for arg in entry.signature.args)
    returns = tuple(
        table.Return(item.name, item.type, place=entry.at(entry.part(item.span, "output"))) for item in outputs
    )
    pairs = [("backward", entry.text("backward")), ("forward", forward.text if forward is not None else None)]
    written = ("inplace", "view", "intermediate", "composite", "invoke")
    return table.Operator(
        name,
        table.Declaration(
            "backward_op" if entry.is_backward else "op",
            entry.at(entry.place),
            arguments if entry.is_sound else None,
            returns if entry.is_sound else None,
            unresolved="" if entry.is_sound else "its arguments or outputs are malformed",
        ),
        aliases=(entry.name,) if entry.name != name else (),
        implementations=tuple(_implementations(checks.get(id(entry), []))),
        related=tuple(table.Related(kind, other, _at(entry, kind)) for kind, other in pairs if other),
        details=tuple(table.Detail(field, text, _at(entry, field)) for field in written if (text := entry.text(field))),
    )


def _at(entry: OpEntry, field: str) -> Place:
    return entry.at(entry.get(field) or entry.place)


def _argument(entry: OpEntry, arg: Arg) -> table.Argument:
    return table.Argument(
        arg.name,
        arg.type,
        role="input" if arg.is_tensor else "attribute",
        default=arg.default,
        optional=arg.name in entry.optional,
        mutated=any(first.text == arg.name for first, _ in entry.pairs("inplace")),
        place=entry.at(entry.part(arg.span, "args")),
    )


def _implementations(checks: list[FunctionCheck]) -> Iterator[table.Implementation]:
    for check in checks:
        place = next((item.place for item in check.functions), None)
        yield table.Implementation(
            "fake" if check.kernel is None else "kernel",
            check.name,
            place,
            signatures=tuple(_signatures(check)),
            registered=check.entry.at(check.place),
        )


def _signatures(check: FunctionCheck) -> Iterator[table.Signature]:
    """The parameters for arguments of the operator, under the names of these; the context and outputs are left out."""
    passed = passed_to(check)
    for item in check.functions[:1]:
        parameters = taken(check, item)
        if passed is None or len(parameters) < len(passed):
            yield table.Signature(
                check.name, item.place, None, unresolved="its parameters differ from the passed arguments"
            )
        elif check.kernel is not None:
            pairs = [pair for pair in zip(passed, parameters, strict=False) if pair[0].name in check.entry.arguments]
            types = ((one.name, " ".join(to.type.split()), to.span) for one, to in pairs)
            arguments = tuple(table.Argument(name, type_, place=Place(item.path, span)) for name, type_, span in types)
            yield table.Signature(check.name, item.place, arguments)
