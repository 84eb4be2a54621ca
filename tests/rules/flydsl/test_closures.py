"""FLY204, FLY205 and FLY220: what traced functions depend on and their cache keys do not hold."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.testing import Linted, lint_files
from opschema_rules.flydsl.examples import HEAD, KERNELS_PATH, example_files
from opschema_rules.flydsl.pack import PACK

LAUNCH = """\
    @flyc.kernel
    def kernel(A: fx.Tensor):
        {read}

    @flyc.jit
    def launch(A: fx.Tensor):
        kernel(A).launch(grid=(1, 1, 1), block=(64, 1, 1))

    return launch
"""

CONFIG = """\
from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    tile: int
    stages: int = 2

    @property
    def rows(self) -> int:
        return self.tile * 4


"""


def lint(text: str, code: str = "FLY204", files: Mapping[str, str] | None = None, version: str = "0.4.2") -> Linted:
    toml = ("toml", f'[flydsl]\nversion = "{version}"\n')
    return lint_files([PACK], {**example_files([toml, ("python", text)]), **(files or {})}, [code])


def factory(params: str, read: str, body: str = "", before: str = "", after: str = "") -> str:
    """A factory of a launcher whose kernel reads something."""
    return f"{before}def build({params}):\n{body}{LAUNCH.format(read=read)}{after}"


def only(linted: Linted) -> Diagnostic:
    (found,) = linted.diagnostics
    return found


def test_the_read_the_parameter_and_the_function_with_the_key_are_shown() -> None:
    linted = lint(factory("sizes: list", "print(sizes[0])"))
    found = only(linted)
    assert found.message == (
        "`sizes`, a list, is not part of the cache key of `build.launch`: builds that differ only in it share one artifact on "
        "disk; capture `tuple(sizes)` instead"
    )
    assert linted.text(found.place) == "sizes"
    assert linted.position(found.place).line == HEAD.count("\n") + 4
    assert [(linted.text(item.place), item.message) for item in found.related] == [
        ("sizes", "the captured value"),
        ("launch", "whose key does not contain it"),
    ]
    assert found.ops == ("build.launch",)


@pytest.mark.parametrize(
    ("annotation", "instead"),
    [
        ("list[int]", "capture `tuple(x)` instead"),
        ("dict", "capture `tuple(x.items())` instead"),
        ("torch.dtype", "capture `str(x)` and read it too"),
        ("torch.dtype | None", "capture `str(x)` and read it too"),
        ("bytes", "capture `x.hex()` and read it too"),
    ],
)
def test_what_to_do_instead(annotation: str, instead: str) -> None:
    assert only(lint(factory(f"x: {annotation}", "print(x)"))).message.endswith(instead)


@pytest.mark.parametrize(
    "annotation", ["int", "tuple", "tuple[list, ...]", "str", "object", "list | tuple", "Unknown", "fx.Int32"]
)
def test_kinds_that_are_seen_or_not_known(annotation: str) -> None:
    assert not lint(factory(f"x: {annotation}", "print(x)")).diagnostics


@pytest.mark.parametrize(
    ("params", "body", "read"),
    [
        ("tile: int", "    sizes = [tile, 2 * tile]\n", "print(sizes)"),
        ("tile: int", "    sizes = []\n    sizes.append(tile)\n", "print(sizes)"),
        ("tile: int", "    sizes = {'rows': tile // 2}\n", "print(sizes['rows'])"),
        ("fast: bool", "    sizes = [1] if fast else [2]\n", "print(sizes)"),
        ("fast: bool", "    sizes = [1]\n    if fast:\n        sizes = [2]\n", "print(sizes)"),
        ("mode: str", "    sizes = [1] if mode == 'fast' else [2]\n", "print(sizes)"),
        ("dtype: torch.dtype", "    chosen = dtype\n", "print(chosen)"),
        ("sizes: list", "    count = len(sizes)\n", "print(count, sizes)"),
    ],
)
def test_what_is_made_of_parameters_that_nothing_tells(params: str, body: str, read: str) -> None:
    found = only(lint(factory(params, read, body)))
    name = params.partition(":")[0]
    assert f"made from `{name}`" in found.message or f"`{name}`, a " in found.message


@pytest.mark.parametrize(
    ("params", "body", "read"),
    [
        ("tile: int", "    sizes = [tile]\n", "print(sizes, tile)"),
        ("tile: int", "    sizes = [tile]\n    rows = 4 * tile\n", "print(sizes, rows)"),
        ("tile: int", "    sizes = [1, 2]\n", "print(sizes)"),
        ("sizes: list", "    order = tuple(sizes)\n", "print(sizes, order)"),
        ("sizes: list", "    first = sizes[0]\n", "print(sizes, first)"),
        ("dtype: torch.dtype", "    name = 'f16' if dtype == torch.float16 else 'f32'\n", "print(dtype, name)"),
        (
            "dtype: torch.dtype",
            "    if dtype is torch.float16:\n        wide = 1\n    else:\n        wide = 2\n",
            "print(dtype, wide)",
        ),
        ("sizes: list", "    kind = classify(sizes)\n", "print(sizes, kind)"),
        ("sizes: list", "    sizes = tuple(sizes)\n", "print(sizes)"),
        ("sizes: list", "    def other():\n        nonlocal sizes\n        sizes = 1\n", "print(sizes)"),
        ("log: list", "", "log.append(1)"),
        ("sizes: list", "", "print([sizes for sizes in (1, 2)])"),
        ("sizes: list", "", "print(lambda sizes: sizes)"),
        ("sizes: list", "", "sizes = 1; print(sizes)"),
    ],
)
def test_harmless_captures(params: str, body: str, read: str) -> None:
    assert not lint(factory(params, read, body)).diagnostics


def test_a_kernel_and_a_helper_are_read_for_the_function_that_launches() -> None:
    text = """\
