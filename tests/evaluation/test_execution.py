"""Execution of function bodies: the outcomes that it gives, and those that it leaves open."""

from __future__ import annotations

import pytest

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, ExecutionDialect
from opschema_cli.evaluation.execution.outcomes import Raised, Returned, Unresolved
from opschema_cli.evaluation.execution.values import DtypeValue, Object, Opaque, TensorValue
from opschema_cli.evaluation.values import ClassValue, ExternalName
from tests.evaluation.executing import executor_of, named, outcome_of

POOL = """
import math

class Op:
    layout = "NCHW"

    def __init__(self, size):
        self.size = (size, size) if isinstance(size, int) else size

    @property
    def area(self):
        return math.prod(self.size)

class Pool(Op):
    def __init__(self, size, *, stride=None):
        super().__init__(size)
        self.stride = self.size if stride is None else stride

    def _infer_output_shapes(self, x_shape):
        if len(x_shape) != len(self.layout):
            raise ValueError(f"x must be {self.layout}, got {len(x_shape)} dimensions")
        n, c, *dims = x_shape
        return {"y": (n, c, *((d - k) // s + 1 for d, k, s in zip(dims, self.size, self.stride)))}
"""


def test_a_method_of_an_object_that_its_class_makes() -> None:
    executor = executor_of(POOL)
    pool = named(executor, "Pool")
    assert isinstance(pool, ClassValue)
    made = executor.construct(pool, {"size": 2})
    assert isinstance(made, Returned)
    assert isinstance(made.value, Object)
    assert made.value.attributes == {"size": (2, 2), "stride": (2, 2)}
    shapes = executor.method(made.value, "_infer_output_shapes", {"x_shape": (1, 3, 8, 6)})
    assert shapes == Returned({"y": (1, 3, 4, 3)})
    refused = executor.method(made.value, "_infer_output_shapes", {"x_shape": (1, 3)})
    assert isinstance(refused, Raised)
    assert (refused.exception, refused.message) == ("ValueError", "x must be NCHW, got 2 dimensions")
    assert refused.place is not None
    assert POOL[refused.place.span.start :].startswith("raise ValueError")


PAIR = "import dataclasses\n@dataclasses.dataclass\nclass Pair:\n    x: object\n    y: object\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f():\n    return 2 ** 10 ** 9", "a large number"),
        ("def f():\n    return [0] * 10 ** 12", "a large container"),
        ("def f():\n    return 'x' * 10 ** 12", "a large container"),
        ("def f():\n    while True:\n        pass", "it takes too many steps"),
        ("def f():\n    return f()", "calls nest too deeply"),
        ("def f():\n    x = 'ab'\n    while True:\n        x += x", "a large container"),
        (
            "def f():\n    x, y = (1,), (1,)\n    for _ in range(90):\n        x, y = (x, x), (y, y)\n    return x == y",
            "too many steps",
        ),
        ("def f():\n    x = ()\n    for _ in range(9000):\n        x = (x,)\n    return {x: 1}", "too deeply"),
        ("def f():\n    return sum(range(10 ** 9))", "too many steps"),
        ("def f():\n    return list(range(10 ** 15))", "too many steps"),
        ("def f():\n    return dict.fromkeys(range(10 ** 12))", "too many steps"),
        ("def f():\n    x, y = [], []\n    x.append(x)\n    y.append(y)\n    return x == y", "too deeply"),
        ("def f():\n    x = []\n    x.append(x)\n    return f'{x}'", "too deeply"),
        ("def f():\n    return 'a'.ljust(10 ** 11)", "a long string"),
        ("def f():\n    return ('a' * 10 ** 5).replace('a', 'b' * 10 ** 5)", "a long string"),
        ("def f():\n    return int('9' * 10 ** 5)", "a large number"),
        ("def g():\n    yield from g()\ndef f():\n    return list(g())", "too deeply"),
        (f"{PAIR}def f():\n    x = Pair(0, 0)\n    x.x = x\n    return dataclasses.asdict(x)", "too deeply"),
        (
            f"{PAIR}def f():\n    x, y = Pair(0, 0), Pair(0, 0)\n    for _ in range(90):\n"
            "        x, y = Pair(x, x), Pair(y, y)\n    return x == y",
            "too many steps",
        ),
        ("import re\ndef f():\n    return re.match('(a+)+$', 'a' * 40 + 'b')", "the result of `re.match`"),
        ("import re\ndef f():\n    return re.match('a*a*a*a*a*b', 'a' * 90)", "a match that may take long"),
        ("import re\ndef f():\n    return re.sub('a', 'b' * 10 ** 4, 'a' * 10 ** 4)", "a long text"),
        ("import torch\ndef f(x):\n    return torch.add(x, 1)", "the result of `torch.add`"),
        ("import torch\ndef f(x):\n    return 1 if torch.ok(x) else 2", "it depends on conditions that are not known"),
    ],
)
def test_limits_and_what_is_not_known(text: str, reason: str) -> None:
    outcome = outcome_of(text, *([0] if "f(x)" in text else []))
    assert isinstance(outcome, Unresolved), outcome
    assert reason in outcome.reason


