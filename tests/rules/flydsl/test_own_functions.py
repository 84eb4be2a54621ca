"""FLY228 and FLY207: calls of FlyDSL's own functions, and names behind `hasattr()`, where its sources are in the tree."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK

OWN = {
    "opschema.toml": "",
    "kit/__init__.py": "",
    "python/flydsl/__init__.py": "",
    "python/flydsl/compiler/__init__.py": "from .jit_argument import from_dlpack\n",
    "python/flydsl/compiler/jit_argument.py": """\
class TensorAdaptor:
    def __init__(self, tensor): ...


def from_dlpack(tensor) -> TensorAdaptor: ...
""",
    "python/flydsl/expr/__init__.py": """\
from .typing import *
from .gpu import *
from .derived import *
from .arith import *
from . import gpu
from .gpu import shuffle as swap

_BACKENDS = {"rocdl": ".rocdl"}


def __getattr__(name): ...
""",
    "python/flydsl/expr/typing.py": "from .._mlir.dialects.fly import *\n",
    "python/flydsl/expr/gpu.py": """\
def shuffle(value, offset, width): ...


@traced
def rewritten(value, offset): ...


def barrier(*args, **options): ...


def copy(atom, source, target, *, pred=None): ...


def twice(value): ...
""",
    "python/flydsl/expr/derived.py": """\
from .meta import dsl_loc_tracing


@dsl_loc_tracing
def make_tiled_copy(copy_atom, tiled_mma): ...


def twice(value, other): ...
""",
    "python/flydsl/expr/arith.py": """\
from .._mlir.dialects.arith import *

__all__ = ["constant", "copy"]


def constant(value, *, type=None): ...
""",
    "python/flydsl/expr/rocdl/__init__.py": "from ..._mlir.dialects.rocdl import *\nfrom .universal import *\n",
    "python/flydsl/expr/rocdl/universal.py": "def make_buffer(tensor, *, bytes=None): ...\n",
}


def found(text: str, code: str) -> list[str]:
    files = {**OWN, KERNELS_PATH: HEAD + text}
    return [item.message for item in lint_files([PACK], files, [code]).diagnostics]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("fx.gpu.shuffle(1, 2)", "`shuffle(value, offset, width)` in this FlyDSL needs `width`"),
        ("fx.shuffle(1, width=2)", "`shuffle(value, offset, width)` in this FlyDSL needs `offset`"),
        ("fx.swap(1, 2)", "`shuffle(value, offset, width)` in this FlyDSL needs `width`"),
        ("fx.make_tiled_copy(1)", "`make_tiled_copy(copy_atom, tiled_mma)` in this FlyDSL needs `tiled_mma`"),
        (
            "fx.make_tiled_copy(1, 2, 3, 4)",
            "`make_tiled_copy(copy_atom, tiled_mma)` in this FlyDSL takes at most 2 positional arguments",
        ),
        (
            "fx.rocdl.make_buffer(1, byte=4)",
            "`make_buffer(tensor, bytes)` in this FlyDSL has no parameter `byte`; did you mean `bytes`?",
        ),
        ("fx.twice(1)", "`twice(value, other)` in this FlyDSL needs `other`"),
    ],
)
def test_calls_that_do_not_fit(call: str, message: str) -> None:
    assert found(f"{call}\n", "FLY228") == [message]


def test_all_that_is_missing_is_told_at_once() -> None:
    assert found("fx.shuffle(1)\n", "FLY228") == [
        "`shuffle(value, offset, width)` in this FlyDSL needs `offset`, `width`"
    ]


@pytest.mark.parametrize(
    "call",
    [
        "fx.gpu.shuffle(1, 2, 3)",
        "fx.gpu.shuffle(*[1, 2, 3])",
        "fx.gpu.shuffle(1, **{'offset': 1, 'width': 2})",
        "fx.gpu.rewritten(1)",
        "fx.barrier(1, 2, x=3)",
        "fx.gpu.copy(1, 2, 3)",
        "fx.copy(1)",  # `arith` lists one, which may be of the compiled module
        "fx.constant(1)",
        "fx.rocdl.make_buffer(1)",
        "fx.rocdl.mfma()",
        "fx.rocdl.universal",
        "fx.twice(1, 2)",
        "swap = fx.swap\nswap(1, 2, 3)",
    ],
)
def test_calls_that_fit_or_are_not_known(call: str) -> None:
    assert found(f"{call}\n", "FLY228") == []


GUARDED = """\
def wrap(x):
    if hasattr(x, "{}"):
        return x
    return flyc.from_tensor(x)
