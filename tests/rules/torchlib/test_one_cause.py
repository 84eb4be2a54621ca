"""One cause is one finding: an argument under another name, a name that `mutates_args` gets wrong, operators of one name."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK

HEAD = "import torch\nfrom torch import Tensor\n\n"


def messages(text: str, *select: str) -> list[str]:
    return [item.message for item in lint_files([PACK], {"op.py": HEAD + text}, select).diagnostics]


def fake(schema: str, params: str) -> str:
    define = f'torch.library.define("kit::f", "({schema}) -> Tensor")\n\n\n'
    return f'{define}@torch.library.register_fake("kit::f")\ndef f({params}):\n    return torch.empty_like(x)\n'


def test_a_parameter_by_name_that_has_another_name() -> None:
    assert messages(fake("Tensor x, *, float scale", "x, *, factor"), "REG201") == [
        "the fake of `kit::f` takes `factor` where the schema passes `scale`, by name: every call fails"
    ]


def test_two_parameters_that_are_not_there_stay_two_findings() -> None:
    found = messages(fake("Tensor x, *, float scale, int dim", "x, *, factor"), "REG201")
    assert found == [
        "the fake of `kit::f` does not take `scale`, `dim`, which the schema passes by name: every call fails",
        "the fake of `kit::f` requires `factor`, which the schema does not pass: every call fails",
    ]


OP = """
@torch.library.custom_op("kit::g", mutates_args=())
def g(x: Tensor, scale: float, dim: int = 0) -> Tensor:
    return x * scale


def call(x):
    return g({arguments})
"""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("x, factor=2.0", ["`kit::g` takes no argument `factor`: it is called `scale`"]),
        (
            "x, factor=2.0, dims=1",
            ["is called without the required `scale`", "takes no argument `factor`", "takes no argument `dims`"],
        ),
        ("x, 2.0, dims=1", ["`kit::g` takes no argument `dims`"]),
        ("x", ["`kit::g` is called without the required `scale`"]),
        ("x, scale=2.0", []),
    ],
)
def test_a_keyword_that_has_another_name(arguments: str, expected: list[str]) -> None:
    found = messages(OP.format(arguments=arguments), "REG401")
    assert len(found) == len(expected)
    assert all(part in "\n".join(found) for part in expected)


def test_a_name_that_mutates_args_gets_wrong_is_not_an_undeclared_write_as_well() -> None:
    text = '@torch.library.custom_op("kit::g", mutates_args=("{}",))\ndef g(x: Tensor, result: Tensor) -> None:\n'
    body = "    result.copy_(x)\n"
    codes = ("REG108", "REG403")
    assert len(messages(text.format("out") + body, *codes)) == 1
    assert messages(text.format("result") + body, *codes) == []
    assert len(messages(text.format("x") + body, *codes)) == 1


ONE = """
torch.library.define("kit::f", "(Tensor x) -> Tensor")


@torch.library.register_fake("kit::f")
def f(x):
    return torch.empty_like(x)
"""
OTHER = ONE.replace("(Tensor x)", "(Tensor x, float scale)").replace("def f(x)", "def f(x, scale)")


@pytest.mark.parametrize(
    ("first", "second"),
    [("examples/a/op.py", "examples/b/op.py"), ("examples/a.py", "examples/b.py"), ("one/op.py", "two/deep/op.py")],
)
def test_two_programs_that_define_one_name_have_two_operators(first: str, second: str) -> None:
    outcome = lint_files([PACK], {first: HEAD + ONE, second: HEAD + OTHER}).outcome
    assert [(item.code, item.place.path) for item in outcome.diagnostics] == []
    assert outcome.ops == 2


def test_a_registration_belongs_to_the_nearest_definition() -> None:
    define, fake = ONE.split("\n\n\n")
    files = {"a/op.py": HEAD + define, "a/fakes.py": HEAD + fake, "b/op.py": HEAD + OTHER}
    assert lint_files([PACK], files).codes() == []
    wrong = {**files, "a/fakes.py": HEAD + fake.replace("f(x)", "f(x, scale)")}
    assert lint_files([PACK], wrong).codes() == ["REG201"]


def test_definitions_that_stand_for_one_another_are_all_meant() -> None:
    define = ONE.split("\n\n\n")[0].strip()
    newer = define.replace("(Tensor x)", "(Tensor x, float scale)")
    text = f"if torch.cuda.is_available():\n    {define}\n"
    other = f"if not torch.cuda.is_available():\n    {newer}\n\n\n{ONE.split(chr(10) * 3)[1]}"
    assert lint_files([PACK], {"a/op.py": HEAD + text, "b/op.py": HEAD + other}).codes() == ["REG201"]
