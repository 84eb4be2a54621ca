"""Changes of FlagGems' table of kernels for torch's operators and of its functions: mistakes, and such as only look wrong.

They are made from the table, the functions and torch's own schemas, without regard to the rules. All changes are made at once:
each has an operator of its own, and a finding counts for a change if it names that operator.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tests.corpus.seeded import Texts

PACKAGE = "src/flag_gems"
TABLE = f"{PACKAGE}/__init__.py"
_OPS = f"{PACKAGE}/ops/__init__.py"

Edit = tuple[str, int, int, str]
"""A file, a range of its bytes and what replaces them."""


class Row(msgspec.Struct, frozen=True):
    """A row of the table whose function is defined in a file of its package, and fits torch's schema by number and name."""

    name: str
    function: ast.FunctionDef
    path: str
    at: tuple[int, int]
    name_at: tuple[int, int]
    function_at: tuple[int, int]
    schema: Any


class Fault(msgspec.Struct, frozen=True):
    """A change, and the operators that a finding about it may name."""

    kind: str
    operators: tuple[str, ...]
    edits: tuple[Edit, ...]


class Tree:
    """The table and the functions of a checkout."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.torch: Any = importlib.import_module("torch")
        self._starts: dict[str, list[int]] = {}
        self._parsed: dict[str, ast.Module] = {}
        self.rows = list(self._rows())

    def parsed(self, path: str) -> ast.Module:
        if path not in self._parsed:
            self._parsed[path] = ast.parse(self.texts[path])
        return self._parsed[path]

    def span(self, path: str, node: ast.AST) -> tuple[int, int]:
        """The range of a node, in bytes, as CPython counts columns."""
        if path not in self._starts:
            starts = [0]
            for line in self.texts[path].encode().splitlines(keepends=True):
                starts.append(starts[-1] + len(line))
            self._starts[path] = starts
        starts, place = self._starts[path], node
        return (
            starts[place.lineno - 1] + place.col_offset,  # type: ignore[attr-defined]
            starts[place.end_lineno - 1] + place.end_col_offset,  # type: ignore[attr-defined]
        )

    def schema(self, name: str) -> Any:
        """The schema of an operator of torch, or nothing."""
        base, _, overload = name.partition(".")
        try:
            return self.torch._C._get_schema(f"aten::{base}", overload)
        except RuntimeError:
            return None

    def _functions(self) -> Mapping[str, tuple[str, ast.FunctionDef]]:
        """The functions that the package's ``ops`` exports, without those that a decorator wraps."""
        found: dict[str, tuple[str, ast.FunctionDef]] = {}
        for node in self.parsed(_OPS).body:
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                path = f"src/{node.module.replace('.', '/')}.py"
                defined = {
                    item.name: item
                    for item in (self.parsed(path).body if path in self.texts else ())
                    if isinstance(item, ast.FunctionDef) and not item.decorator_list
                }
                for name in node.names:
                    if name.asname is None and name.name in defined:
                        found[name.name] = path, defined[name.name]
        return found

    def _rows(self) -> Iterator[Row]:
        functions = self._functions()
        (table,) = (
            node.value.elts
            for node in self.parsed(TABLE).body
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Tuple)
            and any(isinstance(item, ast.Name) and item.id == "_FULL_CONFIG" for item in node.targets)
        )
        rows = [row.elts for row in table if isinstance(row, ast.Tuple)]
        used = Counter(row[1].id for row in rows if isinstance(row[1], ast.Name))
        listed = Counter(row[0].value for row in rows if isinstance(row[0], ast.Constant))
        for row, (name, function, *more) in zip(table, rows, strict=True):
            if more or not isinstance(function, ast.Name) or not isinstance(name, ast.Constant):
                continue
            known = functions.get(function.id)
            operator = str(name.value)
            schema = self.schema(operator)
            if known is None or schema is None or used[function.id] > 1 or listed[name.value] > 1:
                continue
            if _fits(schema, known[1].args):
                places = [self.span(TABLE, item) for item in (row, name, function)]
                yield Row(operator, known[1], known[0], *places, schema)


