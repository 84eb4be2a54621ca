"""The pack's operators for the table: entries with their kernels and gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opschema_cli.operators.model import (
    Argument,
    Declaration,
    Detail,
    Implementation,
    Operator,
    Related,
    Return,
    Signature,
)
from opschema_cli.project import Project
from opschema_cli.source.text import Place
from opschema_rules.paddle.cpp import FunctionCheck, cpp_names
from opschema_rules.paddle.cpp_types import passed_to
from opschema_rules.paddle.detection import PaddleOptions
from opschema_rules.paddle.load import read_tree
from opschema_rules.paddle.model import OpEntry

_PREFIXES = {"": "", "fused": "", "sparse": "sparse::", "strings": "strings::"}
"""Namespaces of the C++ API; operators of other groups are told apart by the group."""


def operators(project: Project, options: PaddleOptions) -> Iterator[Operator]:
    """The operators and gradients of all files."""
    tree = read_tree(project, options)
    checks: dict[int, list[FunctionCheck]] = {}
    for check in cpp_names(tree).checks():
        checks.setdefault(id(check.entry), []).append(check)
    seen = set[str]()
    for entry in tree.entries:
        name = f"{_PREFIXES.get(entry.listed.group, f'{entry.listed.group}::')}{entry.name}".replace(" ", "_")
        if entry.name and name not in seen:
            seen.add(name)
            yield _operator(name, entry, checks)


def _operator(name: str, entry: OpEntry, checks: Mapping[int, list[FunctionCheck]]) -> Operator:
    outputs, forward = entry.get("output"), entry.forward[0]
    unresolved = "" if entry.is_sound else "its arguments or outputs are malformed"
    arguments = [_argument(entry, arg.name) for arg in entry.signature.args]
    returns = [
        Return(item.name, item.type, place=entry.at(entry.inner(outputs, item.span)) if outputs is not None else None)
        for item in entry.signature.outputs
    ]
    pairs = [("backward", entry.text("backward"), entry.get("backward"))]
    pairs += [("forward", forward.text if forward is not None else None, entry.get("forward"))]
    written = ("inplace", "view", "intermediate", "composite", "invoke")
    return Operator(
        name,
        Declaration(
            "backward_op" if entry.is_backward else "op",
            entry.at(entry.place),
            tuple(arguments) if entry.is_sound else None,
            tuple(returns) if entry.is_sound else None,
            unresolved=unresolved,
        ),
        aliases=(entry.name,) if entry.name != name else (),
        implementations=tuple(_implementations(checks.get(id(entry), []))),
        related=tuple(
            Related(kind, other, entry.at(node)) for kind, other, node in pairs if other and node is not None
        ),
        details=tuple(Detail(field, text, _at(entry, field)) for field in written if (text := entry.text(field))),
    )


def _at(entry: OpEntry, field: str) -> Place | None:
    node = entry.get(field)
    return entry.at(node) if node is not None else None


def _argument(entry: OpEntry, name: str) -> Argument:
    arg, node = entry.arguments[name], entry.get("args")
    mutated = any(first.text == name for _, first, _ in entry.pairs("inplace"))
    return Argument(
        name,
        arg.type,
        role="input" if arg.is_tensor else "attribute",
        default=arg.default,
        optional=name in entry.optional,
        mutated=mutated,
        place=entry.at(entry.inner(node, arg.span)) if node is not None else None,
    )


def _implementations(checks: list[FunctionCheck]) -> Iterator[Implementation]:
    for check in checks:
        place = next((Place(item.path, item.function.name_span) for item in check.functions), None)
        yield Implementation(
            "fake" if check.kernel is None else "kernel",
            check.name,
            place,
            signatures=tuple(_signatures(check)),
            registered=check.entry.at(check.place),
        )


def _signatures(check: FunctionCheck) -> Iterator[Signature]:
    """The parameters for arguments of the operator, under the names of these; the context and outputs are left out."""
    passed = passed_to(check.entry, "infer_meta" if check.kernel is None else "kernel", check.kernel)
    for item in check.functions[:1]:
        parameters = item.function.parameters[0 if check.kernel is None else 1 :]
        place = Place(item.path, item.function.name_span)
        if passed is None or len(parameters) < len(passed):
            yield Signature(check.name, place, None, unresolved="its parameters differ from what is passed")
            continue
        taken = [
            Argument(given.name, " ".join(one.type.split()), place=Place(item.path, one.span))
            for given, one in zip(passed, parameters, strict=False)
            if given.name in check.entry.arguments
        ]
        if check.kernel is not None:
            yield Signature(check.name, place, tuple(taken))
