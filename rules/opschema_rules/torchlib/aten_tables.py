"""Tables of kernels for operators of torch: rows of a name and a Python function, which the code registers one by one.

A table is a tuple or list of at least three rows, in a file that makes a library of the namespace ``aten``. Rows with more than
two items may have a condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import Func, distinct
from opschema_cli.project import Project
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Program
from opschema_cli.source.python import Expr, Import, PythonFile
from opschema_cli.source.resolution import Unresolved
from opschema_cli.source.text import Place
from opschema_rules.torchlib.model import Registration, Row, StrayRegistration, Tree
from opschema_rules.torchlib.sightings import ROWS

_NAME = re.compile(r"(?:aten::)?([A-Za-z_]\w*(?:\.\w+)?)\Z")

FEWEST = 3
"""The least number of rows of a table."""

MAX_IMPORTS = 3
"""Maximum length of a chain of modules from which a file imports the functions of its rows."""


def table_kernels(tree: Tree, paths: Iterable[str]) -> Iterator[StrayRegistration]:
    """Yield the kernels that tables in some files list, except those that the code visibly registers."""
    tables = dict(_tables(tree.project, paths))
    known = {(item.name, id(item.registration.function)) for item in tree.of_torch}
    for file, rows in tables.items():
        _load(tree.project, tree.bodies.program, file, {row.function.text.partition(".")[0] for row in rows})
        tree.rows.extend(rows)
        for row in rows:
            function = _function(tree.evaluator, file, row.function.text)
            if (f"aten::{row.name}", id(function)) not in known:
                yield StrayRegistration(tree, f"aten::{row.name}", _registration(row, function))


def _function(evaluator: Evaluator, file: PythonFile, dotted: str) -> Body | None:
    """Return the function that a name refers to after its module has run; None if that is not certain."""
    first, *rest = dotted.split(".")
    values = evaluator.lookup(evaluator.frames.module(file), first)
    for name in rest:
        values = distinct(item for value in values for item in evaluator.attribute(value, name))
    return values[0].body if len(values) == 1 and isinstance(values[0], Func) else None


def _registration(row: Row, function: Body | None) -> Registration:
    found = function if function is not None else Unresolved("its function is not known")
    return Registration("kernel", row.place, None, found, conditional=row.conditional, form="row")


def _tables(project: Project, paths: Iterable[str]) -> Iterator[tuple[PythonFile, list[Row]]]:
    for path, count in project.scan(ROWS, sorted(paths)):
        file = project.python(path) if count >= FEWEST else None
        rows = [row for expr in _displays(file) for row in _rows(file, expr)] if file is not None else []
        if file is not None and rows:
            yield file, rows


def _displays(file: PythonFile) -> Iterator[Expr]:
    """The tuples and lists that names of a module are bound to, and those that it passes to calls."""
    yield from (item.value for item in file.body.assigns if item.value is not None)
    for call in file.body.calls:
        yield from call.items[1:]


def _rows(file: PythonFile, table: Expr) -> list[Row]:
    """Return the rows of a table; empty for any other expression."""
    if table.kind not in ("tuple", "list"):
        return []
    place = Place(file.path, table.span)
    found = [row for item in table.items if (row := _row(file, item, place)) is not None]
    return found if len(found) >= FEWEST and len(found) * 2 > len(table.items) else []


def _row(file: PythonFile, item: Expr, table: Place) -> Row | None:
    if item.kind not in ("tuple", "list") or len(item.items) < 2:
        return None
    name, function = item.items[:2]
    found = _NAME.match(name.value) if isinstance(name.value, str) else None
    if found is None or function.kind != "name":
        return None
    return Row(found[1], Place(file.path, name.span), table, function, len(item.items) > 2)


def _load(project: Project, program: Program, file: PythonFile, names: frozenset[str] | set[str]) -> None:
    """Have the modules parsed from which a file imports some names, each level of imports at once."""
    files, seen = [file], {file.path}
    for _ in range(MAX_IMPORTS):
        found = {path for one in files for item in one.body.imports for path in _modules(program, one, item, names)}
        fresh = sorted(found - seen)
        seen.update(fresh)
        project.load_python(fresh)
        files = [one for one in map(project.python, fresh) if one is not None]


def _modules(program: Program, file: PythonFile, item: Import, names: Iterable[str]) -> Iterator[str]:
    module = program.absolute_module(file, item)
    if module is None or (item.attr and item.attr != "*" and item.name not in names):
        return
    for dotted in (module, f"{module}.{item.attr}"):
        path = program.module_path(dotted)
        if path is not None:
            yield path


def files_of(registrations: Iterable[StrayRegistration]) -> Mapping[str, None]:
    """The files in which kernels for operators of torch are registered in Python."""
    return dict.fromkeys(
        item.registration.place.path for item in registrations if item.registration.language == "python"
    )