def _fits(schema: Any, args: ast.arguments) -> bool:
    """Whether a function takes as many arguments by position as the schema has, and the same by name."""
    by_name = {item.name for item in schema.arguments if item.kwarg_only}
    by_place = [item for item in schema.arguments if not item.kwarg_only]
    return (
        args.vararg is None
        and args.kwarg is None
        and len(args.args) == len(by_place)
        and {item.arg for item in args.kwonlyargs} == by_name
    )


def _by_place(row: Row) -> list[Any]:
    return [item for item in row.schema.arguments if not item.kwarg_only]


def _signature(tree: Tree, row: Row, change: Callable[[ast.arguments], None]) -> tuple[Edit, ...]:
    """The edit that writes a function's parameters anew."""
    changed = ast.parse(ast.unparse(ast.FunctionDef(row.function.name, row.function.args, [ast.Pass()], [], lineno=0)))
    (function,) = changed.body
    assert isinstance(function, ast.FunctionDef)
    change(function.args)
    text = tree.texts[row.path].encode()
    start, end = tree.span(row.path, row.function)
    opening = text.index(b"(", start)
    body = tree.span(row.path, row.function.body[0])[0]
    closing = text.rindex(b":", opening, min(end, body))
    arrow = text.rfind(b"->", opening, closing)
    closing = text.rindex(b")", opening, arrow if arrow != -1 else closing)
    return ((row.path, opening + 1, closing, ast.unparse(function.args)),)


def _drop_last(args: ast.arguments) -> None:
    args.args.pop()
    if args.defaults:
        args.defaults.pop()


def _add_required(args: ast.arguments) -> None:
    args.args.insert(len(args.args) - len(args.defaults), ast.arg("block"))


def _swap_first(args: ast.arguments) -> None:
    args.args[0], args.args[1] = args.args[1], args.args[0]


def _rename_keyword(args: ast.arguments) -> None:
    args.kwonlyargs[0].arg = f"{args.kwonlyargs[0].arg}_value"


def _drop_keyword(args: ast.arguments) -> None:
    args.kwonlyargs.pop()
    args.kw_defaults.pop()


def _require(args: ast.arguments) -> None:
    args.defaults.clear()


def _force_names(args: ast.arguments) -> None:
    last = args.args.pop()
    args.kwonlyargs.insert(0, last)
    args.kw_defaults.insert(0, args.defaults.pop() if args.defaults else None)


def _add_optional(args: ast.arguments) -> None:
    args.args.append(ast.arg("block"))
    args.defaults.append(ast.Constant(128))


def _take_all(args: ast.arguments) -> None:
    args.vararg, args.kwarg = ast.arg("more"), ast.arg("options")


def _by_either(args: ast.arguments) -> None:
    """Parameters that are passed by name also accept a position."""
    args.args += args.kwonlyargs
    args.defaults += [item for item in args.kw_defaults if item is not None]
    args.kwonlyargs, args.kw_defaults = [], []


def _give_defaults(args: ast.arguments) -> None:
    args.defaults = [ast.Constant(None) for _ in args.args]


_Change = Callable[[ast.arguments], None]

_Test = Callable[[Row], bool]


def _has_defaults(row: Row) -> bool:
    args = row.function.args
    optional = [item for item in _by_place(row) if item.has_default_value()]
    return bool(args.defaults) and len(optional) >= len(args.defaults)