"""


@pytest.mark.parametrize(("method", "count"), [("mark_layout_dynamic", 1), ("mark_static", 0), ("from_tensor", 0)])
def test_a_method_of_every_release_asks_for_no_version(method: str, count: int) -> None:
    assert found(GUARDED.format(method), "FLY207") == ["this FlyDSL has no `flydsl.compiler.from_tensor`"] * count


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    fx.shuffle(1, 2)\nexcept TypeError:\n    fx.shuffle(1, 2, 3)",
        "def f():\n    try:\n        fx.shuffle(1, 2)\n    except TypeError:\n        fx.shuffle(1, 2, 3)",
        "import contextlib\nwith contextlib.suppress(TypeError):\n    fx.shuffle(1)",
        'import inspect\nif "width" in inspect.signature(fx.shuffle).parameters:\n    x = 1\nelse:\n    fx.shuffle(1, 2)',
        'if flyc.__version__ < "0.3":\n    fx.shuffle(1, 2)',
        'if hasattr(fx, "old_shuffle"):\n    fx.shuffle(1, 2)',
        'NEW = flyc.__version__ >= "0.3"\nif NEW:\n    x = 1\nelse:\n    fx.shuffle(1, 2)',
        'def f():\n    if flyc.__version__ >= "0.3":\n        return 1\n    return fx.shuffle(1, 2)',
        'NEW = flyc.__version__ >= "0.3"\nx = 1 if NEW else fx.shuffle(1, 2)',
        "def f():\n    try:\n        fx.shuffle(1, 2)\n    except ERRORS:\n        fx.shuffle(1, 2, 3)",
        'def test(monkeypatch):\n    monkeypatch.setattr(fx, "shuffle", lambda a: a)\n    fx.shuffle(1)',
        'from unittest import mock\n@mock.patch("flydsl.expr.gpu.shuffle")\ndef test(m):\n    fx.gpu.shuffle(1)',
        "fx.gpu.shuffle = lambda a: a\nfx.gpu.shuffle(1)",
        "def bad():\n    fx.shuffle(1)\ndef test():\n    with pytest.raises(TypeError):\n        bad()",
        "from flydsl.expr import shuffle\ndef go(shuffle):\n    shuffle(1)",
        "from flydsl.expr import shuffle\nx = [shuffle(1) for shuffle in [print]]\ny = lambda shuffle: shuffle(1)",
    ],
)
def test_calls_that_may_not_run_or_are_replaced(text: str) -> None:
    assert found(f"{text}\n", "FLY228") == []


INIT = "python/flydsl/expr/__init__.py"
GPU = "python/flydsl/expr/gpu.py"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (INIT, "gpu.shuffle = lambda a: a"),
        (INIT, "def _init():\n    global shuffle\n    shuffle = print"),
        (INIT, 'globals()["shuffle"] = print'),
        (INIT, "import sys\nsetattr(sys.modules[__name__], 'shuffle', print)"),
        (GPU, "for name in NAMES:\n    globals()[name] = wrap(globals()[name])"),
        (GPU, "def _init():\n    for name in NAMES:\n        globals()[name] = wrap(name)"),
        (GPU, "class _Init:\n    def run(self):\n        import sys\n        sys . modules[__name__].shuffle = print"),
        (INIT, "def _init():\n    from . import gpu as late\n    late.shuffle = print"),
        (INIT, "def _init():\n    def inner():\n        exec(TEXT)\n    return inner"),
        (GPU, "shuffle.__defaults__ = (1, 2)"),
        (GPU, "def _init():\n    global shuffle\n    shuffle = print"),
        ("python/flydsl/__init__.py", "from .expr import gpu\ngpu.shuffle = print"),
    ],
)
def test_a_package_that_changes_its_functions(path: str, text: str) -> None:
    files = {**OWN, KERNELS_PATH: f"{HEAD}fx.shuffle(1)\n", path: f"{OWN[path]}\n{text}\n"}
    assert lint_files([PACK], files, ["FLY228"]).diagnostics == []


TYPING = "python/flydsl/expr/typing.py"
ENUM = """\
import enum
from enum import IntEnum

from .._mlir.dialects.fly import *


class ReductionOp(enum.Enum):
    ADD = "add"
    MAX = ADD

    @property
    def short(self): ...


