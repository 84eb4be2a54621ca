"""FLY207: names that the FlyDSL of a tree does not have."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import Linted, lint_files
from opschema_rules.flydsl.api_renames import MOVED
from opschema_rules.flydsl.api_table import having
from opschema_rules.flydsl.contract import RELEASES
from opschema_rules.flydsl.examples import HEAD, KERNELS_PATH, example_files
from opschema_rules.flydsl.pack import PACK

USES_REMOVED = "flyc.TensorAdaptor(1)"
IN_FUNCTION = "def use(x, y):\n    {}\n"


def lint(text: str, version: str = "0.4.2") -> Linted:
    return lint_files(
        [PACK], example_files([("toml", f'[flydsl]\nversion = "{version}"\n'), ("python", text)]), ["FLY207"]
    )


def found(linted: Linted) -> list[tuple[str, str]]:
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("version", "text", "place", "message"),
    [
        (
            "0.4.2",
            "from flydsl.expr import buffer_ops, rocdl\n",
            "buffer_ops",
            "FlyDSL 0.4.2 has no `flydsl.expr.buffer_ops`, which is in 0.1.5 to 0.2.4",
        ),
        (
            "0.4.2",
            "from flydsl.expr.buffer_ops import buffer_load, buffer_store\n",
            "buffer_load",
            "FlyDSL 0.4.2 has no `flydsl.expr.buffer_ops`, which is in 0.1.5 to 0.2.4",
        ),
        (
            "0.2.4",
            "import flydsl.extension.random as rng\n",
            "flydsl.extension.random",
            f"FlyDSL 0.2.4 has no `flydsl.extension`, which is in 0.3.1 to {RELEASES[-1]}",
        ),
        (
            "0.2.1",
            "t = flyc.from_torch_tensor(torch.empty(4))\n",
            "from_torch_tensor",
            f"FlyDSL 0.2.1 has no `flydsl.compiler.from_torch_tensor`, which is in 0.2.2 to {RELEASES[-1]}",
        ),
        (
            "0.4.2",
            "from flydsl.compiler.protocol import fly_types\n",
            "fly_types",
            "FlyDSL 0.4.2 has no `flydsl.compiler.protocol.fly_types`, which is in 0.1.5 to 0.1.6: "
            "it is `get_ir_types` from 0.1.7 on (`opschema migrate rename-api`)",
        ),
        (
            "0.5.0",
            "from flydsl.compiler.jit_function import JitFunction, KernelFunction\n",
            "KernelFunction",
            "FlyDSL 0.5.0 has no `flydsl.compiler.jit_function.KernelFunction`, which is in 0.1.5 to 0.4.2: "
            "import it from `flydsl.compiler.kernel_function`",
        ),
        (
            "0.4.0",
            "from flydsl.utils.smem_allocator import SmemAllocator, check_smem_capacity\n",
            "check_smem_capacity",
            "FlyDSL 0.4.0 has no `flydsl.utils.smem_allocator.check_smem_capacity`, which is in 0.1.5 to 0.3.4.1: "
            "import it from `flydsl.runtime.device`",
        ),
        (
            "0.3.1",
            "from flydsl.runtime.device import SMEM_CAPACITY_MAP\n",
            "SMEM_CAPACITY_MAP",
            f"FlyDSL 0.3.1 has no `flydsl.runtime.device.SMEM_CAPACITY_MAP`, which is in 0.4.0 to {RELEASES[-1]}",
        ),
        (
            "0.4.2",
            "t = flyc.TensorAdaptor(torch.empty(4))\n",
            "TensorAdaptor",
            "FlyDSL 0.4.2 has no `flydsl.compiler.TensorAdaptor`",
        ),
        (
            "0.3.1",
            "from flydsl.expr.rocdl import cluster\n\nmasks = cluster.compute_mcast_masks(0, 0, 2, 2)\n",
            "compute_mcast_masks",
            "FlyDSL 0.3.1 has no `flydsl.expr.rocdl.cluster.compute_mcast_masks`, which is in 0.1.8 to 0.2.4",
        ),
    ],
)
def test_names_of_a_release(version: str, text: str, place: str, message: str) -> None:
    assert found(lint(text, version)) == [(place, message)]


@pytest.mark.parametrize(
    "text",
    [
        "from flydsl.expr import rocdl, range_constexpr\nfrom flydsl.expr.typing import T, Vector as Vec\n",
        "from flydsl._mlir.dialects import llvm\nfrom flydsl._mlir.ir import Whatever\n",  # compiled
        "from flydsl.expr.arith import whatever\n",  # takes all names of a compiled module
        "from flydsl.expr.typing import *\nx = Whatever\n",
        "x = fx.Tensor.whatever\n",  # below a class
        "x = fx.rocdl.BufferCopy128b\ny = fx.tdm_ops\n",  # imported when they are asked for
        "import flydsl\n\nprint(flydsl.__version__, flydsl.__path__)\n",
        "from kit.other import flyc\n\nflyc.TensorAdaptor(1)\n",
        "def f(flyc):\n    return flyc.TensorAdaptor(1)\n",
        "flyc = object()\nflyc.TensorAdaptor(1)\n",
        "x = flyc.__file__\n",
        "try:\n    wrap = flyc.TensorAdaptor\nexcept AttributeError:\n    wrap = flyc.from_torch_tensor\n",
        'wrap = flyc.TensorAdaptor if hasattr(flyc, "TensorAdaptor") else flyc.from_torch_tensor\n',
        "if NEW:\n    from flydsl.expr import buffer_ops\n",
        "from kit import NEW\n\nif NEW:\n    from flydsl.expr import buffer_ops\n",
        "import flydsl\n\nif flydsl.__version__ < '0.3':\n    from flydsl.expr import buffer_ops\n",
        "def old():\n    return version('flydsl') < '0.3'\n\nif old():\n    from flydsl.expr import buffer_ops\n",
        "if False:\n    from flydsl.expr import buffer_ops\n",
        f"OLD = not hasattr(fx, 'rocdl')\n\ndef use(x, old):\n    if old:\n        {USES_REMOVED}\n\nuse(1, OLD)\n",
        "try:\n    import flydsl.extension\n    OLD = False\nexcept ImportError:\n    OLD = True\n"
        f"if OLD:\n    {USES_REMOVED}\n",
        f"import importlib.metadata as m\nv, _ = m.version('flydsl'), 1\nx = ({USES_REMOVED} if v < '0.3' else 1)\n",
        f"def use(x):\n    if flydsl_version() > (0, 3):\n        return x\n    return {USES_REMOVED}\n",
        f"class A:\n    def run(self):\n        if self.old:\n            {USES_REMOVED}\n",
        "import pytest\n\ndef test():\n    with pytest.raises(AttributeError):\n        flyc.TensorAdaptor(1)\n",
    ],
)
def test_what_is_there_or_not_known_or_asked_for(text: str) -> None:
    assert found(lint(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        f"if True:\n    {USES_REMOVED}\n",
        f"if not False:\n    {USES_REMOVED}\n",
        f"if __name__ == '__main__':\n    {USES_REMOVED}\n",
        f"if torch.cuda.is_available():\n    {USES_REMOVED}\n",
        f"import os\n\nFAST = os.environ.get('FAST') == '1'\nif FAST and len('ab') > 1:\n    {USES_REMOVED}\n",
        f"def use(x, pad=False):\n    if pad:\n        return {USES_REMOVED}\n\nuse(1, True)\n",
        f"def use(x):\n    if x.is_cuda:\n        x = x.cpu()\n    else:\n        return {USES_REMOVED}\n",
        f"def use(xs):\n    for x in xs:\n        if x > 1:\n            continue\n        {USES_REMOVED}\n",
        f"import argparse\n\nparser = argparse.ArgumentParser()\nargs = parser.parse_args()\nif args.old:\n    {USES_REMOVED}\n",
        f"x = 1 if torch.cuda.is_available() else {USES_REMOVED}\n",
        f"def deep(x):\n    return x + 1\n\nN = deep(2)\nM = 1 if N else 2\nif N > M:\n    {USES_REMOVED}\n",
    ],
)
def test_other_conditions_excuse_nothing(text: str) -> None:
    assert [place for place, _ in found(lint(text))] == ["TensorAdaptor"]


def test_a_kernels_own_choice_guards_nothing() -> None:
    text = """\
