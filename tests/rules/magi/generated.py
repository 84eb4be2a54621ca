"""Modules with generated ops: signatures, dataclasses, enumerations and literals, sound and unsound, near and far."""

from __future__ import annotations

import random

HEAD = """\
import dataclasses
import enum
import typing
from collections.abc import Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Dict, List, Literal, Optional, Tuple, Union

import torch
from magi_compiler.api import magi_register_custom_op as register
from torch import Tensor

if TYPE_CHECKING:
    from elsewhere import Hidden

STEP = 4
HALF = torch.float16
Ints = list[int]
Pair = Tuple[int, int]


class Plain:
    pass
"""

ENUMS = {
    "PlainMode": 'class PlainMode(Enum):\n    A = "a"\n    B = "b"\n',
    "TextMode": 'class TextMode(str, Enum):\n    A = "a"\n    B = "b"\n',
    "Number": "class Number(IntEnum):\n    ONE = 1\n    TWO = STEP\n",
    "Auto": "class Auto(enum.Enum):\n    X = enum.auto()\n",
    "Empty": "class Empty(Enum):\n    pass\n",
    "Mixed": 'class Mixed(Enum):\n    A = "a"\n    B = 2\n\n    def label(self) -> str:\n        return self.name\n',
    "Noted": "class Noted(str, Enum):\n    A = enum.auto()\n",
    "Paired": 'class Paired(Enum):\n    A = ("a",)\n',
    "Flagged": "class Flagged(enum.Flag):\n    A = 1\n",
    "Derived": 'class Bare(str, Enum):\n    pass\n\n\nclass Derived(Bare):\n    A = "q"\n',
    "Hinted": 'class Hinted(str, enum.Enum):\n    _ignore_ = ["skipped"]\n    A = "x"\n',
}

TYPES = [
    "Tensor", "torch.Tensor", "int", "float", "bool", "str", "torch.dtype", "torch.device", "Optional[Tensor]", "Tensor | None",
    "List[int]", "list[Tensor]", "Ints", "Sequence[int]", "Optional[list[float]]", "Union[int, float]", "typing.Optional[int]",
    "Literal['a', 'b']", "Literal['a']", "Annotated[int, 'meta']", "Annotated[Tensor, 1]", "list[Optional[Tensor]]", "Plain", "Any",
    "list", "tuple",
]  # fmt: skip
BAD_TYPES = [
    "tuple[int, int]", "Tuple[int, ...]", "dict[str, int]", "Dict[str, Tensor]", "Pair", "Literal[1, 2]", "Literal['a', 1]",
    "typing.Tuple", "Dict", "Literal['a', None]",
]  # fmt: skip
DEFAULTS = {
    "int": ["1", "STEP", "-3", "None"], "float": ["0.5", "1e-6", "STEP", 'float("inf")'], "bool": ["True"], "str": ["'s'"],
    "torch.dtype": ["torch.float32", "HALF"], "torch.device": ["torch.device('cpu')"], "Optional[Tensor]": ["None"],
    "Tensor | None": ["None"], "List[int]": ["[1, 2]", "()"], "Ints": ["[]"], "Sequence[int]": ["(1, 2)"],
    "Literal['a', 'b']": ["'a'"], "typing.Optional[int]": ["None", "3"], "Plain": ["Plain()", "Plain"],
    "PlainMode": ["PlainMode.A"], "TextMode": ["TextMode.B"],
    "Number": ["Number.ONE"], "Union[int, float]": ["2"], "Any": ["{}", "lambda: 1", "print", "(1, 2)", "float(2)"],
}  # fmt: skip
FACTORIES = {
    "int": ["int", "lambda: 3"],
    "str": ["str"],
    "float": ["float"],
    "List[int]": ["list", "lambda: [1]"],
    "Ints": ["list"],
}


