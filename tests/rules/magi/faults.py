"""Ops, sound and not: what to call of each, and which rules find something before and after the change to dataclasses.

``new`` are the rules for the contract ``dataclasses``, ``old`` for ``plain``; None where the case is of one contract only.
Where rules find nothing though something is wrong, or something though nothing is, ``why`` says it. ``NS`` is a namespace
of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD = """\
from dataclasses import KW_ONLY, InitVar, dataclass, field
from enum import Enum
from typing import Any, Literal, Optional

import torch
from magi_compiler.api import magi_register_custom_op
from magi_oracle import same
from torch import Tensor


"""

Codes = tuple[str, ...]


@dataclass(frozen=True)
class FaultCase:
    """One module and what is expected of it."""

    title: str
    text: str
    calls: tuple[str, ...]
    new: Codes | None
    old: Codes | None
    why: str = ""
    postponed: bool = False


CASES: list[FaultCase] = []


def case(
    title: str,
    text: str,
    *calls: str,
    new: str | None = "",
    old: str | None = "",
    why: str = "",
    postponed: bool = False,
) -> None:
    """Add a case; each call is ``real: …``, ``fake: …`` or ``back: …``."""
    codes = [None if item is None else tuple(item.split()) for item in (new, old)]
    CASES.append(FaultCase(title, text, calls, codes[0], codes[1], why, postponed))


def op(params: str, body: str = "return x + 1", *, name: str = "f", given: str = "", returns: str = "Tensor") -> str:
    """A decorated function."""
    more = f", {given}" if given else ""
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return f'@magi_register_custom_op("NS::{name}"{more})\ndef {name}({params}) -> {returns}:\n{lines}\n\n\n'


def frozen(fields: str, name: str = "Config", *, base: str = "", maker: str = "dataclass(frozen=True)") -> str:
    """A dataclass."""
    lines = "\n".join(f"    {line}" for line in fields.split("\n"))
    return f"@{maker}\nclass {name}{f'({base})' if base else ''}:\n{lines}\n\n\n"


K = frozen("k: float = 2.0")
K_REQUIRED = frozen("k: float")
W = frozen("w: Tensor\nk: float")
TEXT = 'class Mode(str, Enum):\n    A = "a"\n    B = "b"\n\n\n'
BARE = TEXT.replace("str, ", "")
NUMBERS = "class Mode(Enum):\n    A = 1\n\n\n"
F = 'real: same("f", x)'
FK = 'real: same("f", x, Config(3.0))'

# MAG301 to MAG305, MAG313, MAG314: what is refused

case("frozen dataclass", K + op("x: Tensor, c: Config", "return x * c.k"), FK, old="MAG303")
case(
    "mutable dataclass",
    frozen("k: float", maker="dataclass") + op("x: Tensor, c: Config", "return x * c.k"),
    FK,
    new="MAG301",
    old="MAG303",
)
case(
    "frozen=False",
    frozen("k: float", maker="dataclass(frozen=False)") + op("x: Tensor, c: Config", "return x * c.k"),
    FK,
    new="MAG301",
    old="MAG303",
)
case(
    "mutable in frozen",
    frozen("k: float", "Inner", maker="dataclass(eq=True)")
    + frozen("inner: Inner")
    + op("x: Tensor, c: Config", "return x * c.inner.k"),
    new="MAG301", old="MAG303",
)  # fmt: skip
case("mutable elsewhere", frozen("k: float", maker="dataclass") + op("x: Tensor"), F)
case("tuple field", frozen("k: tuple[int, int]") + op("x: Tensor, c: Config"), new="MAG302", old="MAG303")
case("dict field", frozen("k: dict[str, int]") + op("x: Tensor, c: Config"), new="MAG302", old="MAG303")
case("tuple", op("x: Tensor, k: tuple[int, int]"), new="MAG302", old="MAG302")
case("dict", op("x: Tensor, k: dict[str, int]"), new="MAG302", old="MAG302")
case("bare tuple", op("x: Tensor, k: tuple"), new="MAG303", old="MAG303")
case(
    "list field",
    frozen("k: list[int]") + op("x: Tensor, c: Config", "return x * c.k[0]"),
    'real: same("f", x, Config([2]))',
    old="MAG303",
)
case(
    "tuple returned",
    op("x: Tensor, y: Tensor", "return x + 1, y + 1", returns="tuple[Tensor, Tensor]"),
    'real: same("f", x, y)',
)
case("no annotation", op("x: Tensor, k"), new="MAG303", old="MAG303")
case("varargs", op("x: Tensor, *k: int"), new="MAG303", old="MAG303")
case("kwargs", op("x: Tensor, **k: int"), new="MAG303", old="MAG303")
case("no return annotation", op("x: Tensor").replace(" -> Tensor", ""), new="MAG303", old="MAG303")
case("string annotation", op('x: "Tensor", k: "float"', "return x * k"), 'real: same("f", x, 2.0)')
case("Any", op("x: Tensor, k: Any"), new="MAG303", old="MAG303")
for inner in ("Optional[Mode]", "list[Mode]", "Optional[Literal['a']]", "Literal['a'] | None", "list[Literal['a']]"):
    case(f"k: {inner}", TEXT + op(f"x: Tensor, k: {inner}"), new="MAG303", old="MAG303")
    case(f"field: {inner}", TEXT + frozen(f"k: {inner}") + op("x: Tensor, c: Config"), new="MAG303", old="MAG303")
case("list of str", op("x: Tensor, k: list[str]"), new="MAG303", old="MAG303")
case(
    "callable",
    "from collections.abc import Callable\n\n\n" + op("x: Tensor, k: Callable[[int], int]"),
    new="MAG303",
    old="MAG303",
)
case("optional list", op("x: Tensor, k: Optional[list[int]] = None"), F)
case("number", op("x: Tensor, k: int | float | bool", "return x * k"), 'real: same("f", x, 2)')
case("int or str", op("x: Tensor, k: int | str"), new="MAG303", old="MAG303")
case("Any in a field", frozen("k: Any") + op("x: Tensor, c: Config"), new="MAG303", old="MAG303")
case("module", op("x: Tensor, m: torch.nn.Module"), new="MAG303", old="MAG303")
case("module in a field", frozen("m: torch.nn.Linear") + op("x: Tensor, c: Config"), new="MAG303", old="MAG303")
case(
    "module of one's own in a field",
    "class Gate(torch.nn.Module):\n    pass\n\n\n"
    + frozen("m: Optional[torch.nn.Module]\ng: Gate")
    + op("x: Tensor, c: Config"),
    new="MAG303",
    old="MAG303",
)
case("parameter of a module", op("x: Tensor, w: torch.nn.Parameter"), new="MAG303", old="MAG303")
case("returns dict", op("x: Tensor", returns="dict[str, Tensor]"), new="MAG303", old="MAG303")
case("returns optional", op("x: Tensor", returns="Optional[Tensor]"), new="MAG303", old="MAG303")
case("returns str", op("x: Tensor", returns="str"), new="MAG303", old="MAG303")
case("returns open tuple", op("x: Tensor", returns="tuple[Tensor, ...]"), new="MAG303", old="MAG303")
case(
    "returns list",
    op("x: Tensor", "return [x + 1]", returns="list[Tensor]", given="infer_output_meta_fn=lambda x: [x.clone()]"),
    F,
    "fake: f(x)",
)
case("holds itself", frozen('k: "Config"') + op("x: Tensor, c: Config"), new="MAG303", old="MAG303")
case(
    "dataclass returned",
    frozen("x: Tensor") + op("x: Tensor", "return Config(x)", returns="Config"),
    new="MAG304",
    old="MAG304",
)
case("Literal of numbers", op("x: Tensor, k: Literal[1, 2]"), new="MAG305", old="MAG305")
case("Literal of both", op('x: Tensor, k: Literal["a", 2]'), new="MAG305", old="MAG305")
case("Literal of strings", op('x: Tensor, k: Literal["a", "b"]'), 'real: same("f", x, "a")', old="MAG305")
case("enumeration of numbers", NUMBERS + op("x: Tensor, m: Mode"), 'real: same("f", x, Mode.A)', new="MAG305")
case(
    "enumeration of numbers in a field",
    NUMBERS + frozen("m: Mode") + op("x: Tensor, c: Config"),
    new="MAG305",
    old="MAG303",
)
case("optional dataclass", K + op("x: Tensor, c: Optional[Config] = None"), F, new="MAG313", old="MAG313")
case("list of dataclasses", K + op("x: Tensor, c: list[Config]"), new="MAG313", old="MAG313")
case(
    "optional field",
    frozen("k: Optional[float] = None") + op("x: Tensor, c: Config"),
    'real: same("f", x, Config())',
    old="MAG303",
)
VOID = 'mutates_args=("x",), infer_output_meta_fn=lambda x: None'
case("returns None", op("x: Tensor", "x.add_(1)", returns="None", given=VOID), "real: f(x)", "fake: f(x)", new="MAG314")

# MAG306 to MAG308: strings

BODY = "return x * (2 if m {} Mode.A else 3)"
case("plain member", BARE + op("x: Tensor, m: Mode", BODY.format("==")), 'real: same("f", x, Mode.A)', new="MAG306")
case(
    "plain member in a field",
    BARE + frozen("m: Mode") + op("x: Tensor, c: Config"),
    'real: same("f", x, Config(Mode.A))',
    new="MAG306",
    old="MAG303",
)
case(
    "values of plain members",
    BARE + op("x: Tensor, m: Mode", 'return x * (2 if m == "a" else 3)') + 'def g(x):\n    return f(x, "a") + f(x, Mode.B.value)\n',
    "real: g(x)", 'real: same("f", x, "a")',
)  # fmt: skip
case("identity", TEXT + op("x: Tensor, m: Mode", BODY.format("is")), 'real: same("f", x, Mode.A)', new="MAG307")
case("no identity", TEXT + op("x: Tensor, m: Mode", BODY.format("is not")), 'real: same("f", x, Mode.A)', new="MAG307")
case("equality", TEXT + op("x: Tensor, m: Mode", BODY.format("==")), 'real: same("f", x, Mode.A)')
STRINGS = '\ndef g(x):\n    return f(x, "a")\n'
case(
    "identity with a plain member",
    BARE + op("x: Tensor, m: Mode", BODY.format("is")),
    'real: same("f", x, Mode.A)',
    new="MAG306 MAG307",
)
case("equality with a plain member", BARE + op("x: Tensor, m: Mode", BODY.format("==")) + STRINGS, "real: g(x)", new="MAG307",
     why="the comparison is always false, whether the op or its function is called")  # fmt: skip
case("value of a plain member", BARE + op("x: Tensor, m: Mode", "return x + len(m.value)") + STRINGS, "real: g(x)", new="MAG307",
     old=None)  # fmt: skip
case(
    "members and strings",
    BARE
    + op("x: Tensor, m: Mode", 'm_ = m.value if isinstance(m, Mode) else m\nreturn x * (2 if m_ == "a" else 3)')
    + STRINGS,
    "real: g(x)",
)
case(
    "member made anew",
    TEXT + op("x: Tensor, m: Mode", "m = Mode(m)\n" + BODY.format("is")),
    'real: same("f", x, Mode.A)',
)
case(
    "value of a string",
    TEXT + op("x: Tensor, m: Mode", 'return x * (2 if m.value == "a" else 3)'),
    'real: same("f", x, Mode.A)',
    new="MAG307",
)
case(
    "identity in a field",
    TEXT + frozen("m: Mode") + op("x: Tensor, c: Config", "if c.m is Mode.A:\n    return x * 2\nreturn x * 3"),
    'real: same("f", x, Config(Mode.A))', new="MAG307", old="MAG303",
)  # fmt: skip
case(
    "identity of another",
    TEXT + op("x: Tensor, m: Mode, k: Optional[int] = None", "return x * (2 if k is None else 3)"),
    'real: same("f", x, Mode.A)',
)
case(
    "outside of the Literal",
    op('x: Tensor, m: Literal["a", "b"]', 'return x * (2 if m == "a" else 3)') + 'def g(x):\n    return f(x, "c")\n',
    "real: g(x)", new="MAG308", old=None, why="the op takes any string: nothing raises, the value is another branch's",
)  # fmt: skip

# MAG309 to MAG311: dataclasses made anew

SETTING = 'def __post_init__(self):\n    object.__setattr__(self, "k", {})'
SCALED = op("x: Tensor, c: Config", "return x * c.k")


def changed(value: str) -> str:
    """A dataclass whose ``__post_init__`` sets its field."""
    return frozen("k: float\n" + SETTING.format(value)) + SCALED


case("multiplied", changed("self.k * 2"), FK, new="MAG309", old="MAG303")
case("power", changed("self.k ** -0.5"), FK, new="MAG309", old="MAG303")
case("clamped", changed("max(self.k, 5.0)"), FK, old="MAG303")
case("rounded up", changed("(self.k + 7) // 8 * 8"), FK, old="MAG303")
case("converted", changed("float(self.k)"), FK, old="MAG303")
case("negated", changed("-self.k"), FK, new="MAG309", old="MAG303")
case(
    "set when missing",
    frozen("k: float\ndef __post_init__(self):\n    if self.k < 0:\n        object.__setattr__(self, 'k', self.k + 9.0)")
    + SCALED,
    FK, 'real: same("f", x, Config(-1.0))', old="MAG303",
)  # fmt: skip
case("checked", frozen("k: float\ndef __post_init__(self):\n    assert self.k > 0") + SCALED, FK, old="MAG303")
case("no init", frozen("k: float\nh: float = field(init=False, default=1.0)") + SCALED, FK, new="MAG310", old="MAG303")
case(
    "InitVar",
    frozen("k: float\nh: InitVar[int]") + SCALED,
    'real: same("f", x, Config(3.0, 1))',
    new="MAG310",
    old="MAG303",
)
case("InitVar with a default", frozen("k: float\nh: InitVar[int] = 1") + SCALED, FK, old="MAG303")
OWN = "k: float\ndef __init__(self, {}):\n    object.__setattr__(self, 'k', {})"
case("other __init__", frozen(OWN.format("size", "size / 2")) + SCALED, FK, new="MAG310", old="MAG303")
case("own __init__", frozen(OWN.format("k", "k")) + SCALED, FK, old="MAG303")
case("keyword-only fields", frozen("_: KW_ONLY\nk: float") + SCALED, 'real: same("f", x, Config(k=3.0))', old="MAG303")
METHOD = "def factor(self):\n    return self.k{}"
FACTOR = op("x: Tensor, c: Config", "return x * c.factor()")
SUB = frozen("k: float\n" + METHOD.format("")) + frozen(METHOD.format("** 2"), "Sub", base="Config") + FACTOR
case(
    "subclass",
    SUB + "def g(x):\n    return f(x, Sub(3.0))\n",
    'real: same("f", x, Sub(3.0))',
    new="MAG311",
    old="MAG303",
)
case("base", SUB + "def g(x):\n    return f(x, Config(3.0))\n", 'real: same("f", x, Config(3.0))', old="MAG303")
case(
    "subclass with nothing",
    frozen("k: float") + frozen("pass", "Sub", base="Config") + SCALED + "def g(x):\n    return f(x, Sub(3.0))\n",
    'real: same("f", x, Sub(3.0))', old="MAG303",
)  # fmt: skip

# MAG312, MAG315 to MAG317: parameters

case("default before", K + op("c: Config, x: Tensor"), 'real: same("f", Config(), x)', new="MAG312", old="MAG303")
case("required before", K + op("x: Tensor, c: Config"), 'real: same("f", x, Config())', old="MAG303")
case(
    "no default in the dataclass",
    K_REQUIRED + op("c: Config, x: Tensor"),
    'real: same("f", Config(1.0), x)',
    old="MAG303",
)
case("dropped default", op("x: Tensor, k: int = 1, s: list[int] = [1]"), F, new="MAG312", old="MAG316")
case(
    "keyword-only behind a default",
    op("x: Tensor, k: int = 1, *, s: int"),
    'real: same("f", x, s=1)',
    new="MAG312 MAG315",
)
case(
    "dropped in the dataclass",
    frozen("k: float = 1.0\ns: list[int] = field(default_factory=list)") + SCALED,
    new="MAG312",
    old="MAG303",
)
case(
    "dropped first in the dataclass",
    frozen("s: list[int] = field(default_factory=list)\nk: float = 1.0") + SCALED,
    'real: same("f", x, Config())',
    old="MAG303",
)
case("same name", K_REQUIRED + op("x: Tensor, c__k: float, c: Config"), new="MAG317", old="MAG303")
case(
    "other name",
    K_REQUIRED + op("x: Tensor, c_k: float, c: Config"),
    'real: same("f", x, 1.0, Config(1.0))',
    old="MAG303",
)
case(
    "keyword-only tensor",
    op("x: Tensor, *, y: Tensor", "return x + y"),
    'real: same("f", x, y=y)',
    new="MAG315",
    old="MAG315",
)
case("keyword-only number", op("x: Tensor, *, k: float", "return x * k"), 'real: same("f", x, k=2.0)', new="MAG315")
case(
    "keyword-only with a default",
    op("x: Tensor, *, k: float = 1.0", "return x * k"),
    F,
    'real: same("f", x, k=2.0)',
    new="MAG315",
)
case(
    "keyword-only besides a dataclass",
    K + op("x: Tensor, c: Config, *, k: float", "return x * k"),
    'real: same("f", x, Config(), k=2.0)',
    new="MAG312",
    old="MAG303",
)
case(
    "keyword-only besides a required dataclass",
    K_REQUIRED + op("x: Tensor, c: Config, *, k: float", "return x * k"), 'real: same("f", x, Config(1.0), k=2.0)', old="MAG303",
)  # fmt: skip
case("positional-only", op("x: Tensor, /, k: float", "return x * k"), 'real: same("f", x, 2.0)', old="MAG315")
case("positional-only besides a dataclass", K + op("x: Tensor, /, c: Config"), FK, new="MAG315", old="MAG303 MAG315")
case("list default", op("x: Tensor, k: list[int] = [1, 2]", "return x * k[1]"), F, new="MAG316", old="MAG316")
case(
    "list default besides a dataclass",
    K_REQUIRED + op("x: Tensor, c: Config, k: list[int] = [1, 2]", "return x * k[1]"),
    FK,
    old="MAG303",
)
case(
    "list default that is passed",
    op("x: Tensor, k: list[int] = [1, 2]", "return x * k[1]") + "def g(x):\n    return f(x, [1, 2])\n",
    "real: g(x)", old="MAG316",
)  # fmt: skip
case("member as default", TEXT + op("x: Tensor, m: Mode = Mode.A"), F, 'real: same("f", x, Mode.B)', old="MAG316")
case("plain member as default", BARE + op("x: Tensor, m: Mode = Mode.A"), F, new="MAG306", old="MAG316")
case("dtype as default", op("x: Tensor, d: torch.dtype = torch.float32", "return x.to(d) + 1"), F, "fake: f(x)")
for default in ("k: float = float('inf')", "k: float = -float('inf')", r"k: str = 'a\n'", "k: list[int] = 0"):
    case(f"{default}: no schema", op(f"x: Tensor, {default}"), F, new="MAG316", old="MAG316")
case(
    "default of a field", frozen("k: float = float('nan')") + op("x: Tensor, c: Config"), F, new="MAG316", old="MAG303"
)
PRINTED = op("x: Tensor, m: Mode = Mode.A, k: int = 1", "return x + k if m == 'a' else x * 5")
SKIPPED = 'real: same("f", x, k=2)'
case("member that is printed otherwise", TEXT + PRINTED, SKIPPED, new="MAG316", old="MAG316")
case("member with `__str__`", TEXT.rstrip() + "\n    __str__ = str.__str__\n\n\n" + PRINTED, SKIPPED, old="MAG316")
case(
    "member that is always passed",
    TEXT + PRINTED + "def g(x):\n    return f(x, Mode.A, k=2) + f(x) + f(x, m='b')\n",
    "real: g(x)",
    old="MAG316",
)
case(
    "member that may be unpacked",
    TEXT + PRINTED + "def g(x, *more, **options):\n    return f(x, *more, k=2) + f(x, **options)\n",
    'real: g(x, "a")',
    old="MAG316",
)
case("None as default", op("x: Tensor, k: Optional[list[int]] = None"), F)

# MAG320 to MAG323: meta

LIKE = "infer_output_meta_fn=[{}]"
OF_W = op("c: Config", "return c.w * c.k", given=LIKE.format('"{}"'))
CW = 'real: same("f", Config(x, 2.0))'
FCW = "fake: f(Config(x, 2.0))"
TWICE = "return x + 1, x + 2"
PAIR = "tuple[Tensor, Tensor]"
case("name of a tensor", op("x: Tensor, y: Tensor", "return x + y", given=LIKE.format('"y"')), "fake: f(x, y)")
case("unknown name", op("x: Tensor", given=LIKE.format('"y"')), F, "fake: f(x)", new="MAG320", old="MAG320")
case(
    "name of a number",
    op("x: Tensor, k: float", given=LIKE.format('"k"')),
    "fake: f(x, 1.0)",
    new="MAG320",
    old="MAG320",
)
case("name of the dataclass", W + OF_W.replace("{}", "c"), CW, FCW, new="MAG320", old="MAG303")
case("name of the field", W + OF_W.replace("{}", "w"), CW, FCW, new="MAG320", old="MAG303")
case("lowered name", W + OF_W.replace("{}", "c__w"), CW, FCW, old="MAG303")
case(
    "one for two",
    op("x: Tensor", TWICE, given=LIKE.format('"x"'), returns=PAIR),
    "fake: f(x)",
    new="MAG321",
    old="MAG321",
)
case("two for two", op("x: Tensor", TWICE, given=LIKE.format('"x", "x"'), returns=PAIR), "fake: f(x)")
case("two for one", op("x: Tensor", given=LIKE.format('"x", "x"')), "fake: f(x)", new="MAG321", old="MAG321")
case("none for one", op("x: Tensor", given=LIKE.format("")), "fake: f(x)", new="MAG321", old="MAG321")
case(
    "two for a list",
    op("x: Tensor", "return [x + 1, x + 2]", given=LIKE.format('"x", "x"'), returns="list[Tensor]"),
    "fake: f(x)",
)
case(
    "one for a list",
    op("x: Tensor", "return [x + 1]", given=LIKE.format('"x"'), returns="list[Tensor]"),
    "fake: f(x)",
    new="MAG321",
    old="MAG321",
)
case(
    "tuple for the list",
    op("x: Tensor", given='infer_output_meta_fn=("x",)'),
    F,
    "fake: f(x)",
    new="MAG321",
    old="MAG321",
)
case("string for the list", op("x: Tensor", given='infer_output_meta_fn="x"'), "fake: f(x)", new="MAG321", old="MAG321")
case("no tensors", op("k: int", "return torch.ones(k)"), "real: f(2)", "fake: f(2)", new="MAG321", old="MAG321")
case("tensors in the dataclass", W + op("c: Config", "return c.w * c.k"), CW, FCW, old="MAG303")
case("too few tensors", op("x: Tensor, k: float", TWICE, returns=PAIR), "fake: f(x, 1.0)", new="MAG321", old="MAG321")
case("as many tensors", op("x: Tensor, y: Tensor", TWICE, returns=PAIR), "fake: f(x, y)")
case(
    "a tuple as a string",
    op("x: Tensor, y: Tensor", TWICE, returns=PAIR),
    "fake: f(x, y)",
    old="MAG321",
    postponed=True,
)
case(
    "a tuple of one",
    op("x: Tensor", "return (x + 1,)", returns="tuple[Tensor]"),
    "fake: f(x)",
    new="MAG321",
    old="MAG321",
)
case("a number", op("x: Tensor", "return 3", returns="int"), "fake: f(x)", new="MAG321", old="MAG321")
case(
    "nothing",
    op("x: Tensor", "x.add_(1)", returns="None", given='mutates_args=("x",)'),
    "fake: f(x)",
    new="MAG314",
    old="MAG321",
)
for returned in (
    "x.sum()",
    "x > y",
    "torch.stack([x, y])",
    "x.argmax(-1)",
    "torch.isnan(x)",
    "x.mean(dim=-1)",
    "x.sum(-1).clone()",
):
    case(
        returned,
        op("x: Tensor, y: Tensor", f"return {returned}"),
        'real: same("f", x, y)',
        "fake: f(x, y)",
        new="MAG322",
        old="MAG322",
    )
for returned in ("x @ y.T", "torch.cat([x, y])", "torch.matmul(x, y.t())", "x.repeat(2, 1)"):
    case(
        returned, op("x: Tensor, y: Tensor", f"out = {returned}\nreturn out.clone()"), "fake: f(x, y)", new="", old="",
        why="what is made before the return is not followed through a copy",
    )  # fmt: skip
    case(returned, op("x: Tensor, y: Tensor", f"return {returned}"), "fake: f(x, y)", new="MAG322", old="MAG322")
for returned in ("y.sum(0)", "y > 0", "y.argmax(-1)", "torch.stack([y, y])", "y @ y.T"):
    case(f"{returned} like x", op("x: Tensor, y: Tensor", f"return {returned}"), new="", old="", why="x may be like it")
for returned in ("x[:, 0].clone()", "x[..., -1].contiguous()", "x[0] + 1"):
    code = "" if "+" in returned else "MAG322"
    case(
        returned,
        op("x: Tensor", f"return {returned}"),
        "fake: f(x)",
        new=code,
        old=code,
        why="" if code else "arithmetic",
    )
for returned in ("x[0:].clone()", "x[:, [0, 1]].clone()", "x[None, :, 0].clone()", "x[:, None, 0].clone()"):
    case(returned, op("x: Tensor", f"return {returned}"), "fake: f(x[:2, :2])", why="it may have as many dimensions")
case("mask.logical_not()", op("x: Tensor", "return x.logical_not()"), 'real: same("f", x > 0)', "fake: f(x > 0)")
case("x.unsqueeze(0)", op("x: Tensor", "return x.unsqueeze(0)"), F, new="MAG322 MAG331", old="MAG322 MAG331")
case("x.flatten()", op("x: Tensor", "return x.flatten().contiguous()"), F, "fake: f(x)", new="MAG322", old="MAG322")
for returned in (
    "x + y",
    "x * y.sum()",
    "torch.relu(x)",
    "x.max(y)",
    "torch.maximum(x, y)",
    "x.sum(-1, keepdim=True) + x",
):
    case(returned, op("x: Tensor, y: Tensor", f"return {returned}"), 'real: same("f", x, y)', "fake: f(x, y)")
META = "infer_output_meta_fn=meta"


def with_meta(params: str, of: str, body: str = "return torch.empty_like(x)", before: str = "") -> str:
    """An op with a meta function of these parameters."""
    return f"{before}def meta({params}):\n    {body}\n\n\n" + op(of, given=META)


case(
    "meta by the same names",
    with_meta("x, c", "x: Tensor, c: Config", before=K),
    FK,
    "fake: f(x, Config())",
    old="MAG303",
)
case(
    "meta by other names",
    with_meta("a, b", "x: Tensor, c: Config", "return torch.empty_like(a)", K),
    FK,
    "fake: f(x, Config())",
    new="MAG323",
    old="MAG303",
)
case(
    "meta in another order",
    with_meta("c, x", "x: Tensor, c: Config", before=K),
    FK,
    "fake: f(x, Config())",
    old="MAG303",
)
case("meta with **", with_meta("x, **more", "x: Tensor, c: Config", before=K), "fake: f(x, Config())", old="MAG303")
case(
    "meta with more",
    with_meta("x, c, d", "x: Tensor, c: Config", before=K),
    "fake: f(x, Config())",
    new="MAG323",
    old="MAG303",
)
case(
    "other names without a dataclass",
    with_meta("a, b", "x: Tensor, k: int", "return torch.empty_like(a)"),
    "fake: f(x, 1)",
)
case("swapped without a dataclass", with_meta("k, x", "x: Tensor, k: int"), "fake: f(x, 1)", new="MAG323", old="MAG323")
case("one less", with_meta("x", "x: Tensor, k: int"), "fake: f(x, 1)", new="MAG323", old="MAG323")
case("no default", with_meta("x, k", "x: Tensor, k: int = 1"), "fake: f(x)", new="MAG323", old="MAG323")
case(
    "no default, of a default that is dropped",
    with_meta("x, k", "x: Tensor, k: list[int] = [1]") + "def g(x):\n    return f(x, [1])\n",
    "fake: g(x)",
    old="MAG316",
)
case(
    "lambda of other names",
    K + op("x: Tensor, c: Config", given="infer_output_meta_fn=lambda a, c: a.clone()"),
    "fake: f(x, Config())",
    new="MAG323",
    old="MAG303",
)
case("lambda", op("x: Tensor, k: int", given="infer_output_meta_fn=lambda a, b: a.clone()"), "fake: f(x, 1)")
case(
    "lambda of one less",
    op("x: Tensor, k: int", given="infer_output_meta_fn=lambda a: a.clone()"),
    "fake: f(x, 1)",
    new="MAG323",
    old="MAG323",
)

# MAG330 to MAG332: effects

CX = "Config(x.clone(), 2.0)"
case("written", op("x: Tensor", "x.add_(1)\nreturn x + 1"), "real: f(x)", new="MAG330", old="MAG330")
case("item written", op("x: Tensor", "x[0] = 1\nreturn x + 1"), "real: f(x)", new="MAG330", old="MAG330")
case("view written", op("x: Tensor", "x.view(-1)[0] += 1\nreturn x + 1"), "real: f(x)", new="MAG330", old="MAG330")
case(
    "out=",
    op("x: Tensor, y: Tensor", "torch.add(x, y, out=y)\nreturn x + 1"),
    "real: f(x, y)",
    new="MAG330",
    old="MAG330",
)
case("declared", op("x: Tensor", "x.add_(1)\nreturn x + 1", given='mutates_args=("x",)'), "real: f(x)")
case("copy written", op("x: Tensor", "x = x.clone()\nx.add_(1)\nreturn x"), "real: f(x)", F)
case(
    "field written",
    W + op("x: Tensor, c: Config", "c.w.add_(1)\nreturn x + 1"),
    "real: f(y, Config(x, 2.0))",
    new="MAG330",
    old="MAG303",
)
case(
    "field declared",
    W + op("x: Tensor, c: Config", "c.w.add_(1)\nreturn x + 1", given='mutates_args=("c__w",)'),
    "real: f(y, Config(x, 2.0))",
    old="MAG303",
)
case("input", op("x: Tensor", "return x"), F, new="MAG331", old="MAG331")
case(
    "view",
    op("x: Tensor", "return x.view(-1)", given="infer_output_meta_fn=lambda x: x.new_empty(x.numel())"),
    F,
    new="MAG331",
    old="MAG331",
)
case(
    "in a tuple",
    op("x: Tensor, y: Tensor", "return x + 1, y", returns=PAIR),
    'real: same("f", x, y)',
    new="MAG331",
    old="MAG331",
)
case("input in an arm", op("x: Tensor, k: int = 1", "return x if k else x + 1"), F, new="MAG331", old="MAG331")
case("copies in both arms", op("x: Tensor, k: int = 1", "return x.clone() if k else x + 1"), F)
case("in the dataclass", W + op("c: Config", "return c.w"), CW, new="MAG331", old="MAG303")
case(
    "written and returned",
    op("x: Tensor", "return x.add_(1)", given='mutates_args=("x",)'),
    "real: f(x)",
    new="MAG331",
    old="MAG331",
)
case("clone", op("x: Tensor", "return x.clone()"), F)
case("wrong name", op("x: Tensor", given='mutates_args=("y",)'), new="MAG332", old="MAG332")
case("name of a number", op("x: Tensor, k: int", given='mutates_args=("k",)'), new="MAG332", old="MAG332")
case("string", op("x: Tensor", given='mutates_args="x"'), new="MAG332", old="MAG332")
case("unknown", op("x: Tensor", given='mutates_args="unknown"'), "real: f(x)")
case(
    "dataclass with a number",
    W + op("c: Config", "return c.w + 1", given='mutates_args=("c",)'),
    new="MAG332",
    old="MAG303",
)
case(
    "lowered name of a tensor", W + op("c: Config", "return c.w + 1", given='mutates_args=("c__w",)'), CW, old="MAG303"
)
case("unlowered name", W + op("c: Config", "return c.w + 1", given='mutates_args=("w",)'), new="MAG332", old="MAG303")

# MAG340 to MAG343: gradients

GIVEN = "setup_context_fn=setup, backward_fn=backward"


def gradient(
    params: str, setup: str, unpack: str, backward: str, before: str = "", signature: str = "ctx, inputs, output"
) -> str:
    """An op ``x * 2`` with a gradient."""
    lines = f"def setup({signature}):\n    {setup}\n\n\ndef backward(ctx, {unpack}):\n    {backward}\n\n\n"
    return before + lines + op(params, "return x * 2", given=GIVEN)


B = "back: f(x)"
BK = "back: f(x, Config())"
XC = "x: Tensor, c: Config"
case("gradient", gradient("x: Tensor", "pass", "g", "return g * 2"), B)
case(
    "setup by other names",
    gradient("x: Tensor", "pass", "g", "return g * 2", signature="ctx, inp, out"),
    B,
    new="MAG340",
    old="MAG340",
)
case("setup in another order", gradient("x: Tensor", "pass", "g", "return g * 2", signature="output, inputs, ctx"), B)
case("setup by any name", gradient("x: Tensor", "pass", "g", "return g * 2", signature="ctx, **more"), B)
case(
    "setup by other names with a dataclass",
    gradient(XC, "pass", "g", "return g * 2, None", K, "c, i, o"),
    BK,
    old="MAG303",
)
case("setup of two", gradient(XC, "pass", "g", "return g * 2, None", K, "ctx, inputs"), BK, new="MAG340", old="MAG303")
case("inputs of two", gradient("x: Tensor, k: float", "x, k = inputs", "g", "return g * 2, None"), "back: f(x, 1.0)")
case(
    "inputs of one",
    gradient("x: Tensor, k: float", "(x,) = inputs", "g", "return g * 2, None"),
    "back: f(x, 1.0)",
    new="MAG340",
    old="MAG340",
)
case(
    "original inputs",
    gradient(XC, "x, c = inputs", "g", "return g * 2, None", W),
    "back: f(x, Config(y, 1.0))",
    old="MAG303",
)
case(
    "lowered inputs",
    gradient(XC, "x, w, k = inputs", "g", "return g * 2, None", W),
    "back: f(x, Config(y, 1.0))",
    new="MAG340",
    old="MAG303",
)
case("keyword-only", gradient("x: Tensor, *, k: int = 1", "pass", "g", "return g * 2"), B, new="MAG315 MAG342", old="MAG340",
     why="after the change a keyword-only parameter is not passed at all")  # fmt: skip
case(
    "saved",
    gradient("x: Tensor", "ctx.save_for_backward(*inputs)", "g", "(x,) = ctx.saved_tensors\n    return g * 2"),
    B,
)
case("not saved", gradient("x: Tensor", "pass", "g", "return g * ctx.k"), B, new="MAG341", old="MAG341")
case(
    "saved another number",
    gradient("x: Tensor", "ctx.save_for_backward(inputs[0], output)", "g", "(x,) = ctx.saved_tensors\n    return g"),
    B,
    new="MAG341",
    old="MAG341",
)
case(
    "no setup",
    "def backward(ctx, g):\n    (x,) = ctx.saved_tensors\n    return g\n\n\n" + op("x: Tensor", given="backward_fn=backward"),
    B, new="MAG341", old="MAG341",
)  # fmt: skip
case(
    "no backward",
    "def setup(ctx, inputs, output):\n    pass\n\n\n" + op("x: Tensor", given="setup_context_fn=setup"),
    B,
    new="MAG341",
    old="MAG341",
)
case("one for a dataclass too", gradient(XC, "pass", "g", "return g * 2", K), BK, new="MAG342", old="MAG303")
case("one for each", gradient(XC, "pass", "g", "return g * 2, None", K), BK, old="MAG303")
case(
    "one for each leaf",
    gradient(XC, "pass", "g", "return g * 2, None, None", W),
    "back: f(x, Config(y, 1.0))",
    new="MAG342",
    old="MAG303",
)
case(
    "dict for the dataclass",
    gradient(XC, "pass", "g", 'return g * 2, {"w": None}', W),
    "back: f(x, Config(y, 1.0))",
    old="MAG303",
)
case(
    "one for two parameters",
    gradient("x: Tensor, k: float", "pass", "g", "return g * 2"),
    "back: f(x, 1.0)",
    new="MAG342",
    old="MAG342",
)
case(
    "one for a default too",
    gradient("x: Tensor, k: float = 1.0", "pass", "g", "return g * 2"),
    B,
    "back: f(x, 2.0)",
    new="MAG342",
    old="MAG342",
)
case(
    "a list",
    gradient("x: Tensor, k: float", "pass", "g", "return [g * 2, None]"),
    "back: f(x, 1.0)",
    new="MAG342",
    old="MAG342",
)
case(
    "one gradient of two",
    "def backward(ctx, g):\n    return g\n\n\n"
    + op("x: Tensor", TWICE, given='infer_output_meta_fn=["x", "x"], backward_fn=backward', returns=PAIR),
    B, new="MAG342", old="MAG342",
)  # fmt: skip
case("lambda", K + op(XC, given="backward_fn=lambda ctx, g: g"), BK, new="MAG342", old="MAG303")
case("lambda of two", K + op(XC, given="backward_fn=lambda ctx, g: (g, None)"), BK, old="MAG303")
case(
    "gradient of a write",
    op("x: Tensor", "x.add_(1)\nreturn x + 1", given='mutates_args=("x",), backward_fn=lambda ctx, g: g'),
    new="MAG343",
    old="MAG343",
)

# MAG349, MAG350: names

BARE_DECORATOR = "@magi_register_custom_op\ndef f(x: Tensor) -> Tensor:\n    return x + 1\n"
case("not called", BARE_DECORATOR, "real: f(x)", new="MAG349", old="MAG349")
case("no namespace", op("x: Tensor").replace("NS::", ""), new="MAG350", old="MAG350")
case("two namespaces", op("x: Tensor").replace("NS::", "NS::a::"), new="MAG350", old="MAG350")
case("hyphen", op("x: Tensor").replace("NS::f", "NS::f-1"), new="MAG350", old="MAG350")
case("number first", op("x: Tensor").replace("NS::f", "NS::1f"), new="MAG350", old="MAG350")
case("overload", op("x: Tensor").replace("NS::f", "NS::f.more"), F)
TWO = op("x: Tensor", "return x + 1") + op("x: Tensor", "return x + 2", name="g")
case("twice", TWO.replace("NS::g", "NS::f"), F, new="MAG350", old="MAG350")
case("two", TWO, F, 'real: same("g", x)')

# MAG360, MAG361: calls

OTHER = frozen("z: float", "Other")
SCALES = op("x: Tensor, c: Config, b: float = 0.0", "return x * c.k + b")
TAKES_INT = op("x: Tensor, n: int", "return x + n")
TAKES_STR = op("x: Tensor, m: str", 'return x * (2 if m == "a" else 3)')


def called(text: str, call: str, head: str = K_REQUIRED) -> str:
    """An op and a function that calls it."""
    return f"{head}{text}def g(x):\n    return {call}\n"


def call_case(title: str, text: str, call: str, new: str = "", head: str = K_REQUIRED, old: str | None = None) -> None:
    """A case of a call ``g(x)``; without a dataclass also before the change."""
    case(title, called(text, call, head), "real: g(x)", new=new, old=old)


call_case("missing argument", SCALES, "f(x)", "MAG360")
call_case("unknown keyword", SCALES, "f(x, config=Config(1.0))", "MAG360")
call_case("one keyword more", SCALES, "f(x, Config(1.0), more=1)", "MAG360")
call_case("too many", SCALES, "f(x, Config(1.0), 1.0, 2.0)", "MAG360")
call_case("twice", SCALES, "f(x, Config(1.0), x=x)", "MAG360")
call_case("by name", SCALES, "f(c=Config(1.0), x=x)")
call_case("default dataclass", op("x: Tensor, c: Config = Config(2.0)", "return x * c.k"), "f(x)")
call_case("by name only", op("x: Tensor, *, c: Config", "return x * c.k"), "f(x, Config(1.0))", "MAG360")
call_case("unpacked", SCALES, "f(*(x, Config(1.0)), **{'b': 1.0})")
call_case("lowered", SCALES, "torch.ops.NS.f(x, c__k=1.0)")
call_case("lowered, by position", SCALES, "torch.ops.NS.f(x, 1.0, 2.0)")
call_case("lowered, missing", SCALES, "torch.ops.NS.f(x)", "MAG360")
call_case("lowered, by the original name", SCALES, "torch.ops.NS.f(x, c=1.0)", "MAG360")
call_case("float for int", TAKES_INT, "f(x, 1.5)", "MAG360", "", "MAG360")
call_case("missing number", TAKES_INT, "f(x)", "MAG360", "", "MAG360")
call_case("number by another name", TAKES_INT, "f(x, k=1)", "MAG360", "", "MAG360")
call_case("bool for int", TAKES_INT, "f(x, True)", "", "", "")
call_case(
    "caught",
    SCALES.replace("*", "+") + "def h(x):\n    try:\n        f(x)\n    except TypeError:\n        return x\n\n\n",
    "h(x)",
)
call_case("a field that the dataclass lacks", SCALES, "f(x, Config(kk=1.0))", "MAG360")
call_case("a dataclass without its field", SCALES, "f(x, Config())", "MAG360")
call_case("a field too many", SCALES, "f(x, Config(1.0, 2.0))", "MAG360")
call_case("a field twice", SCALES, "f(x, Config(1.0, k=1.0))", "MAG360")
MADE_BEFORE = "def h(x):\n    c = Config(k=1.0, kk=2.0)\n    return f(x, c)\n\n\n"
call_case("a field too many before the call", SCALES + MADE_BEFORE, "h(x)", "MAG360")
call_case("fields of a mapping", SCALES, "f(x, Config(**{'k': 1.0}))")
call_case("fields by name only", SCALES, "f(x, Config(k=1.0))", "", frozen("_: KW_ONLY\nk: float"))
call_case(
    "a field by position that is by name only", SCALES, "f(x, Config(1.0))", "MAG360", frozen("_: KW_ONLY\nk: float")
)
INHERITED = frozen("k: float", "Base") + "@dataclass(frozen=True)\nclass Config(Base):\n    w: float = 1.0\n\n\n"
call_case("fields that are inherited", SCALES, "f(x, Config(1.0, 2.0))", "", INHERITED)
OWN_INIT = frozen("k: float\ndef __init__(self, kk):\n    object.__setattr__(self, 'k', kk)")
call_case("an own constructor", SCALES, "f(x, Config(kk=1.0))", "MAG310", OWN_INIT)
NOT_INIT = frozen("k: float\nw: float = field(init=False, default=1.0)")
call_case("a field that is not passed", SCALES, "f(x, Config(1.0))", "MAG310", NOT_INIT)
call_case("wrong dataclass", SCALES, "f(x, Other(1.0))", "MAG361", K_REQUIRED + OTHER)
call_case("wrong dataclass by name", SCALES, "f(c=Other(1.0), x=x)", "MAG361", K_REQUIRED + OTHER)
call_case("either dataclass", SCALES, "f(x, Other(1.0) if x is None else Config(1.0))", "", K_REQUIRED + OTHER)
call_case("another class with the fields", SCALES, "f(x, Same())", "", K_REQUIRED + "class Same:\n    k = 2.0\n\n\n")
DYNAMIC = "class Any_:\n    def __getattr__(self, name):\n        return 2.0\n\n\n"
PATCHED = OTHER.replace("(frozen=True)", "") + "Other.k = 2.0\n\n\n"
INSIDE = frozen("z: float\ndef __post_init__(self):\n    object.__setattr__(self, 'k', self.z)", "Other")
call_case("a class of any attribute", SCALES, "f(x, Any_())", "", K_REQUIRED + DYNAMIC)
call_case("a class patched", SCALES, "f(x, Other(1.0))", "", K_REQUIRED + PATCHED)
call_case("an attribute of `__post_init__`", SCALES, "f(x, Other(1.0))", "", K_REQUIRED + INSIDE)
call_case("tensor for a dataclass", SCALES, "f(x, x)", "MAG361")
call_case("made tensor for a dataclass", SCALES, "f(x, torch.ones(2))", "MAG361")
call_case(
    "tensor that has the fields", op("x: Tensor, c: Config", "return x * c.ndim"), "f(x, x)", "", frozen("ndim: int")
)
call_case("number for a dataclass", SCALES, "f(x, 2.0)", "MAG361")
call_case("None for a dataclass", SCALES, "f(x, None)", "MAG361")
call_case(
    "number that has the fields", op("x: Tensor, c: Config", "return x * c.real"), "f(x, 2)", "", frozen("real: int")
)
call_case("dataclass for a tensor", SCALES, "f(Config(1.0), Config(1.0))", "MAG361")
call_case("dataclass for a number", TAKES_INT, "f(x, Config(1.0))", "MAG361", old="MAG361")
call_case("tensor for a string", TAKES_STR, "f(x, torch.ones(1))", "MAG361", "", "MAG361")
call_case("plain member for a string", TAKES_STR, "f(x, Mode.A)", "MAG361", BARE, "MAG361")
call_case("member for a string", TAKES_STR, "f(x, m=Mode.A)", "", TEXT, "")
STRINGS = op("x: Tensor, m: Words", BODY.format("==").replace("Mode", "Words"))
WORDS = BARE + TEXT.replace("Mode", "Words")
call_case("member for that of an enumeration of strings", STRINGS, "f(x, m=Mode.A)", "MAG361", WORDS)
call_case("member of an enumeration of strings", STRINGS, "f(x, m=Words.A)", "", WORDS)
call_case("value of a member for a string", TAKES_STR, "f(x, Mode.A.value)", "", BARE, "")
call_case("string for a field", SCALES, 'f(x, Config("a"))', "MAG361")
call_case("int for a field", SCALES, "f(x, Config(1))")
call_case("name of a wrong number", TAKES_INT, "f(x, SIZE)", "MAG361", "SIZE = 1.5\n\n\n", "MAG361")
call_case("plain member by name", op("x: Tensor, m: Mode", BODY.format("==")), "f(x, m=Mode.A)", "MAG306", BARE)
NESTED = frozen("inner: Config").replace("Config:", "Outer:")
call_case(
    "wrong inner dataclass",
    op("x: Tensor, o: Outer", "return x * o.inner.k"),
    "f(x, Outer(Other(1.0)))",
    "MAG361",
    K_REQUIRED + OTHER + NESTED,
)
call_case(
    "inner dataclass",
    op("x: Tensor, o: Outer", "return x * o.inner.k"),
    "f(x, Outer(Config(1.0)))",
    "",
    K_REQUIRED + NESTED,
)
WRAPPED = SCALES.replace("@magi", "@twice\n@magi", 1)
TWICE_ = "def twice(op):\n    return lambda x: op(x, Config(1.0))\n\n\n"
call_case("another decorator above", WRAPPED, "f(x)", "", K_REQUIRED + TWICE_)
call_case("defined again", SCALES + "def f(x):\n    return x\n\n\n", "f(x)")
call_case("local of the same name", SCALES, "(lambda f: f(x))(lambda y: y)")
SHADOWED = "[f(x, c)[0] for c in (Config(1.0),)][0]"
call_case("variable of a comprehension", SCALES + "c = Other(1.0)\n\n\n", SHADOWED, "", K_REQUIRED + OTHER)
LOCAL = "def h(x):\n    c = Other(1.0)\n    k = c.z\n    return [f(x, c) for c in (Config(k),)][0]\n\n\n"
call_case("variable of a comprehension in a function", SCALES + LOCAL, "h(x)", "", K_REQUIRED + OTHER)
AT_MODULE = "c = Other(1.0)\nones = torch.ones(2)\nys = [f(ones, c) for c in (Config(1.0),)]\n\n\n"
call_case("variable of a comprehension in the module", SCALES + AT_MODULE, "ys[0]", "", K_REQUIRED + OTHER)
LATE = "def h(x, c: Other):\n    c = Config(c.z)\n    return f(x, c)\n\n\n"
call_case("a parameter bound anew", SCALES + LATE, "h(x, Other(1.0))", "", K_REQUIRED + OTHER)
CHOSEN = "def h(x, wide=True):\n    c = Other(1.0)\n    if wide:\n        c = Config(1.0)\n    return f(x, c)\n\n\n"
call_case("bound in a branch", SCALES + CHOSEN, "h(x)", "", K_REQUIRED + OTHER)
CHECKED = "def h(x, c: Other):\n    return f(x, c) if isinstance(c, Config) else x\n\n\n"
call_case("checked before", SCALES + CHECKED, "h(x, Other(1.0))", "", K_REQUIRED + OTHER)
BELOW = frozen("k: float = 1.0", "Below", base="Other")
ABOVE = "def h(x, c: Other):\n    return f(x, c)\n\n\n"
call_case("annotated with a class above", SCALES + ABOVE, "h(x, Below(1.0))", "", K_REQUIRED + OTHER + BELOW)
call_case("annotated with another class", SCALES + ABOVE, "h(x, Other(1.0))", "MAG361", K_REQUIRED + OTHER)
DEFAULT = "def h(x, m=SIZE):\n    return f(x, m)\n\n\n"
call_case("default of the caller's parameter", TAKES_INT + DEFAULT, "h(x, 2)", "", "SIZE = 1.5\n\n\n", "")
GUARDED = "try:\n    Y = f(torch.ones(2))\nexcept TypeError:\n    Y = None\n\n\n"
call_case("caught in the module", SCALES + GUARDED, "x", "")
EITHER = "if torch.tensor(1):\n" + "".join(f"    {line}\n" for line in TAKES_INT.rstrip().split("\n"))
call_case("defined in a branch", EITHER + "else:\n    def f(x):\n        return x\n\n\n", "f(x, 1)", "", "", "")
SUPPRESS = (
    "import contextlib\n\n\ndef h(x):\n    with contextlib.suppress(TypeError):\n        f(x)\n    return x\n\n\n"
)
call_case("suppressed", SCALES + SUPPRESS, "h(x)", "")

# MAG362, MAG363: fields

PROPERTY = frozen("k: float\n@property\ndef half(self):\n    return self.k / 2")
ADDED = frozen("k: float\ndef __post_init__(self):\n    object.__setattr__(self, 'half', self.k / 2)")
DYNAMIC_FIELDS = frozen("k: float\ndef __getattr__(self, name):\n    return 2.0")


def field_case(title: str, body: str, new: str = "", head: str = K_REQUIRED, call: str = FK) -> None:
    """A case of the body of ``f(x, c)``."""
    case(title, head + op("x: Tensor, c: Config", body), call, new=new, old=None)


field_case("frozen field", "c.k = 2.0\nreturn x * c.k", "MAG362")
field_case("frozen field in place", "c.k *= 2\nreturn x * c.k", "MAG362")
field_case("new attribute", "c.more = 2.0\nreturn x * c.k", "MAG362")
field_case("frozen field deleted", "k = c.k\ndel c.k\nreturn x * k", "MAG362")
field_case("frozen field set around", "object.__setattr__(c, 'k', 3.0)\nreturn x * c.k")
field_case("frozen field caught", "try:\n    c.k = 2.0\nexcept AttributeError:\n    pass\nreturn x * c.k")
field_case("a new one", "import dataclasses\nc = dataclasses.replace(c, k=3.0)\nreturn x * c.k")
field_case("attribute of the tensor", "y = x + 0\ny.data = x * c.k\nreturn y")
field_case("missing field", "return x * c.nope", "MAG363")
field_case("missing field of an alias", "d = c\nreturn x * d.nope", "MAG363")
field_case("missing field caught", "try:\n    k = c.nope\nexcept AttributeError:\n    k = c.k\nreturn x * k")
field_case("missing field asked for", "return x * (c.nope if hasattr(c, 'nope') else c.k)")
field_case("property", "return x * c.half", head=PROPERTY)
field_case("attribute added", "return x * c.half", head=ADDED)
field_case("any attribute", "return x * c.half", head=DYNAMIC_FIELDS)
field_case("class patched", "return x * c.half", head=K_REQUIRED + "Config.half = 2.0\n\n\n")
field_case("special attribute", "return x * len(c.__dict__) + c.__class__.__name__.count('x')")
INNER_C = "k = [c.nope for c in []] or [1.0]\nreturn x * k[0]"
field_case("variable of another", INNER_C)
field_case("bound by match", "match [x]:\n    case [c]:\n        y = c.ndim\nreturn x * y")
field_case(
    "inner function of the name",
    "def c():\n    return 1\nc.nope = 2\nreturn x * c.nope",
    call="real: f(x, Config(1.0))",
)
field_case("field of the type", "return x * c.k.real")
field_case(
    "inner missing field",
    "return x * c.inner.nope",
    "MAG363",
    frozen("k: float", "Inner") + frozen("inner: Inner"),
    'real: same("f", x, Config(Inner(1.0)))',
)
field_case(
    "inner frozen field",
    "c.inner.k = 1.0\nreturn x * c.inner.k",
    "MAG362",
    frozen("k: float", "Inner") + frozen("inner: Inner"),
    'real: same("f", x, Config(Inner(1.0)))',
)


def gradient_case(title: str, setup: str, backward: str, new: str = "") -> None:
    """A case of a setup and a backward function."""
    case(title, gradient(XC, setup, "g", backward, K), BK, new=new, old=None)


gradient_case("missing field in the setup", "_, c = inputs\n    ctx.k = c.nope", "return g * ctx.k, None", "MAG363")
gradient_case("missing field by index", "c = inputs[1]\n    ctx.k = c.nope", "return g * ctx.k, None", "MAG363")
gradient_case("missing field in the backward", "ctx.c = inputs[1]", "return g * ctx.c.nope, None", "MAG363")
gradient_case("missing field of a local", "_, ctx.c = inputs", "c = ctx.c\n    return g * c.k, None")
gradient_case(
    "frozen field in the setup", "_, c = inputs\n    c.k = 1.0\n    ctx.k = c.k", "return g * ctx.k, None", "MAG362"
)
gradient_case("frozen field in the backward", "ctx.c = inputs[1]", "ctx.c.k = 1.0\n    return g, None", "MAG362")
gradient_case("kept fields", "_, c = inputs\n    ctx.c = c\n    ctx.k = c.k", "return g * ctx.c.k * ctx.k, None")
gradient_case("context of another", "_, c = inputs\n    ctx.c = c.k", "return g * ctx.c.real, None")
WRITES = "def h(x):\n    c = Config(1.0)\n    c.k = 2.0\n    return f(x, c)\n\n\n"
call_case("frozen field of a caller", SCALES + WRITES, "h(x)", "MAG362")
READS = "def h(x):\n    c = Config(1.0)\n    return f(x, c) * c.nope\n\n\n"
call_case("missing field of a caller", SCALES + READS, "h(x)", "MAG363")
MUTABLE_ = frozen("k: float", "Loose", maker="dataclass")
LOOSE = "def h(x):\n    c = Loose(1.0)\n    c.k = 2.0\n    return f(x, c)\n\n\n"
call_case("a mutable twin", SCALES + LOOSE, "h(x)", "", K_REQUIRED + MUTABLE_)
META = "def meta(x, c):\n    return torch.empty_like(x) * c.nope\n\n\n"
case("missing field in the meta function", K_REQUIRED + META + op("x: Tensor, c: Config", given="infer_output_meta_fn=meta"),
     "fake: f(x, Config(1.0))", new="MAG363", old=None)  # fmt: skip

# MAG333, MAG334, MAG344, MAG351: results, what is saved, arguments of the decorator

PAIR = 'infer_output_meta_fn=["x", "x"]'
case(
    "one value too many",
    op("x: Tensor", "return x + 1, x + 2", given='infer_output_meta_fn=["x"]'),
    "real: f(x)",
    new="MAG333",
    old="MAG333",
)
HALVES = op("x: Tensor", "return x + 1, x + 2", given=PAIR, returns="tuple[Tensor, Tensor]")
case("two values", HALVES, 'real: same("f", x)')
UNPACKED = "def h(x):\n    a, b, c = f(x)\n    return a + b + c\n\n\n"
case("unpacked into three", HALVES + UNPACKED, "real: h(x)", new="MAG334", old="MAG334")
case("unpacked into two", HALVES + UNPACKED.replace(", c", "").replace(" + c", ""), "real: h(x)")
SAVES = "_, k = inputs\n    ctx.save_for_backward({})"
READ_BACK = "(k,) = ctx.saved_tensors\n    return g * 2, None"
XK, BXK = "x: Tensor, k: float", "back: f(x, 2.0)"
case("a number saved", gradient(XK, SAVES.format("k"), "g", READ_BACK), BXK, new="MAG344", old="MAG344")
case("None saved", gradient(XK, SAVES.format("None"), "g", READ_BACK), BXK)
case("misspelt argument", op("x: Tensor", given='mutate_args=("x",)'), "real: f(x)", new="MAG351", old="MAG351")
