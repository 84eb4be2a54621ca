"""Our account of what the cache key holds, against the real one: from 0.5.0 on it is the program, which misses nothing."""

from __future__ import annotations

import random
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.flydsl.code import read_tree
from opschema_rules.flydsl.detection import FlydslOptions
from opschema_rules.flydsl.helpers import unseen_helpers
from opschema_rules.flydsl.instances import baked_attributes
from opschema_rules.flydsl.key import PROGRAM_SINCE
from opschema_rules.flydsl.stale_captures import stale_captures
from tests.rules.flydsl.key_oracle import RELEASES, Answer, keys, release_of

HEAD = """\
import enum
import functools
import zlib
from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple, Optional

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx


@dataclass(frozen=True)
class Config:
    tile: int
    stages: int = 2


class Pair(NamedTuple):
    first: int


class Mode(enum.Enum):
    FAST = 1
    SMALL = 2


class Plain:
    def __init__(self, tile):
        self.tile = tile

    def __repr__(self):
        return f"Plain({self.tile})"


def use(*values):
    fx.Int32(zlib.crc32(repr(values).encode()) % 2**31).ir_value()


def opaque(value):
    return value


def double(value):
    return value


def half(value):
    return value


"""

KINDS = {
    "list": ("list", "[1, 2]", "[1, 3]"),
    "dict": ("dict", "{'a': 1}", "{'a': 2}"),
    "set": ("set", "{1}", "{2}"),
    "frozenset": ("frozenset", "frozenset({1})", "frozenset({2})"),
    "bytes": ("bytes", "b'a'", "b'b'"),
    "range": ("range", "range(2)", "range(3)"),
    "dtype": ("torch.dtype", "torch.float16", "torch.float32"),
    "device": ("torch.device", "torch.device('cpu')", "torch.device('cuda')"),
    "dataclass": ("Config", "Config(1)", "Config(2)"),
    "optional dataclass": ("Optional[Config]", "Config(1)", "Config(2)"),
    "instance": ("Plain", "Plain(1)", "Plain(2)"),
    "namespace": ("SimpleNamespace", "SimpleNamespace(a=1)", "SimpleNamespace(a=2)"),
    "partial": ("functools.partial", "functools.partial(use, 1)", "functools.partial(use, 2)"),
    "enum": ("Mode", "Mode.FAST", "Mode.SMALL"),
    "int": ("int", "1", "2"),
    "float": ("float", "1.0", "2.0"),
    "bool": ("bool", "True", "False"),
    "str": ("str", "'a'", "'b'"),
    "tuple": ("tuple", "(1,)", "(2,)"),
    "namedtuple": ("Pair", "Pair(1)", "Pair(2)"),
    "size": ("torch.Size", "torch.Size([1])", "torch.Size([2])"),
    "function": ("object", "double", "half"),
}
"""Kinds of values: an annotation, and two values."""

EMPTY = {
    "list": "[]", "dict": "{}", "set": "set()", "frozenset": "frozenset()", "bytes": "b''", "range": "range(0)", "int": "0",
    "float": "0.0", "str": "''", "tuple": "()", "size": "torch.Size([])", "optional dataclass": "None",
}  # fmt: skip
"""Values of some kinds that do not hold as conditions."""

EMPTY_HELPER = "    def helper():\n        pass"
EMPTY_KERNEL = "    @flyc.kernel\n    def kernel(A: fx.Tensor):\n        pass"
BUILDS = {
    "kernel": f"    @flyc.kernel\n    def kernel(A: fx.Tensor):\n        use(x)\n\n{EMPTY_HELPER}",
    "helper": "    def helper():\n        use(x)\n\n    @flyc.kernel\n    def kernel(A: fx.Tensor):\n        helper()",
    "nested": "    @flyc.kernel\n    def kernel(A: fx.Tensor):\n        def part():\n            use(x)\n        part()",
    "jit": f"{EMPTY_KERNEL}\n\n{EMPTY_HELPER}",
}
"""Code that captures the value ``x``."""


def _module(body: str, params: str, captured: str, build: str, read: str = "") -> str:
    launch = textwrap.indent(
        f"@flyc.jit\ndef launch(A: fx.Tensor):\n    kernel(A).launch(grid=(1, 1, 1), block=(64, 1, 1))\n{read}", "    "
    )
    made = textwrap.indent(body, "    ") if body else ""
    return f"{HEAD}def build({params}):\n{made}{build}\n\n{launch}\n    return launch, {{{captured}}}\n"


