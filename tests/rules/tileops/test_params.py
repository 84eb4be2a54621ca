"""Types of params and their defaults."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.tileops.examples import OP, example_files
from opschema_rules.tileops.pack import PACK
from opschema_rules.tileops.param_types import admits, type_problem

YAML = "kit/manifest/example.yaml"


def files(param: str, op: str = OP) -> dict[str, str]:
    return example_files([("yaml", f"signature:\n  params:\n    eps: {{{param}}}\n"), ("python", op)])


def lint(param: str, code: str, op: str = OP) -> Linted:
    return lint_files([PACK], files(param, op), [code])


def found(linted: Linted) -> list[tuple[str, str]]:
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("float | 0", "0", "`0` is not a type"),
        ("list(int)", "list(int)", "`list(int)` is not a type"),
        ("dict[str, 3]", "3", "`3` is not a type"),
    ],
)
def test_the_part_that_is_no_type_is_shown(text: str, place: str, reason: str) -> None:
    message = f"`{text}` is not a type expression: {reason}"
    assert found(lint(f'type: "{text}", default: 1', "MAN201")) == [(place, message)]


def test_prose_is_no_type() -> None:
    ((_, message),) = found(lint("type: a positive float, default: 1", "MAN201"))
    assert message.startswith("`a positive float` is not a type expression: it does not parse (")


@pytest.mark.parametrize(
    "text",
    [
        "int",
        "float | None",
        "list[int] | tuple[int, ...]",
        "torch.dtype",
        "Optional[Sequence[int]]",
        "None",
        "'Mode' | int",
        "Literal['a', -1]",
        "Callable[[int], str]",
        "Callable[..., None]",
        "collections.abc.Mapping[str, int]",
        " int ",
    ],
)
def test_type_expressions(text: str) -> None:
    assert type_problem(text) is None


def test_no_type_is_the_business_of_the_structure_rule() -> None:
    for param in ("default: 1", "type: 3", "type: [int]", "type: "):
        assert found(lint(param, "MAN201")) == []


def test_a_null_default_widens_the_type_where_the_code_admits_it() -> None:
    op = OP.replace("eps: float = 0.5", "eps: float | None = None")
    linted = lint("type: float, default: null", "MAN202", op)
    message = "`eps` defaults to null, but its type `float` does not admit `None`; declare `float | None`"
    assert found(linted) == [("float", message)]
    related = linted.diagnostics[0].related
    assert [(linted.text(other.place), other.message) for other in related] == [
        ("null", "null here"),
        ("eps", "the code admits `None`"),
    ]
    texts, after = fix_files([PACK], files("type: float, default: null", op), ["MAN202"])
    assert "eps: {type: float | None, default: null}" in texts[YAML]
    assert after.codes() == []


def test_where_the_code_does_not_tell_the_fix_is_a_guess() -> None:
    op = OP.replace("eps: float = 0.5", "eps: float = compute()")
    fix = lint("type: float, default: ", "MAN202", op).diagnostics[0].fix
    assert fix is not None
    assert (fix.safety, fix.why_unsafe) == ("unsafe", "the default may be wrong, not the type")


def test_where_the_constructor_has_another_default_null_is_what_is_wrong() -> None:
    assert found(lint("type: float, default: null", "MAN202")) == []
    assert found(lint("type: float, default: null", "MAN202", OP.replace("eps: float = 0.5", "eps: float"))) == []
    assert len(found(lint("type: float, default: null", "MAN202", OP.replace("eps: float", "scale: float")))) == 1


def test_a_default_of_another_type_gives_way_to_the_codes() -> None:
    linted = lint("type: float, default: auto", "MAN203")
    assert [other.message for other in linted.diagnostics[0].related] == ["the type", "`0.5` in the code"]
    texts, after = fix_files([PACK], files("type: float, default: auto"), ["MAN203"], unsafe=True)
    assert "eps: {type: float, default: 0.5}" in texts[YAML]
    assert after.codes() == []
    assert lint("type: bool, default: auto", "MAN203").diagnostics[0].fix is None


@pytest.mark.parametrize("kind", ["float | None", "Optional[float]", "Any", "Union[int, None]", "3 |", "None"])
def test_types_that_admit_none_or_say_nothing(kind: str) -> None:
    assert found(lint(f'type: "{kind}", default: null', "MAN202")) == []


@pytest.mark.parametrize(
    ("kind", "default", "shown"),
    [
        ("int", "auto", "auto"),
        ("int", "0.5", "0.5"),
        ("bool", "1", "1"),
        ("tuple[int, int]", "[0]", "[0]"),
        ("list[int]", "[a]", "[a]"),
        ("torch.dtype | None", "float61", "float61"),
        ("Literal['sum', 'mean']", "max", "max"),
        ("str", "true", "true"),
    ],
)
def test_a_default_of_another_type(kind: str, default: str, shown: str) -> None:
    message = f"the default of `eps` is `{shown}`, which its type `{kind}` does not admit"
    assert found(lint(f'type: "{kind}", default: {default}', "MAN203")) == [(shown, message)]


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("float", "1"),
        ("float", "true"),
        ("Number", ".inf"),
        ("int | tuple[int, ...]", "[1, 2]"),
        ("Sequence[int]", "[]"),
        ("torch.dtype", "torch.float16"),
        ("Mode | int", "fast"),  # `Mode` is not known here
        ("list[Mode]", "[fast]"),
        ("torch.Tensor", "[1]"),
        ("float", "1e-6"),  # YML102's
        ("float", "null"),  # MAN202's
        ("float", "!!float 1"),
        ("3 |", "a"),  # MAN201's
        ("Any", "{a: 1}"),
    ],
)
def test_defaults_that_fit_or_are_not_judged(kind: str, default: str) -> None:
    assert found(lint(f'type: "{kind}", default: {default}', "MAN203")) == []


def test_admits_knows_when_it_does_not_know() -> None:
    assert admits("Mode", 1) is None
    assert admits("Mode | int", 1) is True
    assert admits("Mode | str", 1) is None
    assert admits("tuple[Mode, int]", [1, "a"]) is False
    assert admits("int |", 1) is None


def test_older_trees_are_not_held_to_it() -> None:
    for code in ("MAN201", "MAN202", "MAN203"):
        old = {**files('type: "3", default: null'), "opschema.toml": ""}
        assert found(lint_files([PACK], old, [code])) == []
