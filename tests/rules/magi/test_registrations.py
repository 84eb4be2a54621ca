"""How ops are found: under any name of the decorator, through wrappers, with what they are given."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from opschema_cli.source.bodies import Body
from opschema_cli.source.resolution import Unresolved
from opschema_rules.magi.given import Lambda, Meta, Mutates
from opschema_rules.magi.model import MagiOp, MagiTree

ReadTree = Callable[..., MagiTree]
ReadOp = Callable[..., MagiOp]

SIGNATURE = "(x: Tensor) -> Tensor: return x.clone()"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("@magi_register_custom_op()\ndef f{}\n", "ops::f"),
        ("@magi_register_custom_op(None)\ndef f{}\n", "ops::f"),
        ("@magi_register_custom_op('n::g')\ndef f{}\n", "n::g"),
        ("NS = 'n'\n@magi_register_custom_op(name=NS + '::g')\ndef f{}\n", "n::g"),
        ("NS = 'n'\n@magi_register_custom_op(name=f'{{NS}}::g')\ndef f{}\n", "n::g"),
        ("@magi_register_custom_op(name=pick())\ndef f{}\n", None),
        ("@magi_register_custom_op(*args)\ndef f{}\n", None),
        ("def f{}\ng = magi_register_custom_op('n::g')(f)\n", "n::g"),
        ("later = magi_register_custom_op('n::g')\n@later\ndef f{}\n", "n::g"),
        ("import magi_compiler as mc\n@mc.magi_register_custom_op('n::g')\ndef f{}\n", "n::g"),
        ("import magi_compiler.api\n@magi_compiler.api.magi_register_custom_op('n::g')\ndef f{}\n", "n::g"),
        (
            "import functools\nop = functools.partial(magi_register_custom_op, is_subgraph_boundary=True)\n"
            "@op(name='n::g')\ndef f{}\n",
            "n::g",
        ),
        ("def op(name, **kw):\n    return magi_register_custom_op(name, **kw)\n@op('n::g')\ndef f{}\n", "n::g"),
        ("def op(name='n::d'):\n    return magi_register_custom_op(name)\n@op()\ndef f{}\n", "n::d"),
        ("def op(name):\n    return magi_register_custom_op('n::' + name)\n@op('g')\ndef f{}\n", "n::g"),
        ("def op(fn):\n    return magi_register_custom_op(is_compute_sensitive=True)(fn)\n@op\ndef f{}\n", "ops::f"),
    ],
)
def test_an_op_and_its_name(text: str, name: str | None, read_op: ReadOp) -> None:
    op = read_op(text.format(SIGNATURE))
    assert (op.function_name, op.name) == ("f", name)


@pytest.mark.parametrize(
    "text",
    [
        "def magi_register_custom_op(name):\n    return lambda fn: fn\n@magi_register_custom_op('n::g')\ndef f{}\n",
        "@magi_register_custom_op\ndef f{}\n",
        "from other import magi_register_custom_op as reg\n@reg('n::g')\ndef f{}\n",
        "g = magi_register_custom_op('n::g')(unknown)\n",
    ],
)
def test_what_makes_no_op(text: str, read_tree: ReadTree) -> None:
    tree = read_tree(text.format(SIGNATURE))
    assert tree.ops == []
    assert len(tree.bare) == text.startswith("@magi_register_custom_op\n")


def test_a_guarded_import_and_a_re_export(read_tree: ReadTree) -> None:
    files = {
        "kit/compat.py": (
            "try:\n    from magi_compiler.api import magi_register_custom_op as make_op\n"
            f"except ImportError:\n    make_op = None\n@make_op('n::guarded')\ndef f{SIGNATURE}\n"
        ),
        "kit/export.py": "from magi_compiler import magi_register_custom_op as make_op\n",
        "kit/near.py": f"from kit.export import make_op\n@make_op('n::near')\ndef f{SIGNATURE}\n",
    }
    tree = read_tree("", {"kit/__init__.py": "", **files})
    assert sorted(op.title for op in tree.ops) == ["n::guarded", "n::near"]


def test_magi_compilers_own_tree(read_tree: ReadTree) -> None:
    files = {
        "magi_compiler/__init__.py": "from .api import magi_register_custom_op\n",
        "magi_compiler/api.py": "def magi_register_custom_op(name=None, **kw):\n    return _impl(name, **kw)\n",
        "tests/test_op.py": f"from magi_compiler import magi_register_custom_op as op\n@op('n::own')\ndef f{SIGNATURE}\n",
    }
    assert [op.name for op in read_tree("", files).ops] == ["n::own"]


def test_what_the_decorator_is_given(read_op: ReadOp) -> None:
    op = read_op("""\
