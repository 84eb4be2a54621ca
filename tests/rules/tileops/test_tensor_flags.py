"""`optional` and `mutated`: where they stand, and what depends on an input that may be absent."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

YAML = "kit/manifest/example.yaml"


def files(signature: str) -> dict[str, str]:
    return example_files([("yaml", "signature:\n" + signature)])


def lint(signature: str, code: str) -> Linted:
    return lint_files([PACK], files(signature), [code])


def found(linted: Linted) -> list[tuple[str, str]]:
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


def inputs(**attributes: str) -> str:
    return "  inputs:\n" + "".join(f"    {name}: {{{text}}}\n" for name, text in attributes.items())


@pytest.mark.parametrize(
    ("signature", "code", "text", "message"),
    [
        (
            "  params:\n    p: {type: int, optional: true}\n",
            "MAN301",
            "optional",
            "`params.p` is marked `optional`; a param says with `default` that it may be left out, so remove the mark",
        ),
        (
            "  outputs:\n    y: {dtype: same_as(x), optional: true}\n",
            "MAN301",
            "optional",
            "`outputs.y` is marked `optional`; outputs are the same on every call, so remove the mark",
        ),
        (
            "  outputs:\n    y: {dtype: same_as(x), mutated: true}\n",
            "MAN302",
            "mutated",
            "`outputs.y` is marked `mutated`; an output is returned, not written in place, so remove the mark",
        ),
        (
            inputs(x="dtype: float16, optional: 'true'"),
            "MAN301",
            "'true'",
            "`inputs.x.optional` is `'true'`; it must be literal `true`, or be left out",
        ),
        (
            inputs(x="dtype: float16, mutated: "),
            "MAN302",
            "mutated",
            "`inputs.x.mutated` is empty; it must be literal `true`, or be left out",
        ),
        (
            inputs(x="dtype: float16, mutated: [true]"),
            "MAN302",
            "[true]",
            "`inputs.x.mutated` is not a scalar; it must be literal `true`, or be left out",
        ),
    ],
)
def test_a_flag_stands_on_an_input_and_is_true(signature: str, code: str, text: str, message: str) -> None:
    assert found(lint(signature, code)) == [(text, message)]


def test_false_is_taken_away() -> None:
    before = files(inputs(x="dtype: float16, optional: false"))
    texts, after = fix_files([PACK], before, ["MAN301"])
    assert "    x: {dtype: float16}\n" in texts[YAML]
    assert after.codes() == []


def test_true_and_false_have_more_spellings() -> None:
    assert found(lint(inputs(x="dtype: float16, optional: yes"), "MAN301")) == []
    assert [text for text, _ in found(lint(inputs(x="dtype: float16, optional: no"), "MAN301"))] == ["no"]


def test_older_trees_do_not_know_the_flags() -> None:
    before = {**files(inputs(x="dtype: float16, optional: 3, mutated: 3")), "opschema.toml": ""}
    assert found(lint_files([PACK], before, ["MAN301", "MAN302", "MAN303", "MAN304"])) == []


def test_no_dtype_is_taken_from_an_absent_input() -> None:
    text = (
        inputs(x="dtype: float16", b="dtype: float16, optional: true")
        + "  outputs:\n    y: {dtype: 'int8 | same_as(b)'}\n"
    )
    linted = lint(text, "MAN303")
    message = "`y` takes its dtype from the optional `b`; a call without it has no `same_as(b)`"
    assert found(linted) == [("same_as(b)", message)]
    assert [linted.text(other.place) for other in linted.diagnostics[0].related] == ["optional"]


def test_no_combination_has_a_column_for_it() -> None:
    text = inputs(x="dtype: float16", b="dtype: float16, optional: true")
    linted = lint(text + "  dtype_combos:\n    - {x: float16, b: float16}\n    - {x: float16}\n", "MAN303")
    message = "`b` is optional and so no column of `dtype_combos`: a row holds on every call; remove it"
    assert found(linted) == [("b", message)]


def test_a_dimension_that_only_it_binds_leaks() -> None:
    text = inputs(x="dtype: float16, shape: '[M]'", b="dtype: float16, shape: '[M, K]', optional: true")
    linted = lint(text + "  outputs:\n    y: {dtype: same_as(x), shape: '[M, 2 * K]'}\n", "MAN303")
    message = "`K` in the shape of `y` is bound only by the optional `b`; a call without it has no `K`"
    assert found(linted) == [("K", message)]


@pytest.mark.parametrize(
    "bound",
    ["  params:\n    K: {type: int}\n", "  static_dims:\n    K: 'x.shape[0]'\n"],
)
def test_a_dimension_that_something_else_binds_does_not_leak(bound: str) -> None:
    text = inputs(x="dtype: float16, shape: '[M]'", b="dtype: float16, shape: '[M, K]', optional: true")
    assert found(lint(text + bound + "  outputs:\n    y: {dtype: same_as(x), shape: '[M, K]'}\n", "MAN303")) == []


def test_another_optional_input_may_share_the_dimension() -> None:
    text = inputs(
        x="dtype: float16",
        b="dtype: float16, shape: '[K]', optional: true",
        c="dtype: same_as(x), shape: '[K]', optional: true",
    )
    assert found(lint(text, "MAN303")) == []


def test_optional_inputs_come_last() -> None:
    text = inputs(
        a="dtype: float16, optional: true", b="dtype: float16, optional: true", c="dtype: float16", d="dtype: float16"
    )
    linted = lint(text, "MAN304")
    assert found(linted) == [
        ("c", "the input `c` is required and follows the optional `a`; put optional inputs last"),
        ("d", "the input `d` is required and follows the optional `a`; put optional inputs last"),
    ]


def test_what_is_not_known_to_be_required_is_not_out_of_order() -> None:
    assert found(lint(inputs(a="dtype: float16, optional: true", b="dtype: float16, optional: maybe"), "MAN304")) == []
    assert found(lint("  inputs: [a]\n", "MAN304")) == []