class Order(IntEnum):
    ROW = 0
"""
USE = "x = fx.ReductionOp.SUM"


def found_of_enumerations(text: str, changed: dict[str, str] | None = None) -> list[str]:
    files = {**OWN, TYPING: ENUM, **(changed or {}), KERNELS_PATH: f"{HEAD}{text}\n"}
    return [item.message for item in lint_files([PACK], files, ["FLY207"]).diagnostics]


@pytest.mark.parametrize(
    ("text", "module"),
    [
        (USE, "flydsl.expr"),
        ("from flydsl.expr.typing import ReductionOp\nx = ReductionOp.SUM", "flydsl.expr.typing"),
    ],
)
def test_a_member_that_an_enumeration_lacks(text: str, module: str) -> None:
    assert found_of_enumerations(text) == [f"this FlyDSL has no `{module}.ReductionOp.SUM`"]


def test_an_enumeration_that_is_only_read() -> None:
    read = "x = isinstance(1, ReductionOp), list(ReductionOp)\n"
    assert found_of_enumerations(USE, {TYPING: f"{ENUM}\n\n{read}"}) != []


@pytest.mark.parametrize(
    "text",
    [
        "x = [fx.ReductionOp.ADD, fx.ReductionOp.MAX, fx.ReductionOp.short, fx.Order.ROW]",
        "x = fx.ReductionOp.__members__, fx.Order.ROW.bit_length, fx.ReductionOp.ADD.name",
        "fx.ReductionOp.SUM = fx.ReductionOp.ADD\nx = fx.ReductionOp.SUM",
        "setattr(fx.ReductionOp, 'SUM', 1)\nx = fx.ReductionOp.SUM",
        'from unittest import mock\n@mock.patch("flydsl.expr.ReductionOp")\ndef test(m):\n    fx.ReductionOp.SUM',
        "from flydsl.expr import ReductionOp\ng = lambda ReductionOp: ReductionOp.SUM",
        "from flydsl.expr import ReductionOp\nx = [ReductionOp.SUM for ReductionOp in [1]]",
        "from flydsl.expr import ReductionOp\ndef f(ReductionOp):\n    return ReductionOp.SUM",
        "from flydsl.expr import ReductionOp\nclass ReductionOp(ReductionOp):\n    SUM = 1\nx = ReductionOp.SUM",
        "x = fx.ReductionOp.SUM if hasattr(fx.ReductionOp, 'SUM') else fx.ReductionOp.ADD",
        "try:\n    x = fx.ReductionOp.SUM\nexcept AttributeError:\n    x = fx.ReductionOp.ADD",
    ],
)
def test_members_that_are_there_or_may_be(text: str) -> None:
    assert found_of_enumerations(text) == []


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (TYPING, "ReductionOp(enum.Enum)", "ReductionOp(enum.Enum, metaclass=Meta)"),
        (TYPING, "ReductionOp(enum.Enum)", "ReductionOp(str, enum.Enum)"),
        (TYPING, "class ReductionOp", "@extended\nclass ReductionOp"),
        (TYPING, "import enum\n", "from .. import enum\n"),
        (TYPING, "import enum\n", "try:\n    import enum\nexcept ImportError:\n    from ..compat import enum\n"),
        (TYPING, "    MAX = ADD\n", "    MAX = ADD\n    vars().update(SUM=1)\n"),
        (TYPING, "    MAX = ADD\n", '    _ignore_ = "v"\n    v = vars()\n'),
        (TYPING, "    MAX = ADD\n", "    MAX = ADD\n    from ..ops import SUM\n"),
        (TYPING, "    ROW = 0\n", "    ROW = 0\n\n\nReductionOp.SUM = ReductionOp.ADD\n"),
        (TYPING, "    ROW = 0\n", '    ROW = 0\n\n\nsetattr(ReductionOp, "SUM", 1)\n'),
        (TYPING, "    ROW = 0\n", "    ROW = 0\n\n\nReductionOp = extend(ReductionOp)\n"),
        (
            TYPING,
            "    MAX = ADD\n",
            "    MAX = ADD\n\n    def __init__(self, value):\n        self._add_alias_('SUM')\n",
        ),
        (
            TYPING,
            "    MAX = ADD\n",
            "    MAX = ADD\n\n    @classmethod\n    def extend(cls):\n        cls.SUM = cls.ADD\n",
        ),
        (TYPING, "    ROW = 0\n", "    ROW = 0\n\n\nadd_alias(ReductionOp, 'SUM')\n"),
        (TYPING, "    ROW = 0\n", "    ROW = 0\n\n\ntype.__setattr__(ReductionOp, 'SUM', ReductionOp.ADD)\n"),
        (GPU, "def copy", "from .typing import ReductionOp\nsetattr(ReductionOp, 'SUM', 1)\n\n\ndef copy"),
        (GPU, "def copy", "from .typing import ReductionOp as R\nR.SUM = R.ADD\n\n\ndef copy"),
        (INIT, "from . import gpu\n", 'globals()["ReductionOp"] = 1\n'),
        (INIT, "from . import gpu\n", "def _init():\n    global ReductionOp\n    ReductionOp = load()\n"),
    ],
)
def test_enumerations_that_may_have_more(path: str, old: str, new: str) -> None:
    text = {**OWN, TYPING: ENUM}[path]
    assert old in text
    assert found_of_enumerations(USE, {path: text.replace(old, new)}) == []


MARKED = """\
import abc