from flydsl.expr.rocdl import cluster


@flyc.kernel
def k(A: fx.Tensor, n: fx.Constexpr[int]):
    if fx.const_expr(n > 1):
        cluster.compute_mcast_masks(0, 0, n, 1)
    if CLUSTERS:
        cluster.compute_mcast_masks(0, 0, n, 1)
"""
    linted = lint(text)
    (item,) = linted.diagnostics
    source = linted.project.source(KERNELS_PATH)
    assert source is not None
    assert source.line_text(linted.position(item.place).line - 1) == "    if fx.const_expr(n > 1):"


def test_a_range_of_releases() -> None:
    files = example_files([("toml", ""), ("python", "from flydsl.expr import buffer_ops\n")])
    found_by_pin = {
        pin: lint_files([PACK], {**files, "requirements.txt": f"flydsl{pin}\n"}, ["FLY207"]).diagnostics
        for pin in (">=0.2", ">=0.3", ">=0.2,<0.3", "<0.1.5", "")
    }
    assert {pin: [item.severity for item in items] for pin, items in found_by_pin.items()} == {
        ">=0.2": [Severity.WARNING],  # the newest, which is installed anew
        ">=0.3": [Severity.ERROR],
        ">=0.2,<0.3": [],
        "<0.1.5": [],
        "": [],
    }


# Wrapped tensors


@pytest.mark.parametrize(
    ("version", "expr", "places"),
    [
        ("0.4.2", "flyc.from_dlpack(x).mark_static()", ["mark_static"]),
        ("0.4.2", "flyc.from_dlpack(x).mark_layout_dynamic(0).mark_static(dims=[1])", ["mark_static"]),
        ("0.4.2", "flyc.from_torch_tensor(x).mark_shape_dynamic(0).mark_stride_dynamic(0)", []),
        ("0.4.2", "flyc.from_torch_tensor(x).shape", []),
        ("0.2.0", "flyc.from_dlpack(x).mark_shape_dynamic(0)", ["mark_shape_dynamic"]),
        ("0.2.1", "flyc.from_dlpack(x).mark_shape_dynamic(0)", []),
        ("0.1.8", "flyc.from_dlpack(x).mark_static()", ["mark_static"]),
        ("0.4.2", "torch._dynamo.mark_static(x, 0)", []),
        ("0.4.2", "x.mark_static()", []),
    ],
)
def test_methods_of_wrapped_tensors(version: str, expr: str, places: list[str]) -> None:
    linted = lint(IN_FUNCTION.format(f"return {expr}"), version)
    assert [linted.text(item.place) for item in linted.diagnostics] == places


def test_methods_of_a_name() -> None:
    text = """\
