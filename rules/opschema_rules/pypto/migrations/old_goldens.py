"""Reads the ``golden.py`` of an old test: its cases and tolerances, beside the functions that it defines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import libcst as cst
import msgspec

from opschema_cli.source.python_tree import PythonTree, Statement
from opschema_rules.pypto.migrations.old_statements import Piece, Unclear, comments_in, lines_of, targets_of

_DEFAULT_CASE = "Default"
_OF_GOLDEN = ("__outputs__", "RTOL", "ATOL", "ALL_CASES", "DEFAULT_CASE")
_TOLERANCES = ("RTOL", "ATOL")
_RUNS = "run_golden_test"
_LISTS = re.compile(r"(?:typing\.)?[Ll]ist\b")


class Case(msgspec.Struct, frozen=True):
    """One set of parameters; ``name`` is written as in its file, with quotes."""

    name: str
    params: Piece
    default: bool


class Golden(msgspec.Struct, frozen=True):
    """The settings in a ``golden.py``; ``removed`` are the statements that set them, ``unused`` the names that only these
    statements use.
    """

    tree: PythonTree
    cases: Sequence[Case]
    cases_comments: tuple[str, ...]
    tolerances: Mapping[str, str]
    outputs: int | None
    removed: Sequence[Statement]
    unused: Sequence[str]


def read_golden(tree: PythonTree) -> Golden:
    """Read a ``golden.py``.

    Raises:
        Unclear: its functions need what a scene test does not give, or it says something in another way.
    """
    statements = [line.statement for line in lines_of(tree)]
    values = {
        name: statement
        for statement in statements
        if isinstance(statement, cst.Assign)
        for name in targets_of(statement) & set(_OF_GOLDEN)
    }
    script = [item for item in statements if isinstance(item, cst.If)]
    if len(script) > 1 or not all(_runs(tree, item) for item in script):
        raise Unclear("`golden.py` does more than to define its functions when it runs")
    removed: list[Statement] = [*values.values(), *script]
    _check_names(tree, values, script)
    _check_functions(tree, removed)
    outputs = values["__outputs__"].value if "__outputs__" in values else None
    listed = isinstance(outputs, cst.List | cst.Tuple)
    return Golden(
        tree=tree,
        cases=list(_cases(tree, values)),
        cases_comments=_above(tree, values.get("ALL_CASES")),
        tolerances={name: _text(tree, item.value) for name, item in values.items() if name in _TOLERANCES},
        outputs=len(outputs.elements) if listed and isinstance(outputs, cst.List | cst.Tuple) else None,
        removed=removed,
        unused=[_RUNS] if script else [],
    )


def _runs(tree: PythonTree, script: cst.If) -> bool:
    """Whether a condition belongs to a script that only calls the old runner."""
    body = script.body.body
    line = body[0] if len(body) == 1 else None
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    call = small.value if isinstance(small, cst.Expr) else None
    named = isinstance(call, cst.Call) and tree.code(call.func) == _RUNS
    return "__name__" in tree.code(script.test) and script.orelse is None and named


def _check_names(tree: PythonTree, values: Mapping[str, Statement], script: Sequence[Statement]) -> None:
    """Check that no remaining code needs a removed name; tolerances remain available to cases."""
    for name in (*_OF_GOLDEN, "TENSOR_ORDER"):
        own = values.values() if name in _TOLERANCES else [values[name]] if name in values else []
        if any(_outside(tree, node, [*own, *script]) for node in tree.names(name)):
            raise Unclear(f"the code of `golden.py` uses `{name}`")


def _outside(tree: PythonTree, node: cst.CSTNode, statements: Sequence[Statement]) -> bool:
    at = tree.span(node).start
    return not any(start <= at < end for start, end in map(tree.outer, statements))


def _check_functions(tree: PythonTree, removed: Sequence[Statement]) -> None:
    """Check that the functions get the arguments they need, and return what a scene test expects."""
    if any(_outside(tree, node, removed) for node in tree.strings("name")):
        raise Unclear("the code of `golden.py` may ask for the name of its case")
    if tree.names("numpy") or tree.names("np"):
        raise Unclear("`golden.py` may return NumPy arrays")
    if not tree.names("compute_golden"):
        raise Unclear("`golden.py` has no `compute_golden`")
    made = tree.definitions("generate_inputs")
    function = made[0] if len(made) == 1 else None
    if not isinstance(function, cst.FunctionDef) or not _gives_list(tree, function):
        raise Unclear("it is not certain that `generate_inputs` of `golden.py` returns a list")


def _gives_list(tree: PythonTree, function: cst.FunctionDef) -> bool:
    if function.returns is not None:
        return _LISTS.match(tree.code(function.returns.annotation)) is not None
    returned = [item.value for item in tree.walk(function) if isinstance(item, cst.Return)]
    return bool(returned) and all(isinstance(item, cst.List) for item in returned)


def _cases(tree: PythonTree, values: Mapping[str, cst.Assign]) -> Iterator[Case]:
    if "ALL_CASES" not in values:
        yield Case('"default"', Piece("{}"), default=True)
        return
    cases, default = values["ALL_CASES"].value, _case_name(values)
    elements = cases.elements if isinstance(cases, cst.Dict) else []
    keys = [item.key for item in elements if isinstance(item, cst.DictElement)]
    names = [item.evaluated_value for item in keys if isinstance(item, cst.SimpleString)]
    if default not in names or len(set(names)) != len(elements):
        raise Unclear("the cases of `golden.py` are not all written out")
    at = tree.span(cases).start + 1
    for item in elements:
        assert isinstance(item, cst.DictElement)
        assert isinstance(item.key, cst.SimpleString)
        text, span = _text(tree, item.value), tree.outer(item.value)
        comments = comments_in(tree.text[at : tree.span(item.key).start].lstrip(" \t,"))
        yield Case(tree.code(item.key), Piece(text, comments), item.key.evaluated_value == default)
        at = span.end


def _text(tree: PythonTree, value: cst.BaseExpression) -> str:
    """Return a value as it is written, for deeper indentation."""
    strings = (node for node in tree.walk(value) if isinstance(node, cst.SimpleString | cst.FormattedString))
    if any("\n" in tree.code(node) for node in strings):
        raise Unclear("`golden.py` has a string of several lines")
    return tree.text[slice(*tree.outer(value))]


def _case_name(values: Mapping[str, cst.Assign]) -> object:
    value = values["DEFAULT_CASE"].value if "DEFAULT_CASE" in values else None
    return _DEFAULT_CASE if value is None else value.evaluated_value if isinstance(value, cst.SimpleString) else None


def _above(tree: PythonTree, statement: Statement | None) -> tuple[str, ...]:
    if statement is None:
        return ()
    return comments_in(tree.text[tree.top(statement) : tree.line_start(tree.outer(statement).start)])
