"""Descriptors whose size the first call decides: each with a byte count to write, in words where it is not known."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.flydsl.examples import HEAD, KERNELS_PATH, example_files
from opschema_rules.flydsl.pack import PACK

LINES = HEAD.count("\n")
KERNEL = """\
from flydsl.expr import buffer_ops

M, N = 4096, 256


@flyc.kernel
def scale(A: fx.Tensor, n: fx.Int32):
    a = buffer_ops.create_buffer_resource(A, max_size=False)


@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32):
    scale(A, n).launch(grid=(n, 1, 1), block=(256, 1, 1))


a = torch.randn(M, N + 1, dtype=torch.float16).cuda()
launch(a, M)
"""
SITE = f"kit/kernels.py:{LINES + 8}: give `create_buffer_resource` a byte count by hand: "


def migrate(text: str, version: str = "0.1.8") -> Migrated:
    files = example_files([("toml", f'[flydsl]\nversion = "{version}"\n'), ("python", text)])
    done = migrate_files(PACK, "add-num-records", files)
    assert done.files == files, "nothing is written"
    return done


def test_extents_that_the_kernel_knows() -> None:
    made = f"as `A` has where it is made (kit/kernels.py:{LINES + 16})"
    assert migrate(KERNEL).notes() == [f"{SITE}`num_records_bytes=M * (N + 1) * 2`, {made}"]


def test_extents_that_only_the_caller_knows() -> None:
    text = KERNEL.replace("a = torch", "rows = load()\na = torch").replace("randn(M, N + 1", "randn(rows, 8")
    text = text.replace("launch(a, M)", "launch(a, M)\nlaunch(torch.empty(N, dtype=KIND), M)")
    notes = migrate(text).notes()
    assert len(notes) == 1
    assert notes[0].startswith(f"{SITE}`num_records_bytes=` what `A` has where it is made, in the names there: ")
    assert f"`rows * 8 * 2` (kit/kernels.py:{LINES + 17})" in notes[0]
    assert f"`N * BYTES_OF_AN_ELEMENT` (kit/kernels.py:{LINES + 19})" in notes[0]


def test_what_hides_the_extents_is_told() -> None:
    why = f"the value of `load()` is not known (kit/kernels.py:{LINES + 16})"
    text = KERNEL.replace("torch.randn(M, N + 1, dtype=torch.float16).cuda()", "load()")
    assert migrate(text).notes() == [f"{SITE}`num_records_bytes=` the elements of `A` times their size; {why}"]


def test_a_function_that_takes_no_bytes() -> None:
    text = KERNEL.replace("buffer_ops.create_buffer_resource", "fx.rocdl.make_buffer_tensor")
    assert "it takes none in this FlyDSL; leave `max_size=False` out" in migrate(text).notes()[0]


@pytest.mark.parametrize("version", ["0.2.0", "0.4.2"])
def test_a_key_with_shapes_needs_none(version: str) -> None:
    assert (
        migrate(KERNEL.replace("buffer_ops.create_buffer_resource", "fx.rocdl.make_buffer_tensor"), version).sites()
        == []
    )


@pytest.mark.parametrize(
    "call",
    [
        "create_buffer_resource(A)",
        "create_buffer_resource(A, max_size=True)",
        "create_buffer_resource(A, max_size=False, num_records_bytes=n * 2)",
        "create_buffer_resource(A, max_size=False, **options)",
        "create_buffer_resource(A, max_size=False)  # opschema: ignore[FLY201] one shape only",
    ],
)
def test_other_descriptors_are_left(call: str) -> None:
    done = migrate(KERNEL.replace("create_buffer_resource(A, max_size=False)", call))
    assert done.notes() == []
    assert KERNELS_PATH in done.files