SIGNATURES: Mapping[str, tuple[_Change, _Test]] = {
    "a parameter dropped": (_drop_last, lambda row: len(row.function.args.args) > 1),
    "a required parameter added": (_add_required, lambda row: True),
    "parameters reordered": (
        _swap_first,
        lambda row: (
            [item.arg for item in row.function.args.args] == [item.name for item in _by_place(row)]
            and len(_by_place(row)) > 1
            and len(row.function.args.args) - len(row.function.args.defaults) > 1
        ),
    ),
    "a keyword-only parameter renamed": (_rename_keyword, lambda row: bool(row.function.args.kwonlyargs)),
    "a keyword-only parameter dropped": (_drop_keyword, lambda row: bool(row.function.args.kwonlyargs)),
    "defaults dropped": (_require, _has_defaults),
    "a parameter taken by name alone": (
        _force_names,
        lambda row: len(row.function.args.args) > 1 and not row.function.args.kwonlyargs,
    ),
}
"""Mistakes in a function's parameters, with the rows in which they are one."""

RIGHT: Mapping[str, tuple[_Change, _Test]] = {
    "an optional parameter added": (_add_optional, lambda row: not row.function.args.kwonlyargs),
    "anything else accepted": (_take_all, lambda row: True),
    "keyword-only parameters that accept a position": (
        _by_either,
        lambda row: bool(row.function.args.kwonlyargs) and None not in row.function.args.kw_defaults,
    ),
    "defaults that the schema does not have": (
        _give_defaults,
        lambda row: (
            not row.function.args.defaults and "out" not in row.name and None not in row.function.args.kw_defaults
        ),
    ),
}
"""Changes of a function's parameters after which all calls still work."""


class Chooser:
    """Rows for each kind of change, none of them twice."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._left = sorted(tree.rows, key=lambda row: hashlib.sha256(row.name.encode()).digest())
        self._files: set[str] = set()

    def take(self, count: int, test: _Test, *, function: bool = False) -> list[Row]:
        """The next rows that pass a test; with ``function``, their functions are in files that nothing else changes."""
        found: list[Row] = []
        for row in list(self._left):
            if len(found) == count:
                break
            if test(row) and not (function and row.path in self._files):
                self._left.remove(row)
                found.append(row)
                if function:
                    self._files.add(row.path)
        return found


def faults(tree: Tree, choose: Chooser) -> Iterator[Fault]:
    """Mistakes in the table, and in functions that it lists."""
    yield from _wrong_names(tree, choose)
    yield from _wrong_functions(tree, choose)
    for kind, (change, test) in SIGNATURES.items():
        for row in choose.take(3, test, function=True):
            yield Fault(kind, (row.name,), _signature(tree, row, change))
    yield from _wrong_results(tree, choose)


def _wrong_names(tree: Tree, choose: Chooser) -> Iterator[Fault]:
    renamed = choose.take(4, lambda row: "." not in row.name and len(row.name) > 3)
    for row in renamed:
        wrong = row.name[:-1] + row.name[-1] * 2 if row.name[-1] != "_" else f"{row.name[:-2]}s_"
        yield _table(tree, "a wrong name", row, name=wrong)
    for row in choose.take(3, lambda row: "." in row.name):
        yield _table(tree, "a wrong overload", row, name=f"{row.name}s")
    for row in choose.take(3, lambda row: "." in row.name and tree.schema(row.name.partition(".")[0]) is None):
        yield _table(tree, "an overload dropped", row, name=row.name.partition(".")[0])
    for row in choose.take(3, lambda row: True):
        text = tree.texts[TABLE].encode()[slice(*row.at)].decode()
        yield Fault("a row twice", (row.name,), ((TABLE, row.at[0], row.at[0], f"{text},\n    "),))


def _wrong_functions(tree: Tree, choose: Chooser) -> Iterator[Fault]:
    unary = choose.take(3, lambda row: [len(_by_place(row)), len(row.schema.arguments)] == [1, 1])
    ternary = choose.take(3, lambda row: len(row.function.args.args) - len(row.function.args.defaults) >= 3)
    for row, other in zip(unary, ternary, strict=True):
        yield _table(tree, "a function with other parameters", row, function=other.function.name)
    for row in choose.take(3, lambda row: _out_of(tree, row) is not None):
        out = _out_of(tree, row)
        assert out is not None
        yield _table(tree, "the function without `out`", row, name=out)
    by_name = {row.name: row for row in tree.rows}
    for row in choose.take(2, lambda row: row.name.endswith("_") and row.name[:-1] in by_name):
        yield _table(tree, "the function that is not in-place", row, function=by_name[row.name[:-1]].function.name)


def _wrong_results(tree: Tree, choose: Chooser) -> Iterator[Fault]:
    for row in choose.take(3, lambda row: _last(row) is not None and row.name.endswith("_"), function=True):
        value = _last(row)
        assert value is not None
        start, end = tree.span(row.path, value)
        yield Fault("no result", (row.name,), ((row.path, start - len("return "), end, "pass"),))
    for row in choose.take(3, lambda row: isinstance(_last(row), ast.Tuple), function=True):
        value = _last(row)
        assert isinstance(value, ast.Tuple)
        end = tree.span(row.path, value.elts[-1])[1]
        yield Fault("one more result", (row.name,), ((row.path, end, end, ", None"),))


def harmless(tree: Tree, choose: Chooser) -> Iterator[Fault]:
    """Changes after which everything still works."""
    for kind, (change, test) in RIGHT.items():
        for row in choose.take(2, test, function=True):
            yield Fault(kind, (row.name,), _signature(tree, row, change))
    for row in choose.take(2, lambda row: True, function=True):
        yield Fault("all parameters renamed", (row.name,), tuple(_renamed(tree, row)))
    for row in choose.take(1, lambda row: True):
        end = row.at[1] - 1
        yield Fault("a row with a condition", (row.name,), ((TABLE, end, end, ', lambda: torch_ge("2.5")'),))
    for row in choose.take(1, lambda row: True):
        yield Fault(
            "a row in other quotes, with a comment", (row.name,), ((TABLE, *row.name_at, f"# note\n    '{row.name}'"),)
        )


def _table(tree: Tree, kind: str, row: Row, *, name: str = "", function: str = "") -> Fault:
    edits = []
    if name:
        edits.append((TABLE, *row.name_at, f'"{name}"'))
    if function:
        edits.append((TABLE, *row.function_at, function))
    return Fault(kind, (name or row.name,), tuple(edits))


def _out_of(tree: Tree, row: Row) -> str | None:
    """The out variant of a row's operator that the table does not list."""
    base, _, overload = row.name.partition(".")
    name = f"{base}.{f'{overload}_out' if overload else 'out'}"
    listed = f'"{name}"' in tree.texts[TABLE]
    return name if not listed and not base.endswith("_") and tree.schema(name) is not None else None