def build(sizes: list, tile: int):
    def helper():
        return sizes[0]

    @flyc.kernel
    def kernel(A: fx.Tensor):
        def part():
            return helper()
        print(part(), tile)

    @flyc.jit
    def launch(A: fx.Tensor):
        kernel(A).launch(grid=(1, 1, 1), block=(64, 1, 1))
"""
    linted = lint(text)
    found = only(linted)
    assert found.message.startswith("`sizes`, a list, is not part of the cache key of `build.launch`")
    assert linted.text(found.place) == "sizes"
    assert linted.position(found.place).line == HEAD.count("\n") + 3


@pytest.mark.parametrize(
    "chosen",
    [
        "    if fast:\n        def kernel():\n            _ = tag\n    else:\n        def kernel():\n            _ = tag\n",
        "    def one():\n        _ = tag\n\n    kernel = one if fast else None\n",
        "    def make():\n        def one():\n            _ = tag\n        return one\n\n    kernel = make()\n",
    ],
)
def test_a_function_that_may_be_captured_may_tell(chosen: str) -> None:
    text = """\
def build(sizes: list, fast: bool):
    tag = {tag}
{chosen}
    @flyc.jit
    def launch(A: fx.Tensor):
        kernel()
        print(sizes)

    return launch
"""
    assert lint(text.format(tag="fast", chosen=chosen)).codes() == ["FLY204"]
    assert not lint(text.format(tag="str(sizes)", chosen=chosen)).diagnostics


@pytest.mark.parametrize(
    "head",
    ["class Shape(Protocol):\n    rows: int\n", "class Shape:\n    pass\n\n\nclass Pair(Shape, tuple):\n    pass\n"],
)
def test_a_class_whose_instances_may_be_tuples(head: str) -> None:
    before = f"from typing import Protocol\n\n\n{head}\n\n"
    assert not lint(factory("shape: Shape", "print(shape)", before=before)).diagnostics


def test_what_another_function_of_the_key_tells_is_harmless() -> None:
    text = factory("sizes: list", "print(sizes)", "    tag = str(sizes)\n").replace(
        "    def launch(A: fx.Tensor):\n", "    def launch(A: fx.Tensor):\n        _ = tag\n"
    )
    assert not lint(text).diagnostics


@pytest.mark.parametrize(
    "after",
    [
        "\n\nbuild([1, 2])\nbuild([1, 2])\n",
        "\n\nbuild()\n",
    ],
)
def test_what_every_caller_gives_the_same_is_harmless(after: str) -> None:
    assert not lint(factory("sizes: list = (1,)", "print(sizes)", after=after)).diagnostics


def test_callers_that_differ_are_told_of() -> None:
    assert lint(factory("sizes: list", "print(sizes)", after="\n\nbuild([1])\nbuild([2])\n")).codes() == ["FLY204"]


def test_the_kind_of_a_parameter_without_annotation_comes_from_all_callers() -> None:
    text = factory("sizes", "print(sizes)")
    assert lint(f"{text}\n\nbuild([1])\nbuild(sizes=[2])\n").codes() == ["FLY204"]
    assert not lint(f"{text}\n\nbuild([1])\nbuild((2,))\n").diagnostics
    assert not lint(text).diagnostics


def test_a_factory_that_keeps_its_results_hashes_what_it_is_given() -> None:
    before = "import functools\n\n\n@functools.lru_cache\n"
    assert not lint(factory("sizes: list", "print(sizes)", before=before)).diagnostics
    assert lint(factory("dtype: torch.dtype", "print(dtype)", before=before)).codes() == ["FLY204"]


@pytest.mark.parametrize(
    ("body", "read", "attribute"),
    [
        ("    tile = config.tile\n", "print(config.tile, tile, config.stages)", "config.stages"),
        ("", "print(config.tile)", "config"),
    ],
)
def test_fields_of_a_dataclass(body: str, read: str, attribute: str) -> None:
    linted = lint(factory("config: Config", read, body, CONFIG))
    assert linted.text(only(linted).place).startswith(attribute)


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("    tile = config.tile\n", "print(config.tile, tile)"),
        ("    tile = config.tile\n", "print(config.rows, tile)"),
        ("    rows = config.rows\n", "print(config.tile, rows)"),
        ("    tag = repr(config)\n", "print(config.stages, tag)"),
        ("    tile = config.tile\n", "print(config, tile)"),
    ],
)
def test_fields_of_a_dataclass_that_may_be_told(body: str, read: str) -> None:
    assert not lint(factory("config: Config", read, body, CONFIG)).diagnostics


def test_members_of_enumerations_are_in_the_key_from_0_3_2_on() -> None:
    text = factory("mode: Mode", "print(mode)", before="import enum\n\n\nclass Mode(enum.Enum):\n    FAST = 1\n\n\n")
    assert lint(text, version="0.3.1").codes() == ["FLY204"]
    assert not lint(text, version="0.3.2").diagnostics


@pytest.mark.parametrize(
    "text",
    [
        "CONFIG = [1, 2]\n\n\n@flyc.jit\ndef launch(A: fx.Tensor):\n    print(CONFIG)\n",
        "@flyc.jit\ndef launch(A: fx.Tensor, sizes: list):\n    @flyc.kernel\n    def kernel():\n        print(sizes)\n",
        "def build(sizes: list):\n    @flyc.kernel\n    def kernel(A: fx.Tensor):\n        print(sizes)\n    return kernel\n",
        "def helper(sizes: list):\n    @flyc.jit\n    def inner():\n        print(sizes)\n    inner()\n",
        "def build(sizes: list):\n    def plain(A):\n        print(sizes)\n    return plain\n",
    ],
)
def test_what_is_captured_by_no_key_of_its_own(text: str) -> None:
    assert not lint(text).diagnostics


def test_what_a_caller_or_a_decorator_tells_is_harmless() -> None:
    text = """\
