"""Sizes of tensors that are constants of their module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.lint.diagnostic import Diagnostic, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.program import Folded
from opschema_cli.source.python import Assign, Expr, PythonFile, Use
from opschema_cli.source.text import Span
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.key import sees_globals
from opschema_rules.flydsl.model import Call, FlyTree

_CREATORS = frozenset(f"torch.{name}" for name in ("empty", "full", "ones", "rand", "randn", "zeros"))
_DIVISIONS = ("//", "/", "%")


@rule("FLY209", "module-extent", severity="warning", pure=True)
def module_extent(file: FlyFile) -> Iterator[Diagnostic]:
    """A module constant that is a size of tensors, and that a launch compiles into the code.

    The grid is computed from the constant while the function is traced, so the artifact is for this one size. From FlyDSL
    0.2.0 on the value is part of the cache key: a limitation. Up to 0.4.2 the function raises if the constant changes while
    the process runs; from 0.5.0 on it is compiled again. Before 0.2.0 the value is not part of the key: after an edit of the
    file, the artifact for the old size is run, reads zeros beyond its end and drops writes there.

    Only plain extents are reported: an integer that is by itself a size where torch creates a tensor, that is divided in
    the grid of a launch (`M // BLOCK`), and that is never a divisor, as tiles are. The migration `extent-to-parameter`
    makes it a parameter.

    Bad:

    ```python
    M, BLOCK = 4096, 128


    @flyc.kernel
    def scale(A: fx.Tensor):
        print(A)


    @flyc.jit
    def launch(A: fx.Tensor):
        scale(A).launch(grid=(M // BLOCK, 1, 1), block=(BLOCK, 1, 1))


    launch(torch.zeros(M, 16))
    ```

    Good, the size is a parameter, and tiles may well be constants:

    ```python
    M, BLOCK = 4096, 128


    @flyc.kernel
    def scale(A: fx.Tensor, rows: fx.Int32):
        print(A)


    @flyc.jit
    def launch(A: fx.Tensor, rows: fx.Int32):
        scale(A, rows).launch(grid=(rows // BLOCK, 1, 1), block=(BLOCK, 1, 1))


    launch(torch.zeros(M, BLOCK), M)
    ```
    """
    tree = file.tree
    for item in tree.files:
        yield from _extents(tree, item, list(_grids(tree, item)))


def _grids(tree: FlyTree, file: PythonFile) -> Iterator[tuple[Call, Expr]]:
    """Yield the grids of the launches in a file, of kernels of any file."""
    for body in tree.bodies.calling(file, ["launch"]):
        launched = tree.finder.called_in(body) if tree.around(body) is not None else ()
        for call in (item for traced in launched if traced.kind == "kernel" for item in traced.calls):
            grids = (launch.keyword("grid") for launch in call.launches if call.body is body)
            yield from ((call, grid) for grid in grids if grid is not None)


def _extents(tree: FlyTree, file: PythonFile, grids: list[tuple[Call, Expr]]) -> Iterator[Diagnostic]:
    divided: dict[str, tuple[Call, Use]] = {}
    divisors: set[str] = set()
    for call, grid in grids:
        for expr in _followed(call.body, grid, MAX_CALLS):
            for use, is_divisor in _uses(call.body, expr):
                if is_divisor:
                    divisors.add(use.name)
                elif _is_divided(expr, use):
                    divided.setdefault(use.name, (call, use))
    constants = {name: item for name in divided if name not in divisors and (item := _constant(tree, file, name))}
    sizes = _sizes(tree, file, constants) if constants else {}
    for name in sorted(constants.keys() & sizes.keys()):
        call, use = divided[name]
        yield _baked(tree, call, use, constants[name], sizes[name])


def _followed(body: Body, expr: Expr, hops: int) -> Iterator[Expr]:
    """Yield an expression, and the values of the local variables that it names."""
    yield expr
    for part in expr.walk() if hops > 0 else ():
        values = [item for item in body.scope.assigns if item.target == part.text] if part.kind == "name" else []
        if len(values) == 1 and values[0].value is not None:
            yield from _followed(body, values[0].value, hops - 1)


def _uses(body: Body, expr: Expr) -> Iterator[tuple[Use, bool]]:
    """Yield the module's names in an expression, each with whether something is divided by it."""
    below = {part.start for item in expr.walk() if item.text in _DIVISIONS for part in item.items[1].walk()}
    for part in expr.walk():
        if part.kind == "name" and "." not in part.text and body.binder(part.text) is None:
            yield Use(part.text, part.start, part.end), part.start in below


def _is_divided(expr: Expr, use: Use) -> bool:
    """Whether a name is part of a dividend."""
    above = (item.items[0] for item in expr.walk() if item.kind == "binary" and item.text == "//")
    return any(item.start <= use.start and use.end <= item.end for item in above)


def _constant(tree: FlyTree, file: PythonFile, name: str) -> Assign | None:
    """Return the only assignment of an integer to a module variable."""
    written = file.assigns.get(name, [])
    value = written[0].value if len(written) == 1 and written[0].sure else None
    folded = tree.evaluator.fold(file, value) if value is not None else None
    return written[0] if isinstance(folded, Folded) and type(folded.value) is int else None


def _sizes(tree: FlyTree, file: PythonFile, wanted: Iterable[str]) -> dict[str, Expr]:
    """Return the expressions by which torch creates tensors with one of the names as a size."""
    found: dict[str, Expr] = {}
    for body in tree.bodies.of(file):
        for call in body.scope.calls if tree.around(body) is None else ():
            if call.callee and tree.names.external(body, call.callee) in _CREATORS:
                for size in _dimensions(call):
                    if size.text in wanted and body.binder(size.text) is None:
                        found.setdefault(size.text, size)
    return found


def _dimensions(call: Expr) -> Iterator[Expr]:
    for given in call.positional():
        yield from given.items if given.kind in ("tuple", "list") else (given,)


def _baked(tree: FlyTree, call: Call, use: Use, constant: Assign, size: Expr) -> Diagnostic:
    around, seen = tree.around(call.body), sees_globals(tree)
    title = around.title if around is not None else call.target.title
    effect = "the artifact is for this size only"
    if seen is False:
        effect = "the cache key does not have it, so that after an edit the artifact of the old size runs"
    message = (
        f"`{use.name}`, a constant of the module and the size of a tensor, is baked into `{title}`: {effect}; "
        "make it a parameter"
    )
    related = (
        Related(call.body.at(constant.span), "the constant"),
        Related(call.body.at(size), "the size of a tensor"),
    )
    severity = Severity.WARNING if seen is False else Severity.INFO
    return Diagnostic(message, call.body.at(Span(use.start, use.end)), related, ops=(title,), severity=severity)
