"""Parameters of manifest and code made the same."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.migration import Migration, OptionError
from opschema_rules.tileops.migrations.sync_signature import sync_signature
from tests.rules.tileops.migrations.drafts import CODE, TEST, YAML, Migrated, files, migrate

SYNC: Migration = sync_signature


def texts(params: str, signature: str, forward: str = "self, x", **more: str) -> dict[str, str]:
    op = f"class ExampleFwdOp(Op):\n    def __init__({signature}):\n        pass\n\n    def forward({forward}):\n        return x\n"
    return files(("yaml", f"signature:\n  params: {params}\n"), ("python", op), **more)


def sync(side: str, params: str, signature: str, what: str = "kw_only,defaults", **more: str) -> Migrated:
    return migrate(texts(params, signature, **more), SYNC, **{"from": side, "what": what})


def signature(done: Migrated) -> str:
    text = done.text(CODE)
    return text[text.index("__init__(") + 9 : text.index("):\n        pass")]


def test_the_manifest_follows_the_code() -> None:
    done = sync(
        "code",
        "{a: {type: int}, b: {type: int, default: 2, kw_only: true}}",
        "self, b=3, *, a: int = 1, kernel_map=None",
    )
    assert "params: {a: {type: int, default: 1, kw_only: true}, b: {type: int, default: 3}}" in done.text(YAML)
    assert done.notes == []


def test_only_what_is_told_is_compared() -> None:
    done = sync("code", "{a: {type: int}}", "self, *, a: int = 1, kernel_map=None", what="defaults")
    assert "kw_only" not in done.text(YAML)
    assert "default: 1" in done.text(YAML)


FIRST = "      # first\n      a: {type: int}  # one\n"
SECOND = "      b:\n        type: int\n"


def test_the_manifest_takes_the_order_of_the_code() -> None:
    text = texts("{}", "self, b, a, *, kernel_map=None")
    text[YAML] = text[YAML].replace("    params: {}\n", f"    params:\n{FIRST}\n{SECOND}      c: {{type: int}}\n")
    done = migrate(text, SYNC, **{"from": "code", "what": "order"})
    assert f"    params:\n{SECOND}\n{FIRST}      c: {{type: int}}\n" in done.text(YAML)


def test_inputs_in_the_order_of_forward() -> None:
    text = texts("{}", "self, *, kernel_map=None", forward="self, weight, x")
    text[YAML] = text[YAML].replace(
        'x: {dtype: "float16 | float32"}', "x: {dtype: float16}\n      weight: {dtype: int8}"
    )
    done = migrate(text, SYNC, **{"from": "code", "what": "order"})
    assert "inputs:\n      weight: {dtype: int8}\n      x: {dtype: float16}\n" in done.text(YAML)


@pytest.mark.parametrize(
    ("params", "before", "after"),
    [
        ("{a: {type: int}}", "self, *, a, kernel_map=None", "self, a, *, kernel_map=None"),
        (
            "{a: {type: int}}",
            "\n        self,\n        *,\n        a: int,\n        kernel_map=None,\n    ",
            "\n        self,\n        a: int,\n        *,\n        kernel_map=None,\n    ",
        ),
        ("{a: {type: int}}", "self, *, dtype, a=1, kernel_map=None", "self, dtype, a=1, *, kernel_map=None"),
        ("{a: {type: int}}", "self, *, kernel_map=None, tune=False, a=1", "self, a=1, *, kernel_map=None, tune=False"),
        ("{b: {type: int}, a: {type: int}}", "self, *, a, b, tune=False", "self, b, a, *, tune=False"),
        ("{a: {type: int, kw_only: true}}", "self, a, b, *, tune=False", "self, b, *, a, tune=False"),
        ("{a: {type: int}}", "self, a, *, tune=False", "self, a, *, tune=False"),
    ],
)
def test_the_code_follows_in_what_is_keyword_only(params: str, before: str, after: str) -> None:
    done = sync("yaml", params, before, "kw_only")
    assert signature(done) == after


@pytest.mark.parametrize(
    ("param", "before", "after"),
    [
        ("{type: bool, default: true}", "self, a: bool, *, tune=False", "self, a: bool = True, *, tune=False"),
        ("{type: int}", "self, a: int = 1, *, tune=False", "self, a: int, *, tune=False"),
        ("{type: float, default: .inf}", "self, a=1, *, tune=False", 'self, a=float("inf"), *, tune=False'),
        ("{type: torch.dtype, default: float16}", "self, a, *, tune=False", "self, a=torch.float16, *, tune=False"),
        ('{type: "tuple[int, ...]", default: [1]}', "self, a, *, tune=False", "self, a=(1,), *, tune=False"),
        ("{type: str, default: 'a\"b'}", "self, a, *, tune=False", 'self, a="a\\"b", *, tune=False'),
        ("{type: 'int | None', default: null}", "self, a, *, tune=False", "self, a=None, *, tune=False"),
        ("{type: float, default: 0.5}", "self, a=0.5, *, tune=False", "self, a=0.5, *, tune=False"),
    ],
)
def test_the_code_follows_in_defaults(param: str, before: str, after: str) -> None:
    done = sync("yaml", f"{{a: {param}}}", before, "defaults")
    assert signature(done) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("self, b=1, a=2", "self, a=2, b=1"),
        ("self, b, a, tune=False", "self, a, b, tune=False"),
        ("self, b, a, *, tune=False", "self, a, b, *, tune=False"),
        ("\n        self,\n        b,\n        a,\n    ", "\n        self,\n        a,\n        b,\n    "),
        ("self, b, *, tune=False, a=1", "self, b, *, tune=False, a=1"),
        ("self, a, b", "self, a, b"),
    ],
)
def test_the_code_follows_in_the_order(before: str, after: str) -> None:
    done = sync("yaml", "{a: {type: int}, b: {type: int}}", before, "order")
    assert signature(done) == after


def test_a_default_before_one_without_is_left_to_a_person() -> None:
    done = migrate(
        texts("{a: {type: int, default: 1}, b: {type: int}}", "self, a, b, *, tune=False"), SYNC, **{"from": "yaml"}
    )
    assert signature(done) == "self, a, b, *, tune=False"
    assert len(done.notes) == 1


@pytest.mark.parametrize(
    "before", ["self, *args, a, tune=False", "self, x=1, *, a", "self, *,  # all\n        a, tune=False"]
)
def test_signatures_that_are_left_to_a_person(before: str) -> None:
    done = migrate(texts("{a: {type: int}}", before), SYNC, **{"from": "yaml", "what": "kw_only"})
    assert signature(done) == before
    assert len(done.notes) == 1


BLOCK = "\n        self,\n        a: int,\n        # the size\n        b: int = 1,\n        kernel_map=None,\n    "


@pytest.mark.parametrize(
    ("params", "before", "after"),
    [
        ("{a: {type: int, kw_only: true}}", "self, a", "self, *, a"),
        ("{a: {type: int, kw_only: true}}", "self, a, kernel_map=None", "self, *, a, kernel_map=None"),
        ("{a: {type: int, kw_only: true}}", "self, a, b, kernel_map=None", "self, b, *, a, kernel_map=None"),
        ("{a: {type: int, kw_only: true}}", "self, b, a=1, **more", "self, b, *, a=1, **more"),
        ("{a: {type: int, kw_only: true}}", "self, a=1, b=2", "self, b=2, *, a=1"),
        (
            "{a: {type: int}, b: {type: int, default: 1, kw_only: true}}",
            BLOCK,
            BLOCK.replace("        # the size\n", "        *,\n        # the size\n"),
        ),
        (
            "{a: {type: int, kw_only: true}, b: {type: int, default: 1, kw_only: true}}",
            BLOCK,
            BLOCK.replace("self,\n", "self,\n        *,\n"),
        ),
        ("{a: {type: int}}", "self, *, a", "self, a"),
        ("{a: {type: int}, b: {type: int}}", "self, *, b, a", "self, a, b"),
        ("{a: {type: int}}", "self, *, a, **more", "self, a, **more"),
        ("{a: {type: int}}", "self, x, *, a=1,", "self, x, a=1,"),
        (
            "{a: {type: int}}",
            "\n        self,\n        *,\n        a: int,\n    ",
            "\n        self,\n        a: int,\n    ",
        ),
        ("{a: {type: int}, b: {type: int, kw_only: true}}", "self, b, *, a", "self, a, *, b"),
        ("{a: {type: int}, b: {type: int, kw_only: true}}", "self, *, b, a", "self, a, *, b"),
    ],
)
def test_the_star_comes_and_goes(params: str, before: str, after: str) -> None:
    done = sync("yaml", params, before, "kw_only")
    assert signature(done) == after
    assert done.notes == []


def test_a_comment_above_a_parameter_that_would_move_leaves_the_signature() -> None:
    before = "\n        self,\n        # one\n        a,\n        b=1,\n    "
    done = sync("yaml", "{a: {type: int, kw_only: true}, b: {type: int}}", before, "kw_only")
    assert signature(done) == before
    assert len(done.notes) == 1


def test_the_star_comes_in_the_line_ends_of_the_file() -> None:
    text = texts("{a: {type: int, kw_only: true}}", "\n        self,\n        a: int,\n    ")
    text[CODE] = text[CODE].replace("\n", "\r\n")
    done = migrate(text, SYNC, **{"from": "yaml", "what": "kw_only"})
    assert done.text(CODE) == text[CODE].replace("        a: int", "        *,\r\n        a: int")


def test_positional_arguments_say_why_they_are_left() -> None:
    done = sync("yaml", "{a: {type: int}}", "self, *sizes, a", "kw_only")
    assert [message for _, _, message in done.said] == [
        "ExampleFwdOp.__init__(): take `a` by position: by hand, because *sizes of __init__() takes what is passed by position"
    ]


@pytest.mark.parametrize(
    ("params", "signature", "after"),
    [
        ("{a: {type: int}}", "self, *, a", "{a: {type: int, kw_only: true}}"),
        ("{a: {type: int}}", "self, *args, a", "{a: {type: int, kw_only: true}}"),
        ("{a: {type: int, kw_only: true}}", "self, a", "{a: {type: int}}"),
    ],
)
def test_the_manifest_follows_a_star(params: str, signature: str, after: str) -> None:
    assert f"params: {after}\n" in sync("code", params, signature, "kw_only").text(YAML)


def test_calls_that_pass_by_position_what_moves() -> None:
    test = "from kit.ops.example import ExampleFwdOp\n\nop = ExampleFwdOp(1, 2)\nother = ExampleFwdOp(b=1, a=2)\n"
    done = sync(
        "yaml", "{a: {type: int, kw_only: true}}", "self, a, b, *, tune=False", "kw_only", tests__test_example=test
    )
    said = "this passes arguments of `ExampleFwdOp.__init__()` by position; they have moved"
    assert done.said == [("tests/test_example.py", 3, said)]


def test_calls_that_may_pass_by_position_what_moves() -> None:
    calls = "ExampleFwdOp(*sizes)\npartial(ExampleFwdOp, 1)\n"
    test = f"from functools import partial\nfrom kit.ops.example import ExampleFwdOp\n\n{calls}"
    done = sync(
        "yaml", "{a: {type: int, kw_only: true}}", "self, a, b, *, tune=False", "kw_only", tests__test_example=test
    )
    said = "arguments of `ExampleFwdOp.__init__()` by position; they have moved"
    assert done.said == [(TEST, 4, f"this may pass {said}"), (TEST, 5, f"this passes {said}")]


def test_calls_that_omit_what_has_no_default_any_more() -> None:
    calls = "ExampleFwdOp()\nExampleFwdOp(1)\nExampleFwdOp(a=1)\nExampleFwdOp(**sizes)\nExampleFwdOp(tune=True)\n"
    test = f"from kit.ops.example import ExampleFwdOp\n\n{calls}"
    done = sync("yaml", "{a: {type: int}}", "self, a=1, *, tune=False", "defaults", tests__test_example=test)
    said = "this passes no `a`, which has no default in `ExampleFwdOp.__init__()` any more"
    assert done.said == [(TEST, 3, said), (TEST, 7, said)]


def test_entries_that_share_a_constructor_and_differ_are_left() -> None:
    text = texts("{a: {type: int}}", "self, *, a, tune=False")
    text[CODE] += "\n\nclass TwinFwdOp(ExampleFwdOp):\n    pass\n"
    text[YAML] += "\n" + text[YAML].replace("ExampleFwdOp", "TwinFwdOp").replace(
        "a: {type: int}", "a: {type: int, kw_only: true}"
    )
    assert not migrate(text, SYNC, **{"from": "yaml", "what": "kw_only"}).texts


def test_options_that_do_not_fit() -> None:
    with pytest.raises(OptionError):
        sync("yaml", "{}", "self", "colour")