def build(sizes: list):
    @flyc.jit{arguments}
    def launch(A: fx.Tensor, first: fx.Constexpr[int]{default}):
        print(sizes)

    def run(A):
        launch(A, {passed})
    return run, launch
"""
    assert lint(text.format(arguments="", default="", passed="1")).codes() == ["FLY204"]
    assert not lint(text.format(arguments="", default="", passed="sizes[0]")).diagnostics
    assert not lint(text.format(arguments="", default=" = sizes[0]", passed="1")).diagnostics
    assert not lint(text.format(arguments="(compile_hints={'a': sizes[0]})", default="", passed="1")).diagnostics


@pytest.mark.parametrize(
    "deep",
    [
        "1" + " - 1" * 300,
        "not " * 300 + "1",
        "[" * 150 + "1" + "]" * 150,
        "sizes" + ".a" * 300,
        "(" * 150 + "1" + ")" * 150,
    ],
)
def test_deep_expressions(deep: str) -> None:
    text = factory(
        "sizes: list, fast: bool", "print(sizes, other)", f"    other = [1] if fast else [{deep}]\n    more = {deep}\n"
    )
    assert "OPS900" not in lint(text).codes()


HELPED = """\
{imported}


@flyc.kernel
def scale(A: fx.Tensor, n: fx.Int32):
    print({call}(n))