def test_a_branch_on_what_is_not_known_that_changes_nothing() -> None:
    text = """
import torch

def f(x):
    if torch.cuda.is_available() and not x.is_cuda:
        raise ValueError("not on the device")
    y = torch.empty(x) if torch.fast() else torch.zeros(x)
    return {"y": 3, "other": y}
"""
    outcome = outcome_of(text, Opaque("a tensor"))
    assert isinstance(outcome, Returned)
    assert isinstance(outcome.value, dict)
    assert outcome.value["y"] == 3
    assert isinstance(outcome.value["other"], Opaque)


def test_containers_that_unknown_code_is_given_are_not_known_afterwards() -> None:
    text = "import torch\ndef f():\n    a, b = [1], [2]\n    torch.fill(a)\n    return (len(b), a)"
    outcome = outcome_of(text)
    assert isinstance(outcome, Returned)
    assert isinstance(outcome.value, tuple)
    assert outcome.value[0] == 1
    assert isinstance(outcome.value[1], Opaque)


def test_a_dialect() -> None:
    def empty(call: Call) -> object:
        return TensorValue(call.positional, "float32")

    def attribute(machine: object, value: object, name: str) -> object:
        return value.shape if isinstance(value, TensorValue) and name == "shape" else NOT_KNOWN

    values = {"torch.half": DtypeValue("float16"), "torch.float16": DtypeValue("float16")}
    torch = ExecutionDialect({"torch.empty": empty}.get, lambda name: values.get(name, NOT_KNOWN), attribute)
    text = "import torch\ndef f(n):\n    return torch.empty(n, 2).shape[0] + 1, torch.half == torch.float16"
    assert outcome_of(text, 4, dialects=(torch,)) == Returned((5, True))


def test_a_dialect_computes_a_method_of_the_tree() -> None:
    text = "class Op:\n    def choose(self):\n        return load()\n\ndef f():\n    return Op().choose()"
    own = ExecutionDialect({"a.Op.choose": lambda call: 7}.get, reads_own=True)
    assert outcome_of(text, dialects=(own,)) == Returned(7)


def test_an_object_with_a_name_of_another_package_after_an_unknown_branch() -> None:
    text = "import torch\nclass Op:\n    def __init__(self):\n        self.fast, self.dtype = 1 if torch.fast() else 2, torch.half"
    made = outcome_of(text, name="Op")
    assert isinstance(made, Returned)
    assert isinstance(made.value, Object)
    assert made.value.attributes["dtype"] == ExternalName("torch.half")
    assert isinstance(made.value.attributes["fast"], Opaque)