class Generator:
    """One module's text."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.postponed = self.random.random() < 0.3
        self.classes: list[str] = []
        self.lines: list[str] = []

    def module(self, ops: int) -> str:
        """The module, with that many ops."""
        head = ("from __future__ import annotations\n" if self.postponed else "") + HEAD
        enums = [ENUMS[name] for name in ENUMS]
        body = [*enums, *(self.dataclass(f"Cfg{index}") for index in range(8)), self.endless()]
        body += [
            self.local(f"op{index}") if self.random.random() < 0.25 else self.op(f"op{index}") for index in range(ops)
        ]
        body.append("@dataclass(frozen=True)\nclass Late:\n    a: int\n")
        return head + "\n\n" + "\n\n".join(body)

    def pick(self, *weighted: tuple[list[str], float]) -> str:
        """One of several lists' items."""
        lists = [items for items, _ in weighted if items]
        weights = [weight for items, weight in weighted if items]
        return self.random.choice(self.random.choices(lists, weights)[0])

    def type(self) -> str:
        """A type, rarely one that is refused."""
        nested = [f"Optional[{name}]" for name in self.classes[:2]]
        kinds = ["TextMode", "PlainMode", "Hinted", "Noted", "Derived"]
        bad = ["Number", "Auto", "Empty", "Mixed", "Paired", "Flagged"]
        return self.pick((TYPES, 10), (BAD_TYPES, 0.5), (kinds, 1.5), (bad, 0.3), (self.classes, 5), (nested, 0.3))

    def annotation(self, kind: str) -> str:
        """The type as it is written: sometimes as a string, whole or inside."""
        chance = self.random.random()
        if chance < 0.1 and kind != "'Hidden'":
            return repr(kind)
        return kind.replace("[Tensor", "['Tensor'", 1) if chance < 0.15 else kind

    def dataclass(self, name: str, indent: str = "") -> str:
        """A dataclass, mostly frozen."""
        frozen = self.random.random() < 0.93
        base = ""
        same = [item for item in self.classes if item.endswith("F" if frozen else "M")]
        undecorated = same and not indent and self.random.random() < 0.1
        full = f"{name}{'F' if frozen else 'M'}"
        if same and not indent and self.random.random() < 0.25:
            base = f"({self.random.choice(same)})"
        decorator = self.random.choice(["dataclass", "dataclasses.dataclass"])
        arguments = ["frozen=True"] if frozen else self.random.choice([[], ["frozen=False"]])
        arguments += ["kw_only=True"]
        lines = [f"@{decorator}({', '.join(arguments)})", f"class {full}{base}:"]
        fields = [self.field(f"f{self.random.randrange(6)}") for _ in range(self.random.randint(1, 4))]
        extra = self.pick(
            ([""], 8), (["    shared: ClassVar[int] = 3", "    seed: InitVar[int] = 0"], 2), (["    _: KW_ONLY"], 1)
        )
        later = [f"    {fields[0].split(':')[0].strip()} = 7"] if self.random.random() < 0.05 else []
        lines += [*fields, *([extra] if extra else []), *later]
        if undecorated:
            lines = [f"class {full}({self.random.choice(same)}):", "    more: int = 1"]
        self.classes.append(full)
        return "\n".join(indent + line for line in lines) + "\n"

    def endless(self) -> str:
        """A dataclass that holds itself, and one that does so through None or itself."""
        self.classes += ["Endless", "Tree"] if self.random.random() < 0.2 else []
        fields = ["next: Endless" if self.postponed else "next: 'Endless'", "left: Optional['Tree']"]
        names = ["Endless", "Tree"]
        parts = [
            f"@dataclass(frozen=True)\nclass {name}:\n    {item}\n" for name, item in zip(names, fields, strict=True)
        ]
        return "\n\n".join(parts)

    def field(self, name: str) -> str:
        """One field."""
        kind = "'Hidden'" if self.random.random() < 0.01 else self.type()
        value = ""
        if self.random.random() < 0.4:
            plain = [item for item in DEFAULTS.get(kind, []) if item[0] not in "[{"]
            made = [f"field(default_factory={item})" for item in FACTORIES.get(kind, [])]
            given = [f"field(default={item}, repr=False)" for item in plain]
            value = self.pick((plain, 3), (made, 2), (given, 1)) if plain or made else ""
        return f"    {name}: {self.annotation(kind)}" + (f" = {value}" if value else "")

    def param(self, name: str, local: bool) -> tuple[str, bool]:
        """A parameter, and whether it has a default; ``local`` when its op is in a function."""
        kind = self.type()
        default = self.random.choice(DEFAULTS[kind]) if kind in DEFAULTS and self.random.random() < 0.4 else ""
        note = "" if self.random.random() < 0.02 else f": {self.annotation(kind)}"
        if self.random.random() < 0.02:
            note = ": 'Hidden'"
        if not local and self.random.random() < 0.03:
            note = ": Late" if self.postponed else ": 'Late'"
        return f"{name}{note}" + (f" = {default}" if default else ""), bool(default)

    def op(self, name: str, indent: str = "") -> str:
        """An op."""
        names = self.random.sample(["x", "y", "cfg", "cfg__f1", "cfg__f2", "mode", "k"], self.random.randint(1, 4))
        made = [self.param(item, bool(indent)) for item in names]
        required = [text for text, default in made if not default]
        optional = [text for text, default in made if default]
        cut = self.random.randint(0, len(optional))
        tail = optional[cut:] + (required[-1:] if self.random.random() < 0.2 and len(required) > 1 else [])
        front = required[:-1] if tail[len(optional) - cut :] else required
        parts = [*front, *optional[:cut], *(["*", *tail] if tail else [])]
        if self.random.random() < 0.03:
            parts = [*parts[: parts[0] != "*"], self.random.choice(["*rest: int", "**rest: int"])]
        if front and self.random.random() < 0.1:
            parts.insert(1, "/")
        returns = self.pick(
            (["Tensor", "tuple[Tensor, Tensor]", "list[Tensor]", "None", "Tuple[Tensor, ...]", "'Tensor'", "int"], 20),
            (self.classes, 1), ([""], 0.4),
        )  # fmt: skip
        arrow = f" -> {returns}" if returns else ""
        uses = "\n".join(f"{indent}    {item}" for item in self.classes if self.random.random() < 0.1)
        mutates = self.random.choice(
            ["", "", f"mutates_args={(self.random.choice(names),)!r}", "mutates_args=('cfg__f1',)"]
        )
        return f"{indent}@register({mutates})\n{indent}def {name}({', '.join(parts)}){arrow}:\n{uses}\n{indent}    return x\n"

    def local(self, name: str) -> str:
        """An op in a function, with a dataclass of its own."""
        own = self.dataclass(f"Local{name}", "    ")
        made = f"def make_{name}():\n{own}\n{self.op(name, '    ')}\n\nmake_{name}()\n"
        self.classes.pop()
        return made