def use(x, y):
    t = flyc.from_dlpack(x)
    t.mark_static()
    u = flyc.from_dlpack(x)
    u = y
    u.mark_static()
"""
    (message,) = [message for _, message in found(lint(text))]
    assert message == (
        "a wrapped tensor has no `mark_static` in FlyDSL 0.4.2: leave it out (`opschema migrate drop-mark-static`)"
    )


def test_bytes_that_a_release_does_not_take() -> None:
    text = "@flyc.kernel\ndef k(A: fx.Tensor):\n    fx.rocdl.make_buffer_tensor(A, num_records_bytes=64)\n"
    assert [place for place, _ in found(lint(text, "0.1.8"))] == ["64"]
    assert found(lint(text, "0.2.0")) == []


# FlyDSL itself

OWN = {
    "opschema.toml": "",
    "python/flydsl/__init__.py": "",
    "python/flydsl/compiler/__init__.py": "from .jit_argument import from_dlpack\nfrom .removed import gone\n",
    "python/flydsl/compiler/jit_argument.py": """\
import abc


class Base(abc.ABC):
    def mark_layout_dynamic(self):
        self.dynamic = True
        return self


class TensorAdaptor(Base):
    def __init__(self, tensor): ...


def from_dlpack(tensor) -> TensorAdaptor: ...
""",
    "python/flydsl/expr/__init__.py": "from .._mlir.dialects.fly import *\nfrom . import gpu\n",
    "python/flydsl/expr/gpu.py": "def barrier(): ...\n",
    "python/flydsl/expr/rocdl/__init__.py": "",
}


def lint_own(text: str) -> Linted:
    return lint_files([PACK], {**OWN, KERNELS_PATH: HEAD + text, "kit/__init__.py": ""}, ["FLY207"])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from flydsl.compiler import TensorAdaptor\n", "flydsl.compiler.TensorAdaptor"),
        ("flyc.from_torch_tensor(1)\n", "flydsl.compiler.from_torch_tensor"),
        ("fx.gpu.barier()\n", "flydsl.expr.gpu.barier"),
        ("flyc.from_dlpack(1).mark_static()\n", "mark_static"),
    ],
)
def test_names_of_flydsl_itself(text: str, name: str) -> None:
    (item,) = lint_own(text).diagnostics
    assert f"`{name}`" in item.message
    assert "this FlyDSL" in item.message
    assert item.related[0].place.path.startswith("python/flydsl/")


@pytest.mark.parametrize(
    "text",
    [
        "fx.Int32(1)\nfrom flydsl.expr import whatever\n",  # may be in the compiled module
        "from flydsl._mlir.dialects import llvm\n",
        "from flydsl.compiler.jit_argument import TensorAdaptor\nTensorAdaptor(1).mark_static()\n",
        "flyc.from_dlpack(1).mark_layout_dynamic().dynamic\n",
        "fx.rocdl\nfx.gpu.barrier()\n",
    ],
)
def test_what_flydsl_itself_has_or_may_have(text: str) -> None:
    assert found(lint_own(text)) == []


def test_a_module_that_lists_its_names_hides_none() -> None:
    files = {
        **OWN,
        "kit/__init__.py": "",
        "python/flydsl/expr/__init__.py": "from .gpu import *\nfrom . import rocdl\n",
        "python/flydsl/expr/gpu.py": 'from .._mlir.dialects.gpu import *\n__all__ = ["barrier"]\ndef barrier(): ...\n',
    }
    text = "from flydsl.expr import barrier, buffer_ops\nfrom flydsl.expr.gpu import whatever\n"
    linted = lint_files([PACK], {**files, KERNELS_PATH: HEAD + text}, ["FLY207"])
    assert found(linted) == [("buffer_ops", "this FlyDSL has no `flydsl.expr.buffer_ops`")]


def test_loops_that_flydsl_rewrites() -> None:
    text = "@flyc.kernel\ndef k(A: fx.Tensor):\n    for i in fx.range(0, 4, 1, init=[1]):\n        pass\n"
    assert found(lint(text)) == []


@pytest.mark.parametrize(
    "text", ["def broken(:\n", "x = 1\0\n", "(" * 3000 + ")" * 3000 + "\n", "\ufeff__all__ = [f()]\n"]
)
def test_own_files_that_cannot_be_read(text: str) -> None:
    files = {
        **OWN,
        "kit/__init__.py": "",
        "python/flydsl/compiler/__init__.py": text,
        KERNELS_PATH: HEAD + "flyc.whatever\n",
    }
    codes = lint_files([PACK], files, ["FLY207"]).codes()
    assert set(codes) <= {"OPS101", "OPS102"}  # that it cannot be read


def test_flydsls_own_files_define_the_names() -> None:
    assert (
        found(
            lint_files(
                [PACK], {**OWN, KERNELS_PATH: HEAD, "python/flydsl/tool.py": HEAD + "flyc.gone_too\n"}, ["FLY207"]
            )
        )
        == []
    )


def test_flydsls_own_files_beside_a_configured_version() -> None:
    files = {
        **OWN,
        "opschema.toml": '[flydsl]\nversion = "0.4.2"\n',
        "python/flydsl/tool.py": "from . import compiler\nimport flydsl.compiler as flyc\ncompiler.own()\nflyc.own()\n",
        KERNELS_PATH: HEAD + "flyc.own()\n",
        "kit/__init__.py": "",
    }
    linted = lint_files([PACK], files, ["FLY207"])
    assert [item.place.path for item in linted.diagnostics] == [KERNELS_PATH]


@pytest.mark.parametrize(("name", "module"), MOVED.items())
def test_what_moved_is_in_one_module_or_the_other(name: str, module: str) -> None:
    new = f"{module}.{name.rpartition('.')[2]}"
    assert set(having(name)) | set(having(new)) == set(RELEASES)
    assert max(RELEASES) in having(new)
    assert max(RELEASES) not in having(name)
