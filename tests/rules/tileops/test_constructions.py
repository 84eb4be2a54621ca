"""SIG211: constructions of ops in benchmarks and tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

HEAD = "import pytest\n\nfrom kit.ops.example import ExampleFwdOp\n\n\n"


def sections(name: str) -> list[str]:
    """The snippets of a file beside this one."""
    text = (Path(__file__).parent / f"{name}.txt").read_text("utf-8")
    return [item.partition("\n")[2] for item in text.split("#### ")[1:]]


def lint(text: str, head: str = HEAD, path: str = "tests/test_example.py") -> Linted:
    return lint_files([PACK], example_files([(f"python {path}", head + text)]), ["SIG211"])


WRONG = [
    ("op = ExampleFwdOp(epsilon=1e-5)\n", "epsilon", "`ExampleFwdOp()` takes no `epsilon`; did you mean `eps`?"),
    ("op = ExampleFwdOp(\n    eps=0.5,\n    size=(1, 2),\n)\n", "size", "`ExampleFwdOp()` takes no `size`"),
    (
        "op = ExampleFwdOp(0.5, None)\n",
        "ExampleFwdOp",
        "`ExampleFwdOp()` takes 1 positional argument; the call gives 2",
    ),
    ("op = ExampleFwdOp(0.5, eps=1)\n", "ExampleFwdOp", "`ExampleFwdOp()` gets `eps` by position and by name"),
    ('op = ExampleFwdOp(name=f"a)")  # a)\n', "name", "`ExampleFwdOp()` takes no `name`"),
    (
        "def test_a():\n    with pytest.raises(ValueError):\n        pass\n    ExampleFwdOp(size=1)\n",
        "size",
        "takes no `size`",
    ),
    (
        "@pytest.mark.parametrize('n', [1])\ndef test_a(n):\n    for _ in (1,):\n        f(ExampleFwdOp(size=n))\n",
        "size",
        "no `size`",
    ),
]


@pytest.mark.parametrize(("text", "at", "message"), WRONG)
@pytest.mark.parametrize("path", ["tests/test_example.py", "benchmarks/bench_example.py"])
def test_arguments_that_the_constructor_does_not_take(text: str, at: str, message: str, path: str) -> None:
    linted = lint(text, path=path)
    (found,) = linted.diagnostics
    assert message in found.message
    assert linted.text(found.place) == at
    assert [linted.text(item.place) for item in found.related] == ["__init__"]


RIGHT = [
    "op = ExampleFwdOp(eps=0.5, kernel_map={})\n",
    "op = ExampleFwdOp(0.5)\n",
    "op = ExampleFwdOp(**{'size': 1})\nother = ExampleFwdOp(*[1, 2])\n",
    "def test_a():\n    with pytest.raises(TypeError):\n        ExampleFwdOp(size=1)\n",
    "def test_a():\n    with pytest.raises(\n        TypeError\n    ):\n        for _ in (1,):\n            ExampleFwdOp(size=1)\n",
    "def test_a():\n    try:\n        ExampleFwdOp(size=1)\n    except TypeError:\n        pass\n",
    "@pytest.mark.xfail\ndef test_a():\n    ExampleFwdOp(size=1)\n",
    "pytest.raises(TypeError, lambda: ExampleFwdOp(size=1))\n",
    '"""ExampleFwdOp(size=1)"""\n# ExampleFwdOp(size=1)\nTEXT = "ExampleFwdOp(size=1)"\n',
    "class ExampleFwdOp:\n    pass\n\n\nExampleFwdOp(size=1)\n",
    "ExampleFwdOp = make\nExampleFwdOp(size=1)\n",
    "other.ExampleFwdOp(size=1)\n",
    "OtherFwdOp(size=1)\n",
    "def ExampleFwdOp(size): ...\n\n\nExampleFwdOp(size=1)\n",
]


@pytest.mark.parametrize("text", RIGHT)
def test_nothing_that_is_certain(text: str) -> None:
    assert lint(text).diagnostics == []


@pytest.mark.parametrize(
    "head",
    ["from kit.ops import example\n", "from elsewhere import Other as ExampleFwdOp\n", "from elsewhere import *\n", ""],
)
def test_a_name_that_is_not_simply_imported(head: str) -> None:
    assert lint("op = ExampleFwdOp(size=1)\n", head).diagnostics == []


@pytest.mark.parametrize("text", sections("constructions_right"))
def test_calls_that_may_be_meant_to_fail_or_do_not_run(text: str) -> None:
    assert lint(text).diagnostics == []


@pytest.mark.parametrize("text", sections("constructions_wrong"))
def test_calls_that_surely_run(text: str) -> None:
    (found,) = lint(text).diagnostics
    assert "takes no `size`" in found.message


OTHER_CLASSES = [
    "from elsewhere.ops import ExampleFwdOp\n",
    "from workloads.example import ExampleFwdOp\n",
    "try:\n    from kit.ops.example import ExampleFwdOp\nexcept ImportError:\n    from other import ExampleFwdOp\n",
    "from kit.factories import ExampleFwdOp\n",
]


@pytest.mark.parametrize("head", OTHER_CLASSES)
def test_another_class_of_the_name(head: str) -> None:
    factory = "from kit.ops.example import ExampleFwdOp as _Op\n\n\ndef ExampleFwdOp(size):\n    return _Op()\n"
    made = [
        ("python tests/test_example.py", head + "op = ExampleFwdOp(size=1)\n"),
        ("python kit/factories.py", factory),
    ]
    assert lint_files([PACK], example_files(made), ["SIG211"]).diagnostics == []
