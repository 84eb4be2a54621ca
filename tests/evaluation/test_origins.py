"""Origins: the expressions that a name may stand for, each with where it is assigned."""

from __future__ import annotations

from opschema_cli.evaluation.origins import origins
from tests.evaluation.evaluating import evaluator_of, values_of

CODE = """\
def run(options, names):
    specs = plain()
    for name in names:
        specs = in_loop()
    if options.fast:
        first, specs = two()
    use(specs)
"""


def test_assignments_that_a_use_may_see_with_the_stretch_that_may_not_run() -> None:
    evaluator = evaluator_of({"a.py": CODE})
    bodies = evaluator.bodies
    (run,) = bodies.functions_within(bodies.module(bodies.files[0]), "run")
    at = CODE.index("specs)")
    found = [
        (item.expr.callee, item.index, CODE[item.guard.start : item.guard.end].strip() if item.guard else None)
        for item in origins(evaluator, evaluator.frames.at(run), "specs", at)
    ]
    assert found == [
        ("plain", None, None),
        ("in_loop", None, "specs = in_loop()"),
        ("two", 1, "first, specs = two()"),
    ]
    assert origins(evaluator, evaluator.frames.at(run), "options", at) == []


def test_a_name_that_a_loop_may_bind_anew() -> None:
    assert len(values_of("import kit\nfound = 1\nfor item in kit.all:\n    found = 2\n")) == 2