class Base(abc.ABC):
    def mark_layout_dynamic(self, leading_dim=None, divisibility=1): ...


@Registry.register(Tensor)
class TensorAdaptor(Base):
    def __init__(self, tensor): ...


def from_dlpack(tensor) -> TensorAdaptor:
    return TensorAdaptor(tensor)
"""
ARGUMENT = "python/flydsl/compiler/jit_argument.py"
NUMBERS = """\
from .._mlir import ir


@ir.register_value_caster(ir.VectorType, replace=True)
class Vector(ir.Value):
    @classmethod
    def filled(cls, shape, value, dtype): ...

    @staticmethod
    def size_of(shape): ...

    def store(self, target): ...
"""
WRAP = "t = flyc.from_dlpack(x).mark_layout_dynamic"


def found_of_methods(text: str, changed: dict[str, str] | None = None) -> list[str]:
    files = {**OWN, ARGUMENT: MARKED, TYPING: NUMBERS, **(changed or {}), KERNELS_PATH: f"{HEAD}{text}\n"}
    return [item.message for item in lint_files([PACK], files, ["FLY228"]).diagnostics]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            f"{WRAP}(leading=0)",
            "`mark_layout_dynamic(leading_dim, divisibility)` in this FlyDSL has no parameter `leading`; "
            "did you mean `leading_dim`?",
        ),
        (
            f"{WRAP}(0, 1, 2)",
            "`mark_layout_dynamic(leading_dim, divisibility)` in this FlyDSL takes at most 2 positional arguments",
        ),
        ("fx.Vector.filled(4, 0)", "`filled(shape, value, dtype)` in this FlyDSL needs `dtype`"),
        ("fx.Vector.size_of()", "`size_of(shape)` in this FlyDSL needs `shape`"),
        ("fx.Vector.store(1)", "`store(self, target)` in this FlyDSL needs `target`"),
    ],
)
def test_methods_that_are_called_with_what_they_do_not_take(call: str, message: str) -> None:
    assert found_of_methods(call) == [message]


@pytest.mark.parametrize(
    "text",
    [
        f"{WRAP}(0, divisibility=4)",
        f"{WRAP}(0).mark_layout_dynamic(x=1)",
        f"try:\n    {WRAP}(leading=0)\nexcept TypeError:\n    pass",
        f'from unittest import mock\n@mock.patch("flydsl.compiler.from_dlpack")\ndef test(m):\n    {WRAP}(leading=0)',
        "t = flyc.from_dlpack(x)\nxs = [t.mark_layout_dynamic(leading=0) for t in others]",
        "t = flyc.from_dlpack(x)\nt.mark_layout_dynamic = lambda leading: t\nt.mark_layout_dynamic(leading=0)",
        "fx.Vector.filled(4, 0, 1)",
        "fx.Vector.filled(*args)",
        "fx.Vector.from_ir(1)",
        "fx.Vector.filled = print\nfx.Vector.filled(1)",
        "v = fx.Vector(1)\nv.store(1)",
        "class Vector(fx.Vector):\n    @classmethod\n    def filled(cls): ...\nVector.filled()",
    ],
)
def test_methods_that_are_called_right_or_may_be_others(text: str) -> None:
    assert found_of_methods(text) == []


SHAPED = "@flyc.kernel\ndef k(A: fx.Tensor):\n    fx.Vector.filled(4, 0, 1).reshape()"


@pytest.mark.parametrize(
    ("methods", "count"),
    [
        ("    def reshape(self, index): ...", 1),
        ("    @staticmethod\n    def reshape(index): ...", 1),
        ("    def reshape(self): ...", 0),
        ("    @staticmethod\n    def reshape(): ...", 0),
        ("    def reshape(self, index): ...\n    reshape = forward(reshape)", 0),
        ("    reshape = forward('it')", 0),
        ("    def reshape(self, index): ...\n\n\nVector.reshape = print", 0),
    ],
)
def test_methods_of_values_as_the_own_flydsl_has_them(methods: str, count: int) -> None:
    assert len(found_of_methods(SHAPED, {TYPING: f"{NUMBERS}\n{methods}\n"})) == count


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    def __init__(self, tensor): ...\n", '    mark_layout_dynamic = forward("it")\n'),
        (
            "    def __init__(self, tensor): ...\n",
            "    def __init__(self, tensor):\n        self.mark_layout_dynamic = print\n",
        ),
        ("    def __init__(self, tensor): ...\n", "    def __getattribute__(self, name): ...\n"),
        ("return TensorAdaptor(tensor)", "return Wide(tensor)"),
        ("return TensorAdaptor(tensor)", "x = TensorAdaptor(tensor)\n    return x"),
        ("@Registry.register(Tensor)", "@rewritten"),
        ("class TensorAdaptor(Base)", "class TensorAdaptor(Base, metaclass=Meta)"),
        ("class TensorAdaptor(Base)", "class TensorAdaptor(Other, Base)"),
        ("def from_dlpack", "TensorAdaptor.mark_layout_dynamic = print\n\n\ndef from_dlpack"),
        ("def from_dlpack", "TensorAdaptor = rewritten(TensorAdaptor)\n\n\ndef from_dlpack"),
        ("def from_dlpack", "@traced\ndef from_dlpack"),
        ("    def mark_layout", "    @forward\n    def mark_layout"),
        ("    def mark_layout", "    def mark_layout_dynamic(self): ...\n\n    def mark_layout"),
        ("divisibility=1): ...", "divisibility=1): ...\n\n    mark_layout_dynamic = print"),
        ("def from_dlpack", "class Base: ...\n\n\ndef from_dlpack"),
    ],
)
def test_wrapped_tensors_that_may_have_other_methods(old: str, new: str) -> None:
    assert old in MARKED
    assert found_of_methods(f"{WRAP}(0, 1, 2, leading=0)", {ARGUMENT: MARKED.replace(old, new, 1)}) == []


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (TYPING, "    @classmethod\n", "    @classmethod\n    @forward\n"),
        (TYPING, "@ir.register", "@rewritten\n@ir.register"),
        (TYPING, "Vector(ir.Value)", "Vector(ir.Value, metaclass=Meta)"),
        (TYPING, "    def store", "    filled = print\n\n    def store"),
        (TYPING, "from .._mlir import ir\n", "from .._mlir import ir\nVector.filled = print\n"),
        (INIT, "from . import gpu\n", "Vector = print\n"),
        (GPU, "def copy", "from .typing import Vector as V\nV.filled = print\n\n\ndef copy"),
    ],
)
def test_classes_that_may_have_other_methods(path: str, old: str, new: str) -> None:
    text = {**OWN, TYPING: NUMBERS}[path]
    assert old in text
    assert found_of_methods("fx.Vector.filled(1)", {path: text.replace(old, new, 1)}) == []


COMPILED = """\
@flyc.jit
def launch(A: fx.Tensor, mode: str):
    print(A, mode)


@flyc.kernel
def fill(A: fx.Tensor):
    A[0] = 1


def test(x):
    flyc.compile(launch, *x)
    flyc.compile(fill, x)
"""


def test_what_is_compiled_where_the_tree_is_flydsl() -> None:
    compiler = "from .jit_argument import from_dlpack\nfrom .jit_function import compile, jit, kernel\n"
    function = "def compile(function, *args): ...\n\n\ndef jit(f): ...\n\n\ndef kernel(f): ...\n"
    files = {
        **OWN,
        "python/flydsl/compiler/__init__.py": compiler,
        "python/flydsl/compiler/jit_function.py": function,
        KERNELS_PATH: HEAD + COMPILED,
    }
    assert [item.code for item in lint_files([PACK], files, ["FLY213"]).diagnostics] == ["FLY213"]
