"""FLY201, FLY202 and FLY203: how large a buffer is, by the FlyDSL that makes it."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.flydsl.examples import KERNELS_PATH, example_files
from opschema_rules.flydsl.pack import PACK

KERNEL = """\
@flyc.kernel
def copy(A: fx.Tensor, M: fx.Int32):
    a = fx.rocdl.make_buffer_tensor(A{arguments})


@flyc.jit
def launch(A: fx.Tensor, M: fx.Int32):
    copy(A, M).launch(grid=(1, 1, 1), block=(64, 1, 1))


"""
RESOURCE = """\
from flydsl.expr import buffer_ops


@flyc.kernel
def copy(A: fx.Tensor, size):
    a = buffer_ops.create_buffer_resource(A{arguments})
"""


def lint(text: str, version: str, code: str) -> Linted:
    toml = ("toml", f'[flydsl]\nversion = "{version}"\n')
    return lint_files([PACK], example_files([toml, ("python", text)]), [code])


def only(linted: Linted) -> Diagnostic:
    (found,) = linted.diagnostics
    return found


# FLY201


@pytest.mark.parametrize("version", ["0.1.5", "0.1.8"])
def test_the_size_of_the_first_call(version: str) -> None:
    linted = lint(KERNEL.format(arguments=", max_size=False"), version, "FLY201")
    found = only(linted)
    assert linted.text(found.place) == "max_size=False"
    assert found.severity is Severity.ERROR
    assert found.message == (
        "this buffer has the size of `A` in the first call, and calls with other shapes run the same kernel: "
        "reads beyond its end give 0; leave `max_size=False` out: this `make_buffer_tensor()` takes no bytes, "
        "or have every caller wrap it with `mark_layout_dynamic()`"
    )


@pytest.mark.parametrize("version", ["0.1.5", "0.1.8"])
def test_a_resource_has_no_size(version: str) -> None:
    found = only(lint(RESOURCE.format(arguments=", max_size=False"), version, "FLY201"))
    assert found.severity is Severity.WARNING
    assert found.message == (
        "`max_size=False` has no effect without `num_records_bytes`: `create_buffer_resource()` finds no size in a tensor "
        "and describes 4 GiB, so accesses beyond `A` are not stopped; pass `num_records_bytes`"
    )


@pytest.mark.parametrize("version", ["0.2.0", "0.2.2", "0.4.2"])
def test_the_size_is_known_at_run_time_or_in_the_key(version: str) -> None:
    assert not lint(RESOURCE.format(arguments=", max_size=False"), version, "FLY201").diagnostics


def test_nothing_is_said_where_the_version_is_not_known() -> None:
    files = {**example_files([("python", RESOURCE.format(arguments=", max_size=False"))]), "opschema.toml": ""}
    assert not lint_files([PACK], files, ["FLY201"]).diagnostics
    for pin, codes in (("flydsl<0.2", ["FLY201"]), ("flydsl<0.2.1", [])):
        assert lint_files([PACK], {**files, "requirements.txt": pin}, ["FLY201"]).codes() == codes


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        ", max_size=True",
        ", max_size=size",
        ", max_size=not size",
        ", max_size=0",
        ", max_size=False, num_records_bytes=size",
        ", 0, False, num_records_bytes=128",
        ", max_size=False, **size",
    ],
)
def test_sizes_that_are_not_the_layouts(arguments: str) -> None:
    assert not lint(RESOURCE.format(arguments=arguments), "0.1.8", "FLY201").diagnostics


@pytest.mark.parametrize("arguments", [", 0, False", ", 0, max_size=False, num_records_bytes=None"])
def test_other_ways_to_write_it(arguments: str) -> None:
    linted = lint(RESOURCE.format(arguments=arguments), "0.1.8", "FLY201")
    assert linted.text(only(linted).place) in ("False", "max_size=False")


DYNAMIC = "launch(flyc.from_dlpack(x).mark_layout_dynamic(), 1)\n"


@pytest.mark.parametrize(
    ("callers", "severity", "shown"),
    [
        (DYNAMIC, Severity.WARNING, ["flyc.from_dlpack(x).mark_layout_dynamic()"]),
        ("t = flyc.from_dlpack(x).mark_layout_dynamic()\nlaunch(t, 1)\n", Severity.WARNING, ["t"]),
        ("t = flyc.from_dlpack(x)\nt.mark_layout_dynamic(leading_dim=0)\nlaunch(t, 1)\n", Severity.WARNING, ["t"]),
        (DYNAMIC + "launch(flyc.from_dlpack(y), 1)\n", Severity.ERROR, ["flyc.from_dlpack(y)"]),
        (DYNAMIC + "launch(y, 1)\n", Severity.ERROR, ["y"]),
        (DYNAMIC + "launch(*y)\n", Severity.ERROR, []),
        ("", Severity.ERROR, []),
    ],
)
def test_callers_that_mark_the_layout(callers: str, severity: Severity, shown: list[str]) -> None:
    linted = lint(KERNEL.format(arguments=", max_size=False") + callers, "0.1.8", "FLY201")
    found = only(linted)
    assert found.severity is severity
    assert [linted.text(item.place) for item in found.related] == shown


def test_a_helper_between_kernel_and_descriptor() -> None:
    text = """\