def _is_program(folder: Path) -> bool:
    """Whether the key of the FlyDSL in a folder is the program."""
    return release_of(folder) >= PROGRAM_SINCE


def _options(folder: Path) -> FlydslOptions:
    return FlydslOptions(version=str(release_of(folder)))


def _roots(tmp_path: Path, text: str, folder: Path) -> set[str]:
    """The parameters that we say no key tells."""
    tree = read_tree(Project(Workspace(tmp_path, {"kit/kernels.py": text})), _options(folder))
    return {item.root.name for item in stale_captures(tree)}


@pytest.mark.parametrize("folder", RELEASES)
@pytest.mark.parametrize("where", BUILDS)
def test_kinds(folder: Path, where: str, tmp_path: Path) -> None:
    """A captured value of each kind, read by the launcher, its kernel or a helper."""
    read = "    use(x)\n" if where == "jit" else ""
    texts = {
        kind: _module("", f"x: {annotation}", "", BUILDS[where], read) for kind, (annotation, _, _) in KINDS.items()
    }
    calls = {kind: [f"build({first})", f"build({second})"] for kind, (_, first, second) in KINDS.items()}
    modules = [({"kit.py": texts[kind]}, calls[kind]) for kind in KINDS]
    answers = dict(zip(KINDS, keys(folder, modules), strict=True))
    missed = {kind for kind, (first, second) in answers.items() if first[0] == second[0]}
    assert {kind for kind, text in texts.items() if _roots(tmp_path, text, folder)} == missed
    assert ("list" in missed) is not _is_program(folder)
    assert "tuple" not in missed


@dataclass(frozen=True)
class Generated:
    """A module with a factory, and its calls: the first, and for each parameter two that change it alone."""

    text: str
    params: list[str]
    calls: list[str]

    def unseen(self, answers: list[Answer]) -> set[str]:
        """The parameters of which a change is one of what is captured, and none of the key."""
        (key, captured), *rest = answers
        pairs = zip(rest[::2], rest[1::2], strict=True)
        hidden = [any(answer[0] == key and answer[1] != captured for answer in pair) for pair in pairs]
        return {name for name, is_hidden in zip(self.params, hidden, strict=True) if is_hidden}


FORMS = [
    "tuple({0})", "len({0})", "str({0})", "({0}, {1})", "[{0}, {1}]", "{{'a': {0}, 'b': {1}}}", "Config({0}, {1})", "opaque({0})",
    "f'{{{0}}}'", "{0}", "[3] if {0} else [4]", "[{0} for _ in range(2)]", "{0} == {1}", "repr({0}) + str({1})", "3", "[3, 4]",
    "(3 if {0} else 4)", "sorted([str({0})])", "dict(a={0})", "{{str({0})}}", "functools.partial(use, {0})", "id", "{0} is None",
]  # fmt: skip
STATEMENTS = [
    "{0} = [1]\n{0}.append({1})",
    "{0} = [1]\nif {1}:\n    {0} = [2]",
    "{0} = {{}}\n{0}['a'] = {1}",
    "for {0} in ({1},):\n    pass",
]


def _tried(line: str) -> str:
    """A statement that does something else where it raises ``TypeError``."""
    name = line.split()[0]
    tried = f"try:\n{textwrap.indent(line, '    ')}\nexcept TypeError:\n    {name} = 0"
    return tried if any(word in line for word in ("len(", "tuple(", "{str(")) else line


def generated(source: random.Random) -> Generated:
    """A factory that captures some of its parameters, and of what it makes of them."""
    kinds = [source.choice([*KINDS]) for _ in range(source.randint(2, 4))]
    params = [f"p{number}" for number in range(len(kinds))]
    names, lines = [*params], []
    for number in range(source.randint(0, 4)):
        name, parts = f"v{number}", [source.choice(names), source.choice(names)]
        if source.random() < 0.2:
            lines.append(source.choice(STATEMENTS).format(name, parts[0]))
        else:
            form = source.choice([item for item in FORMS if "Config(" not in item or source.random() < 0.5])
            lines.append(f"{name} = {form.format(*parts)}")
        names.append(name)
    body = "\n".join(map(_tried, lines))
    read = source.sample(names, source.randint(1, min(3, len(names))))
    where = source.choice([*BUILDS])
    build = BUILDS[where].replace("use(x)", f"use({', '.join(read)})")
    captured = ", ".join(f"'{name}': {name}" for name in read)
    launch = f"    use({', '.join(read)})\n" if where == "jit" else ""
    annotated = [f"{name}: {KINDS[kind][0]}" for name, kind in zip(params, kinds, strict=True)]
    text = _module(body + "\n" if body else "", ", ".join(annotated), captured, build, launch)
    first = [KINDS[kind][1] for kind in kinds]
    others = [
        (at, value) for at, kind in enumerate(kinds) for value in (KINDS[kind][2], EMPTY.get(kind, KINDS[kind][2]))
    ]
    changed = [[*first[:at], value, *first[at + 1 :]] for at, value in others]
    return Generated(text, params, [f"build({', '.join(items)})" for items in [first, *changed]])