@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32):
    scale(A, n).launch(grid=(1, 1, 1), block=(64, 1, 1))
"""
MATH = "def double(x):\n    return x + x\n\n\ndef half(x):\n    return x\n"
COMMON = {"kit/common/math.py": MATH, "kit/common/__init__.py": "", "kit/math.py": MATH}


def helped(imported: str, call: str, files: Mapping[str, str] | None = None) -> Linted:
    return lint(HELPED.format(imported=imported, call=call), "FLY205", {**COMMON, **(files or {})})


def test_a_helper_in_another_folder() -> None:
    linted = helped("from kit.common.math import double", "double")
    found = only(linted)
    assert found.message == (
        "`double`, a function of `kit/common`, is traced into `launch`, whose cache key does not contain its source: after an edit "
        "the old artifact runs; name `kit/common` in `FLYDSL_EXTRA_SOURCE_DIRS`"
    )
    assert found.place.path == KERNELS_PATH
    assert linted.text(found.place) == "double"
    assert [(item.place.path, linted.text(item.place)) for item in found.related] == [
        ("kit/common/math.py", "double"),
        (KERNELS_PATH, "launch"),
    ]


def test_a_helper_called_as_an_attribute_of_its_module() -> None:
    found = only(helped("from kit import math", "math.double"))
    assert found.message.startswith("`math.double`, called as an attribute of its module, is traced into `launch`")


def test_helpers_of_one_folder_are_one_finding() -> None:
    linted = helped("from kit.common.math import double, half", "double(half(n)), half")
    assert ", and so is another one:" in only(linted).message


@pytest.mark.parametrize(
    ("imported", "call", "files"),
    [
        ("from kit.math import double", "double", {}),
        ("from kit.common.math import double", "double", {"run.sh": "export FLYDSL_EXTRA_SOURCE_DIRS=kit/common\n"}),
        (
            "from kit.common.math import double",
            "double",
            {"conftest.py": "import os\nos.environ['FLYDSL_EXTRA_SOURCE_DIRS'] = 'kit'\n"},
        ),
        ("from torch import double", "double", {}),
        ("from kit.nowhere import double", "double", {}),
    ],
)
def test_helpers_that_are_seen(imported: str, call: str, files: Mapping[str, str]) -> None:
    assert not helped(imported, call, files).diagnostics


def test_a_text_that_speaks_of_the_setting_changes_nothing() -> None:
    assert helped("from kit.common.math import double", "double", {"README.md": "FLYDSL_EXTRA_SOURCE_DIRS"}).diagnostics


def test_the_kernel_beside_its_launcher_is_followed() -> None:
    text = """\
