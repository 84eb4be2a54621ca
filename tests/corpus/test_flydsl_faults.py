"""Faults put into FlyDSL's own kernels, 72 of 12 kinds, and the rules that report them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from opschema_cli.evaluation.expected_errors import expects_failure
from opschema_cli.project import Project
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Edit, Span, apply_edits
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.flydsl.code import read_tree
from opschema_rules.flydsl.detection import FlydslOptions
from opschema_rules.flydsl.model import Call, FlyTree, Kind
from opschema_rules.flydsl.pack import PACK
from opschema_rules.flydsl.usage import is_unsure

EACH = 6
"""Faults of a kind."""


class Fault(msgspec.Struct, frozen=True):
    """An edit of a file, and the rule that has to report it."""

    code: str
    path: str
    edit: Edit


def _calls(tree: FlyTree, kind: str = "kernel") -> Iterator[Call]:
    """A call of each kernel that is launched there and then, in code that is meant to work."""
    for traced in tree.traced:
        for call in traced.calls[:1]:
            if (
                traced.kind == kind
                and not call.unpacks
                and call.launch is not None
                and not is_unsure(tree, call.body, call.expr)
            ):
                yield call


def _fault(code: str, call: Call, span: Span, text: str) -> Fault:
    return Fault(code, call.body.file.path, Edit(span, text))


def _argument_is_missing(tree: FlyTree) -> Iterator[Fault]:
    for call in _calls(tree):
        given = call.expr.positional()
        if len(given) == len(call.target.call_parameters) > 1 and not any(
            item.param.default for item in call.target.parameters
        ):
            yield _fault("FLY211", call, Span(given[-2].end, given[-1].end), "")


def _argument_too_many(tree: FlyTree) -> Iterator[Fault]:
    for call in _calls(tree):
        given = call.expr.positional()
        if len(given) == len(call.target.call_parameters) > 0:
            yield _fault("FLY211", call, Span(given[-1].end, given[-1].end), ", 0")


def _argument_of_another_name(tree: FlyTree) -> Iterator[Fault]:
    for call in _calls(tree):
        if call.expr.items[1:]:
            end = call.expr.items[-1].end
            yield _fault("FLY211", call, Span(end, end), ", no_such_parameter=0")


def _number_for_a_tensor_or_integer(tree: FlyTree) -> Iterator[Fault]:
    for call in _calls(tree):
        for item in call.target.call_parameters:
            value = call.argument(item.name)
            if item.kind is Kind.NUMBER and value is not None and value.kind == "name":
                yield _fault("FLY218", call, value.span, "4")
                break


def _launch_argument(tree: FlyTree, keyword: str) -> Iterator[tuple[Call, Expr]]:
    for call in _calls(tree):
        value = call.launch.keyword(keyword) if call.launch is not None else None
        if value is not None:
            yield call, value


def _block_of_four(tree: FlyTree) -> Iterator[Fault]:
    for call, block in _launch_argument(tree, "block"):
        if block.kind == "tuple" and len(block.items) == 3:
            yield _fault("FLY214", call, Span(block.items[-1].end, block.items[-1].end), ", 1")


def _grid_of_another_name(tree: FlyTree) -> Iterator[Fault]:
    for call, grid in _launch_argument(tree, "grid"):
        text = call.body.file.source.text
        at = text.rindex("grid", 0, grid.start)
        yield _fault("FLY214", call, Span(at, at + 4), "grids")


def _stream_is_ignored(tree: FlyTree) -> Iterator[Fault]:
    for call, stream in _launch_argument(tree, "stream"):
        launcher = tree.traced_of(call.body)
        if launcher is not None and any(item.kind is Kind.STREAM for item in launcher.parameters):
            comma = call.body.file.source.text.rindex(",", 0, stream.start)
            yield _fault("FLY219", call, Span(comma, stream.end), "")


def _launch_is_missing(tree: FlyTree) -> Iterator[Fault]:
    for call in _calls(tree):
        if call.launch is not None and call.launch.start == call.expr.start:
            yield _fault("FLY213", call, Span(call.expr.end, call.launch.end), "")


def _wraps(code: str, text: str) -> Callable[[FlyTree], Iterator[Fault]]:
    def faults(tree: FlyTree) -> Iterator[Fault]:
        for wrap in tree.wraps:
            end = wrap.whole.end
            if not expects_failure(tree.bodies, wrap.body, wrap.expr.start):
                yield Fault(code, wrap.body.file.path, Edit(Span(end, end), text))

    return faults


def _python_annotation(tree: FlyTree) -> Iterator[Fault]:
    for traced in tree.traced:
        for item in traced.parameters:
            annotation = item.param.annotation
            if traced.kind == "kernel" and item.dsl == "Int32" and annotation is not None and traced.calls:
                yield Fault("FLY206", traced.body.file.path, Edit(annotation.span, "int"))
                break


KINDS: dict[str, Callable[[FlyTree], Iterator[Fault]]] = {
    "an argument is missing": _argument_is_missing,
    "an argument too many": _argument_too_many,
    "an argument of another name": _argument_of_another_name,
    "a plain number": _number_for_a_tensor_or_integer,
    "a block of four": _block_of_four,
    "a grid of another name": _grid_of_another_name,
    "the stream is ignored": _stream_is_ignored,
    "the launch is missing": _launch_is_missing,
    "a removed method": _wraps("FLY207", ".mark_static()"),
    "no power of two": _wraps("FLY210", ".mark_shape_dynamic(0, divisibility=12)"),
    "two leading dimensions": _wraps(
        "FLY210", ".mark_layout_dynamic(leading_dim=1).mark_layout_dynamic(leading_dim=0)"
    ),
    "a Python annotation": _python_annotation,
}


def test_faults_in_kernels_are_reported(corpus: Path) -> None:
    root = corpus / "flydsl" / "11c4174d"
    files = {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in root.rglob("*.py")
        if os.access(path, os.R_OK)
    }
    tree = read_tree(Project(Workspace(root)), FlydslOptions())
    before = _found(files)
    missed: list[str] = []
    rounds: list[dict[str, tuple[str, Fault]]] = []
    for kind, make in KINDS.items():
        by_file = {fault.path: fault for fault in make(tree)}
        assert len(by_file) >= EACH, kind
        for fault in sorted(by_file.values(), key=lambda item: sum(item.path in others for others in rounds))[:EACH]:
            free = next((item for item in rounds if fault.path not in item), None)
            if free is None:
                rounds.append(free := {})
            free[fault.path] = (kind, fault)
    for faults in rounds:
        changed = {path: apply_edits(files[path], [fault.edit]) for path, (_, fault) in faults.items()}
        after = _found({**files, **changed})
        missed += [
            f"{kind}: {path}:{files[path].count(chr(10), 0, fault.edit.span.start) + 1}"
            for path, (kind, fault) in faults.items()
            if after[fault.code, path] <= before[fault.code, path]
        ]
    assert missed == []


def _found(files: dict[str, str]) -> Counter[tuple[str, str]]:
    """The number of findings by rule and file."""
    return Counter((item.code, item.place.path) for item in lint_files([PACK], files).diagnostics)