def _last(row: Row) -> ast.expr | None:
    """The value of a function whose only ``return`` is its last statement."""
    found = [item for item in ast.walk(row.function) if isinstance(item, ast.Return)]
    last = row.function.body[-1]
    return last.value if isinstance(last, ast.Return) and len(found) == 1 else None


def _renamed(tree: Tree, row: Row) -> Iterator[Edit]:
    """Other names for all parameters that are passed by position."""
    names = {item.arg for item in row.function.args.args}
    for node in ast.walk(row.function):
        if isinstance(node, ast.Name) and node.id in names:
            start, end = tree.span(row.path, node)
            yield row.path, start, end, f"{node.id}_1"
        elif isinstance(node, ast.arg) and node.arg in names:
            start, _ = tree.span(row.path, node)
            yield row.path, start, start + len(node.arg.encode()), f"{node.arg}_1"


def changed(texts: Texts, changes: Sequence[Fault]) -> dict[str, str]:
    """The files after changes, none of which overlap."""
    edits = sorted({edit for item in changes for edit in item.edits}, reverse=True)
    found: dict[str, bytes] = {}
    for path, start, end, new in edits:
        text = found.get(path, texts[path].encode())
        found[path] = text[:start] + new.encode() + text[end:]
    for path, text in found.items():
        ast.parse(text, path)
    return {path: text.decode() for path, text in found.items()}


def names(message: str, operator: str) -> bool:
    """Whether a finding's message names an operator."""
    return re.search(rf"aten::{re.escape(operator)}`", message) is not None