from kit.common.math import double


def build():
    def rows(n):
        return double(n)

    @flyc.kernel
    def kernel(A: fx.Tensor, n: fx.Int32):
        print(rows(n))

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        kernel(A, n).launch(grid=(1, 1, 1), block=(64, 1, 1))

    return launch
"""
    found = only(lint(text, "FLY205", COMMON))
    assert found.message.startswith("`double`, a function of `kit/common`, is traced into `build.launch`")
    assert not lint(text.replace("print(rows(n))", "print(n)"), "FLY205", COMMON).diagnostics
    assert not lint(text.replace("kit.common.math", "kit.math"), "FLY205", COMMON).diagnostics


def test_a_captured_helper_is_in_the_key_wherever_it_lies() -> None:
    text = """\
def build():
    from kit.common.math import double

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        kernel(A, double(n)).launch(grid=(1, 1, 1), block=(64, 1, 1))
"""
    assert not lint(text, "FLY205", COMMON).diagnostics


def test_a_function_under_jit_has_the_folder_that_it_lies_in() -> None:
    near = "import flydsl.compiler as flyc\nfrom kit.common.math import double\n\n\n@flyc.jit\ndef twice(x): return double(x)\n"
    assert not helped("from kit.common.near import twice", "twice", {"kit/common/near.py": near}).diagnostics


METHOD = """\
class Scale:
    {members}

    @flyc.kernel
    def kernel(self, A: fx.Tensor):
        print({read})

    @flyc.jit
    def run(self, A: fx.Tensor):
        self.kernel(A).launch(grid=(1, 1, 1), block=(64, 1, 1))
"""


def method(members: str, read: str = "self.factor", after: str = "", head: str = "") -> Linted:
    return lint(head + METHOD.format(members=members, read=read) + after, "FLY220")


def test_an_attribute_that_init_takes() -> None:
    linted = method("def __init__(self, factor):\n        self.factor = [factor]")
    found = only(linted)
    assert found.message == (
        "`self.factor` is baked into what `Scale.run` compiles, but its cache key only contains the type of `self`: instances "
        "that differ in it run the first one's code; pass it as `fx.Constexpr`"
    )
    assert linted.text(found.place) == "self.factor"
    assert [linted.text(item.place) for item in found.related] == ["self.factor", "run"]


def test_an_attribute_that_a_plain_method_reads() -> None:
    members = (
        "def __init__(self, factor):\n        self.factor = factor\n\n    def rows(self):\n        return self.factor"
    )
    assert method(members, "self.rows()").codes() == ["FLY220"]


def test_a_field_of_a_dataclass() -> None:
    text = "from dataclasses import dataclass\n\n\n@dataclass\n" + METHOD.format(
        members="factor: int", read="self.factor"
    )
    assert lint(text, "FLY220").codes() == ["FLY220"]


@pytest.mark.parametrize(
    ("members", "after"),
    [
        ("factor = 2", ""),
        ("def __init__(self):\n        self.factor = 2", ""),
        ("def __init__(self, factor):\n        self.factor = lookup(factor)", ""),
        ("def __init__(self, factor):\n        self.factor = factor\n        self.factor = 2", ""),
        ("def __init__(self, other):\n        self.other = other", ""),
        (
            "def __init__(self, factor):\n        self.factor = factor",
            "\n    def __call__(self, A):\n        self.run(A, self.factor)\n",
        ),
    ],
)
def test_attributes_that_do_not_vary_or_may_be_told(members: str, after: str) -> None:
    assert not method(members, after=after).diagnostics


def test_a_method_that_only_traced_functions_call() -> None:
    text = """\
class Helper:
    def __init__(self, factor):
        self.factor = factor

    @flyc.jit
    def scaled(self, x):
        return x * self.factor
"""
    assert not lint(text, "FLY220").diagnostics
