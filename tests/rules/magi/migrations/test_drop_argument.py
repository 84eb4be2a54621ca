"""An argument that the decorator does not take any more, away from its calls."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.migration import OptionError
from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.magi.examples import HEAD, OPS_PATH, example_files
from opschema_rules.magi.pack import PACK

LINES = HEAD.count("\n")
DEF = "\ndef f(x: Tensor) -> Tensor:\n    return x.clone()\n"


def migrate(text: str, name: str = "has_internal_collective", **others: str) -> Migrated:
    files = {**example_files([("python", text)]), **{f"kit/{key}.py": other for key, other in others.items()}}
    return migrate_files(PACK, "drop-argument", files, [f"name={name}"])


def code(done: Migrated) -> str:
    return done.files[OPS_PATH].removeprefix(HEAD)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('("kit::f", has_internal_collective=True)', '("kit::f")'),
        ('("kit::f", has_internal_collective=True, mutates_args=())', '("kit::f", mutates_args=())'),
        ("(has_internal_collective=True)", "()"),
        (
            '(\n    name="kit::f",\n    # it calls all_reduce\n'
            "    has_internal_collective=True,  # yes\n    mutates_args=(),  # none\n)",
            '(\n    name="kit::f",\n    mutates_args=(),  # none\n)',
        ),
        ("(**options, has_internal_collective=True)", "(**options)"),
        ('("kit::f", has_internal_collective=not COLLECTIVE)', '("kit::f")'),
    ],
)
def test_the_keyword_goes(before: str, after: str) -> None:
    done = migrate(f"@magi_register_custom_op{before}{DEF}")
    assert code(done) == f"@magi_register_custom_op{after}{DEF}"
    assert done.notes() == []


@pytest.mark.parametrize(
    "text",
    [
        f"import functools\n\nreg = functools.partial(magi_register_custom_op, "
        f"has_internal_collective=True)\n\n\n@reg('kit::f'){DEF}",
        f"import functools\n\nreg = functools.partial(magi_register_custom_op)\n\n\n"
        f"@reg(name='kit::f', has_internal_collective=True){DEF}",
        f"import magi_compiler.api as m\n\n\n@m.magi_register_custom_op('kit::f', has_internal_collective=True){DEF}",
        f"def reg(name, **rest):\n    return magi_register_custom_op(name, "
        f"**rest)\n\n\n@reg('kit::f', has_internal_collective=True){DEF}",
        f"def reg(name):\n    return magi_register_custom_op(name, has_internal_collective=True)\n\n\n@reg('kit::f'){DEF}",
        f"{DEF}\n\nop = magi_register_custom_op('kit::f', has_internal_collective=True)(f)\n",
        "if x:\n    @magi_register_custom_op('kit::f', has_internal_collective=True)\n    def f(x: Tensor) -> Tensor: ...\n",
    ],
)
def test_wherever_it_is_passed(text: str) -> None:
    done = migrate(text)
    assert code(done) == text.replace(", has_internal_collective=True", "")
    assert done.notes() == []


def test_other_functions_keep_theirs() -> None:
    text = (
        f"def other(**rest): ...\n\n\nother(has_internal_collective=True)\n\n\n@magi_register_custom_op('kit::f'){DEF}"
    )
    done = migrate(text)
    assert code(done) == text
    assert done.sites() == []


def test_what_is_left_is_told() -> None:
    wrapper = (
        "def reg(has_internal_collective):\n    return magi_register_custom_op('kit::f', "
        "has_internal_collective=has_internal_collective)\n\n\n"
    )
    text = f"{wrapper}@reg(has_internal_collective=True){DEF}"
    done = migrate(text, far="# has_internal_collective is old\n")
    assert code(done) == text.replace(", has_internal_collective=has_internal_collective", "")
    said = "`has_internal_collective` is still mentioned here"
    assert done.notes() == [
        f"kit/far.py:1: {said}",
        f"{OPS_PATH}:{LINES + 1}: {said}",
        f"{OPS_PATH}:{LINES + 5}: {said}",
    ]


def test_a_value_with_effects_stays() -> None:
    text = f"@magi_register_custom_op('kit::f', has_internal_collective=probe()){DEF}"
    done = migrate(text)
    assert code(done) == text
    assert "probe() may have effects" in done.notes()[0]
    assert len(done.sites()) == 1


@pytest.mark.parametrize(
    ("head", "unpacked"),
    [
        ("", "dict(has_internal_collective=True)"),
        ("", "{'has_internal_collective': True}"),
        ("OPTIONS = {'has_internal_collective': True}\n\n\n", "OPTIONS"),
    ],
)
def test_a_dictionary_that_is_unpacked_stays(head: str, unpacked: str) -> None:
    text = f"{head}@magi_register_custom_op('kit::f', **{unpacked}){DEF}"
    done = migrate(text)
    assert code(done) == text
    assert done.notes()[0].endswith("drop `has_internal_collective` by hand: it is in a dict that is unpacked")
    assert len(done.sites()) == 1


def test_a_dictionary_of_something_else_is_no_site() -> None:
    text = f"OPTIONS = {{'mutates_args': ()}}\n\n\n@magi_register_custom_op('kit::f', **OPTIONS){DEF}"
    assert migrate(text).sites() == []


def test_options_that_fit_nothing() -> None:
    text = f"@magi_register_custom_op('kit::f', has_internal_collective=True){DEF}"
    with pytest.raises(OptionError, match="did you mean `has_internal_collective`"):
        migrate(text, "has_internal_colective")
    with pytest.raises(OptionError, match="is a parameter of the decorator"):
        migrate(text, "mutates_args")
    assert migrate(text, "extra_triton_kernels").sites() == []