def test_a_loop_whose_turns_are_not_known() -> None:
    text = """
import torch

class Op:
    size = 0

def f(x):
    op, seen, n, kept = Op(), [], 0, [4]
    for item in torch.all(x):
        n += 1
        seen.append(item)
        op.size = n
    return {"kept": kept, "seen": seen, "n": n, "size": op.size}
"""
    outcome = outcome_of(text, 1)
    assert isinstance(outcome, Returned)
    assert isinstance(outcome.value, dict)
    assert outcome.value.pop("kept") == [4]
    assert [type(item) for item in outcome.value.values()] == [Opaque] * 3


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ndef f():\n    return 1 if torch.version.hip is None else 2",
        "import os\ndef f():\n    try:\n        n = os.environ['N']\n    except KeyError:\n        return 1\n    return 2",
        "def f():\n    try:\n        import flash\n    except ImportError:\n        return 1\n    return 2",
        "import torch\ndef f():\n    try:\n        torch.float4\n    except AttributeError:\n        return 1\n    return 2",
        "from enum import Enum\nclass M(str, Enum):\n    A = 'a'\ndef f():\n    return 1 if M.A == 'a' else 2",
        "class A:\n    seen = {}\n    def add(self):\n        self.seen[1] = 2\ndef f():\n    return len(A().seen)",
        "import torch\ndef f():\n    x = [1]\n    torch.each(lambda: x.append(2))\n    return len(x)",
        "import torch\ndef f():\n    n = torch.size()\n    a = n is None\n    return 1 if not a and n else 2",
        "from other import Base\nclass A(Base):\n    pass\ndef f():\n    return getattr(A(), 'x', 3)",
        "class D:\n    def __get__(self, o, t):\n        return 2\nclass A:\n    d = D()\ndef f():\n    return A().d",
        "class T:\n    env = None\ntls = T()\ndef f():\n    return 1 if tls.env is None else 2",
        "class T:\n    one = None\n    @classmethod\n    def get(cls):\n        if cls.one is None:\n            cls.one = 3\n"
        "            return 4\n        return cls.one\ndef f():\n    return T.get()",
        "def d(cls):\n    return 7\n@d\nclass A:\n    pass\ndef f():\n    return A()",
        "import torch\nclass A:\n    pass\ndef f():\n    a = A()\n    torch.setup(a)\n    return getattr(a, 'x', 1)",
        "import itertools\ncounter = itertools.count()\ndef f():\n    return next(counter)",
        "class T:\n    kept = {}\ndef f():\n    return len(T().kept)",
        "seen = []\ndef g():\n    seen.append(1)\ndef f():\n    return len(seen)",
        "class A[T]: ...\ndef f():\n    return len(A.__mro__)",  # the second is `typing.Generic`
        "class A[T]: ...\nclass B(A[int]): ...\ndef f():\n    return len(B.__mro__)",
        "def d(cls):\n    class B(cls): ...\n    return B\n@d\nclass A: ...\ndef f():\n    return len(A.__mro__)",
        "class M(type):\n    def mro(cls): return [cls, object, int]\nclass A(metaclass=M): ...\n"
        "def f():\n    return len(A.__mro__)",
        "class A: ...\ndef f():\n    return A.mro()",
    ],
)
def test_what_may_be_otherwise_is_unresolved(text: str) -> None:
    assert isinstance(outcome_of(text), Unresolved)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("import torch\ndef f():\n    a = torch.ok()\n    x = 1 if a else 2\n    return x if a else x - 1", 1),
        ("import torch\ndef f():\n    a = torch.ok()\n    if a:\n        x = 1\n    return 3 if not a else x + 2", 3),
        ("import sys, torch\ndef f():\n    if torch.bad():\n        sys.exit(1)\n    return 4", 4),
        (
            "import torch\ndef f():\n    x = torch.one()\n    if x is None:\n        return 5\n    return 6 if x is None else 5",
            5,
        ),
    ],
)
def test_an_unknown_condition_has_one_answer_on_a_path(text: str, value: int) -> None:
    assert outcome_of(text) == Returned(value)


BRANCHES = "".join(
    f"    if torch.c{index}():\n        x = {index}\n    else:\n        x = torch.y()\n" for index in range(20)
)


def test_many_unknown_branches_are_joined() -> None:
    text = f"import torch\ndef f():\n    x, kept = 0, [1]\n{BRANCHES}    return len(kept), x"
    outcome = outcome_of(text)
    assert isinstance(outcome, Returned)
    assert isinstance(outcome.value, tuple)
    assert outcome.value[0] == 1
    assert isinstance(outcome.value[1], Opaque)


def test_many_unknown_branches_that_change_containers_are_not() -> None:
    text = (
        f"import torch\ndef f():\n    x, kept = 0, [1]\n{BRANCHES.replace('x =', 'kept[0] =')}    return len(kept), x"
    )
    outcome = outcome_of(text)
    assert isinstance(outcome, Unresolved)
    assert "too many paths" in outcome.reason


def test_too_many_paths_are_seen_after_a_few() -> None:
    branches = "".join(f"    if torch.c{index}():\n        kept.append({index})\n" for index in range(12))
    executor = executor_of(f"import torch\ndef f():\n    kept = []\n{branches}    return sum(range(1000))")
    outcome = executor.call(named(executor, "f"))
    assert isinstance(outcome, Unresolved)
    assert "too many paths" in outcome.reason
    assert executor.steps < 25_000  # of 64 paths 64,000


SHARED = """
import torch

def row(n):
    return [n] * n

TABLE = {n: row(n) for n in range(1, 100)}
SAME = TABLE

class Op:
    def __init__(self, *kept):
        self.kept = list(kept)
        for name in (torch.a(), torch.b(), torch.c(), torch.d(), torch.e(), torch.f(), torch.g()):
            if name:
                self.kept.append(name)

    def size(self):
        return 4

OP = Op(*TABLE)

def f(x):
    rows = TABLE
    rows[1].append(x)
    return len(rows[1]), len(SAME[1]), SAME is TABLE, OP.size()
"""


def test_what_modules_hold_is_the_same_in_each_execution() -> None:
    executor = executor_of(SHARED)
    outcomes = [executor.call(named(executor, "f"), positional=[1]) for _ in range(3)]
    assert outcomes == [Returned((2, 2, True, 4))] * 3
    assert executor.steps < 6_000  # the table takes 5,000