WRITES = ("x",)
def meta(x, out): ...
def bwd(ctx, grad): ...
@magi_register_custom_op("n::f", WRITES, meta, lambda ctx, inputs, output: None, backward_fn=bwd, is_subgraph_boundary=True)
def f(x: Tensor, out: Tensor) -> tuple[Tensor, Tensor]: ...
""")
    assert isinstance(op.mutates, Mutates)
    assert [item.name for item in op.mutates.names] == ["x"]
    assert isinstance(op.meta, Meta)
    assert isinstance(op.meta.function, Body)
    assert isinstance(op.setup_context, Lambda)
    assert op.setup_context.params == ("ctx", "inputs", "output")
    assert isinstance(op.backward, Body)
    assert op.output_count == 2


@pytest.mark.parametrize(
    ("value", "kind", "names"),
    [
        ("None", "identity", []),
        ("['x', 'x']", "names", ["x", "x"]),
        ("NAMES", "names", ["x"]),
        ("('x',)", "other", []),
        ("lambda x: x", "lambda", []),
        ("'x'", "other", []),
    ],
)
def test_meta(value: str, kind: str, names: list[str], read_op: ReadOp) -> None:
    meta = read_op(f"NAMES = ['x']\n@magi_register_custom_op(infer_output_meta_fn={value})\ndef f{SIGNATURE}\n").meta
    assert isinstance(meta, Meta)
    assert (meta.kind, [item.name for item in meta.names]) == (kind, names)


@pytest.mark.parametrize("value", ["make()", "[pick()]", "elsewhere.meta"])
def test_a_meta_that_is_not_known(value: str, read_op: ReadOp) -> None:
    op = read_op(f"import elsewhere\n@magi_register_custom_op(infer_output_meta_fn={value})\ndef f{SIGNATURE}\n")
    assert isinstance(op.meta, Unresolved)


def test_calls_of_the_handle_and_of_torch_ops(read_op: ReadOp) -> None:
    files = {
        "kit/use.py": (
            "import torch\nfrom kit import ops\nfrom kit.ops import f as g\n"
            "ops.f(1)\ng(2)\ntorch.ops.n.f(3)\ntorch.ops.n.f.default(4)\nf(5)\n"
        ),
        "kit/other.py": "from elsewhere import f\nf(6)\n",
        "kit/__init__.py": "from .ops import f\n",
        "kit/near.py": "from . import f\nf(7)\n",
        "far.py": "import kit\nkit.f(8)\n",
    }
    op = read_op(f"@magi_register_custom_op('n::f')\ndef f{SIGNATURE}\nf(0)\n", files)
    assert arguments(op, "handle") == ["0", "1", "2", "7", "8"]
    assert arguments(op, "torch.ops") == ["3", "4"]


def arguments(op: MagiOp, through: str) -> list[str]:
    calls = [call for call in op.calls if call.through == through]
    return sorted(call.body.file.text(call.call.positional()[0]) for call in calls)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "def test():\n    with pytest.raises(TypeError):\n\n"
            "        # why\n        @magi_register_custom_op()\n        def f(x): ...\n",
            True,
        ),
        (
            "def test():\n    with pytest.raises(TypeError):\n        other()\n    @magi_register_custom_op()\n    def f(x): ...\n",
            False,
        ),
        (
            "def test():\n    @magi_register_custom_op()\n    def f(x): ...\n    with pytest.raises(TypeError):\n        f()\n",
            False,
        ),
        ("@pytest.mark.xfail\ndef test():\n    @magi_register_custom_op()\n    def f(x): ...\n", True),
        (
            "class T:\n    def test(self):\n        with self.assertRaises(TypeError):\n"
            "            @magi_register_custom_op()\n            def f(x): ...\n",
            True,
        ),
    ],
)
def test_what_a_test_expects_to_fail(text: str, expected: bool, read_op: ReadOp) -> None:
    assert read_op(f"import pytest\n{text}").fails_on_purpose is expected
