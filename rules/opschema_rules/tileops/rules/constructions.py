"""Calls of op classes in benchmarks and tests against their constructors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from opschema_cli.evaluation.sure_code import surely_runs
from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, quoted
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Param
from opschema_cli.source.resolution import ClassRef
from opschema_cli.source.text import Span
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.tileops.constructions import CONSTRUCTIONS, Construction
from opschema_rules.tileops.model import Implementations, OpImplementation


@rule("SIG211", "construction")
def construction(ops: Implementations) -> Iterator[Diagnostic]:
    """A benchmark or test constructs an op with arguments that its constructor does not take.

    After a parameter is renamed, moved or removed in the manifest and in the class, the calls in benchmarks and tests fail when
    they are run, which needs a device. The rule reads the calls by the class's name in the files that `source.bench` and
    `source.test` of any entry name: a keyword that the constructor does not have, too many positional arguments, a parameter
    that is given twice, or a required one that is not given. Calls with `*` or `**` are not checked, and neither are names that
    may refer to something else than the op's class, calls that a test expects to fail (`pytest.raises`, `xfail`, a helper
    of such a test), and calls in `try`, in a lambda, or under a condition that asks for more than arguments and devices.

    Bad:

    ```python tests/test_example.py
    from kit.ops.example import ExampleFwdOp


    def test_example():
        assert ExampleFwdOp(epsilon=1e-5)
    ```

    Good:

    ```python tests/test_example.py
    import pytest

    from kit.ops.example import ExampleFwdOp


    def test_example():
        assert ExampleFwdOp(eps=1e-5)
        with pytest.raises(TypeError):
            ExampleFwdOp(epsilon=1e-5)
    ```
    """
    manifest = ops.manifest
    by_name: dict[str, list[OpImplementation]] = {}
    for op in ops.ops:
        by_name.setdefault(op.ref.name, []).append(op)
    paths = {path for entry in manifest.entries for key in ("bench", "test") for _, path in entry.source_paths(key)}
    found = sorted(filter(None, (manifest.locate(path) for path in paths if path.endswith(".py"))))
    manifest.project.claim(found)
    for path, calls in manifest.project.readings(CONSTRUCTIONS, found).items():
        for call in calls:
            for op in by_name.get(call.name, ()):
                yield from _judge(op, path, call)


def _judge(op: OpImplementation, path: str, call: Construction) -> Iterator[Diagnostic]:
    method, params = op.method("__init__"), op.call_params("__init__")
    if method is None or params is None or not all(item.by_name for item in params):
        return
    place = Place(path, Span(call.start, call.start + len(call.name)))
    if (unknown := next((word for word in call.keywords if word not in _named(params)), None)) is not None:
        place = Place(path, Span(call.keywords[unknown], call.keywords[unknown] + len(unknown)))
        text = f"`{op.name}()` takes no `{unknown}`{did_you_mean(near_name(unknown, sorted(_named(params)), 0.6))}"
    elif call.positional > len(placed := [item for item in params if item.kind != "kwonly"]):
        text = f"`{op.name}()` takes {count(len(placed), 'positional argument')}; the call gives {call.positional}"
    elif twice := [item.name for item in placed[: call.positional] if item.name in call.keywords]:
        text = f"`{op.name}()` gets {quoted(twice)} by position and by name"
    elif missing := _missing(params, call):
        text = f"`{op.name}()` requires {quoted(missing)}, which the call does not give"
    else:
        return
    if _is_sure(op, path, call):
        related = Related(op.code_place(method), f"takes {quoted([item.name for item in params])}")
        yield Diagnostic(text, place, (related,), ops=(op.name,))


def _is_sure(op: OpImplementation, path: str, call: Construction) -> bool:
    """Whether an apparent call is one of the op's own class, and must succeed."""
    file, bodies = op.entry.manifest.project.python(path), op.entry.manifest.evaluator.bodies
    if file is None or _is_patched(file.source.text, call.name):
        return False
    body = bodies.at(file, call.start)
    expr = _calls(body).get(call.start)
    if expr is None or sorted(expr.keywords) != sorted([*call.keywords, *[""] * call.positional]):
        return False
    found = bodies.resolve(body, call.name)
    if not isinstance(found, ClassRef) or found.key != op.ref.key:
        return False
    imports = [item for around in body.outward() for item in around.scope.imports if item.name == call.name]
    return len(imports) == 1 and surely_runs(bodies, body, call.start)


@lru_cache(maxsize=64)
def _calls(body: Body) -> dict[int, Expr]:
    return {item.start: item for item in body.scope.calls}


@lru_cache(maxsize=64)
def _is_patched(text: str, name: str) -> bool:
    return re.search(_PATCHED.format(name), text) is not None


_PATCHED = r"(?:setattr|patch|object)\(\s*[\"']?(?:[\w.]*\.)?{0}\b|\b{0}\.__(?:init|new)__\s*="
"""Code that may give a class another constructor, or rebind its name."""


def _named(params: Sequence[Param]) -> set[str]:
    return {item.name for item in params if item.kind != "posonly"}


def _missing(params: Sequence[Param], call: Construction) -> list[str]:
    placed = [item.name for item in params if item.kind != "kwonly"][: call.positional]
    given = {*placed, *call.keywords}
    return [item.name for item in params if item.default is None and item.name not in given]