@pytest.mark.parametrize("folder", RELEASES)
@pytest.mark.parametrize("seed", range(3))
def test_generated(folder: Path, seed: int, tmp_path: Path) -> None:
    """Whatever we say no key tells changes what is captured and not the key; and we say so of most that do."""
    source = random.Random(seed)
    cases = [generated(source) for _ in range(80)]
    found, missed = 0, 0
    for case, answers in zip(cases, keys(folder, [({"kit.py": case.text}, case.calls) for case in cases]), strict=True):
        unseen = case.unseen(answers)
        told = _roots(tmp_path, case.text, folder)
        assert told <= unseen, f"{told - unseen}\n{case.text[len(HEAD) :]}"
        found, missed = found + len(told), missed + len(unseen - told)
    assert found > missed or (_is_program(folder) and found == missed == 0)


INSTANCE = """\
class Scale:
    def __init__(self, factor):
        self.factor = factor

    @flyc.kernel
    def kernel(self, A: fx.Tensor):
        use(self.factor)

    @flyc.jit
    def run(self, A: fx.Tensor):
        self.kernel(A).launch(grid=(1, 1, 1), block=(64, 1, 1))
"""


@pytest.mark.parametrize("folder", RELEASES)
def test_instances_share_a_key(folder: Path, tmp_path: Path) -> None:
    calls = [f"(Scale.run, Scale({factor}), (torch.zeros(4),))" for factor in (1, 2)]
    first, second = keys(folder, [({"kit.py": HEAD + INSTANCE}, calls)])[0]
    tree = read_tree(Project(Workspace(tmp_path, {"kit.py": HEAD + INSTANCE})), _options(folder))
    assert (first == second) is bool(list(baked_attributes(tree))) is not _is_program(folder)


HELPERS = """\
import flydsl.compiler as flyc
import flydsl.expr as fx

{imported}


@flyc.kernel
def kernel(A: fx.Tensor, n: fx.Int32):
    {call}(n)


@flyc.jit
def start(A: fx.Tensor, n: fx.Int32):
    kernel(A, n).launch(grid=(1, 1, 1), block=(64, 1, 1))
"""
FACTORY = """\
import flydsl.compiler as flyc
import flydsl.expr as fx

{imported}


def build():
    def between(n):
        {call}(n)

    @flyc.kernel
    def kernel(A: fx.Tensor, n: fx.Int32):
        between(n)

    @flyc.jit
    def start(A: fx.Tensor, n: fx.Int32):
        kernel(A, n).launch(grid=(1, 1, 1), block=(64, 1, 1))

    return start


start = build()
"""


@pytest.mark.parametrize("folder", RELEASES)
@pytest.mark.parametrize("module", [HELPERS, FACTORY], ids=["module", "factory"])
@pytest.mark.parametrize(
    ("imported", "call"),
    [
        ("from near import double", "double"),
        ("from common.far import double", "double"),
        ("import near", "near.double"),
        ("from common import far", "far.double"),
    ],
)
def test_helpers(folder: Path, module: str, imported: str, call: str, tmp_path: Path) -> None:
    """Whether a change caused by an edit of a helper is reported."""
    text = module.format(imported=imported, call=call)
    before, after = (f"def double(x):\n    return {factor} * x\n" for factor in (2, 3))
    versions = [
        {"kit.py": text, "near.py": item, "common/far.py": item, "common/__init__.py": ""} for item in (before, after)
    ]
    (first,), (second,) = keys(folder, [(files, ["(start, None)"]) for files in versions])
    tree = read_tree(Project(Workspace(tmp_path, versions[0])), _options(folder))
    assert bool(list(unseen_helpers(tree))) == (first == second)