def describe(t):
    return fx.rocdl.make_buffer_tensor(t, max_size=False)


@flyc.kernel
def copy(A: fx.Tensor):
    a = describe(A)


@flyc.jit
def launch(A: fx.Tensor):
    copy(A).launch(grid=(1, 1, 1), block=(64, 1, 1))


launch(flyc.from_dlpack(x).mark_layout_dynamic())
"""
    assert only(lint(text, "0.1.8", "FLY201")).severity is Severity.WARNING
    assert only(lint(text + "describe(y)\n", "0.1.8", "FLY201")).severity is Severity.ERROR


def test_recursion_ends() -> None:
    text = """\
@flyc.jit
def launch(A: fx.Tensor):
    fx.rocdl.make_buffer_tensor(A, max_size=False)
    launch(A)
"""
    assert only(lint(text, "0.1.8", "FLY201")).severity is Severity.ERROR


def test_a_test_that_expects_the_error() -> None:
    text = """\
import pytest


def test_guard(x):
    with pytest.raises(ValueError):

        @flyc.kernel
        def probe(A: fx.Tensor):
            fx.rocdl.make_buffer_tensor(A, max_size=False)

        probe(x)
"""
    assert not lint(text, "0.1.8", "FLY201").diagnostics


def test_a_factory_of_kernels_describes_no_tensor() -> None:
    text = """\
def make_launch(max_size, num_records_bytes=None):
    @flyc.kernel
    def probe(A: fx.Tensor):
        fx.rocdl.make_buffer_tensor(A, max_size=max_size)

    return probe


probe = make_launch(max_size=False, num_records_bytes=None)
"""
    assert not lint(text, "0.1.8", "FLY201").diagnostics


def test_a_helper_that_hands_the_size_on() -> None:
    text = """\
def describe(tensor, max_size=True, num_records_bytes=None):
    return fx.rocdl.make_buffer_tensor(tensor, max_size=max_size, num_records_bytes=num_records_bytes)


@flyc.kernel
def copy(A: fx.Tensor, B: fx.Tensor):
    a = describe(A, max_size=False)
    b = describe(B, False, 64)
"""
    found = only(lint(text, "0.1.8", "FLY201"))
    assert "`A`" in found.message


# FLY202


@pytest.mark.parametrize(
    ("arguments", "fixed"),
    [
        (", max_size=True, num_records_bytes=M * 4", ", num_records_bytes=M * 4"),
        (", True, num_records_bytes=4096", ", num_records_bytes=4096"),
        (", num_records_bytes=4096, max_size=True", ", num_records_bytes=4096"),
        (
            ",\n        max_size=True,\n        num_records_bytes=M * 4,\n    ",
            ",\n        num_records_bytes=M * 4,\n    ",
        ),
        (",\n        # all of it\n        max_size=True, num_records_bytes=4096", None),
    ],
)
def test_the_bytes_count_alone(arguments: str, fixed: str | None) -> None:
    linted = lint(KERNEL.format(arguments=arguments), "0.4.2", "FLY202")
    assert only(linted).severity is Severity.WARNING
    texts, _ = fix_files([PACK], example_files([("python", KERNEL.format(arguments=arguments))]), ["FLY202"])
    wanted = example_files([("python", KERNEL.format(arguments=fixed))])[KERNELS_PATH] if fixed is not None else None
    assert texts.get(KERNELS_PATH) == wanted


@pytest.mark.parametrize(
    "arguments",
    [
        ", num_records_bytes=M * 4",
        ", max_size=False, num_records_bytes=M * 4",
        ", max_size=True, num_records_bytes=None",
        ", max_size=True, num_records_bytes=M",  # a parameter may be None
        ", max_size=True, num_records_bytes=M if M else None",
        ", max_size=True, **options",
        ", max_size=True",
        ", max_size=M, num_records_bytes=4096",
    ],
)
def test_no_contradiction(arguments: str) -> None:
    assert not lint(KERNEL.format(arguments=arguments), "0.4.2", "FLY202").diagnostics


# FLY203

PASSES_ON = """\
def make_buffer_tensor(tensor, max_size=True, *, num_records_bytes=None):
    if not hasattr(num_records_bytes, "ir_value"):
        num_records_bytes = Int64(num_records_bytes)
"""
WIDENS = """\
def make_buffer_tensor(tensor, max_size=True, *, num_records_bytes=None):
    if hasattr(num_records_bytes, "to"):
        num_records_bytes = num_records_bytes.to(Int64)
    elif not hasattr(num_records_bytes, "ir_value"):
        num_records_bytes = Int64(num_records_bytes)
"""


def lint_own(own: str, size: str) -> Linted:
    kernel = f"""\
@flyc.kernel
def copy(A: fx.Tensor, M: fx.Int32, L: fx.Int64, K: fx.Constexpr[int]):
    rows = M + 1
    a = fx.rocdl.make_buffer_tensor(A, num_records_bytes={size})
"""
    files = {
        **example_files([("toml", ""), ("python", kernel)]),
        "python/flydsl/__init__.py": "",
        "python/flydsl/compiler/__init__.py": "",
        "python/flydsl/compiler/jit_argument.py": "class TensorAdaptor:\n    def __init__(self, tensor): ...\n",
        "python/flydsl/expr/__init__.py": "from .typing import *\nfrom . import rocdl\n",
        "python/flydsl/expr/rocdl.py": "def make_buffer_tensor(memref, alignment=4): ...\n",  # the package hides it
        "python/flydsl/expr/rocdl/__init__.py": "from .universal import *\n",
        "python/flydsl/expr/rocdl/universal.py": own,
    }
    return lint_files([PACK], files, ["FLY203"])


@pytest.mark.parametrize("size", ["M", "M * 128", "2 * M", "rows * 4", "fx.Int32(K) * 4", "M * (rows + 1) // 2"])
def test_bytes_of_32_bits(size: str) -> None:
    linted = lint_own(PASSES_ON, size)
    found = only(linted)
    assert linted.text(found.place) == size
    assert [linted.text(item.place) for item in found.related] == ["make_buffer_tensor"]
    assert not lint_own(WIDENS, size).diagnostics


@pytest.mark.parametrize(
    "size", ["fx.Int64(M) * 128", "M * L", "K * 128", "4096", "M * unknown", "round_up(M)", "A.size * M", "~M"]
)
def test_bytes_that_may_be_wide(size: str) -> None:
    assert not lint_own(PASSES_ON, size).diagnostics
