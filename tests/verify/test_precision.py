"""TF32 and bfloat16 products are off, however an op library turns them on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from opschema_cli.verify.precision import full_precision, precisions  # noqa: E402
from opschema_cli.verify.state import left_changed, state  # noqa: E402
from opschema_cli.verify.workers import Workers  # noqa: E402
from tests.verify.oplib import cell, plan, write_library  # noqa: E402

NEWER = 'torch.backends.fp32_precision = "tf32"'
OLDER = 'torch.set_float32_matmul_precision("medium")'

needs_newer = pytest.mark.skipif(
    not hasattr(torch._C, "_set_fp32_precision_setter"), reason="this torch has the older flags only"
)


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    full_precision()
    yield
    full_precision()


@needs_newer
@pytest.mark.parametrize(
    "statement",
    [
        NEWER,
        OLDER,
        'torch.backends.cudnn.conv.fp32_precision = "tf32"',
        'torch.backends.cuda.matmul.fp32_precision = "tf32"',
        "torch.backends.cudnn.allow_tf32 = True",
    ],
)
def test_every_interface_is_reset_and_none_is_left_unreadable(statement: str) -> None:
    usual, before = precisions(), state()
    exec(statement)
    changed = dict(left_changed(before, state()))
    assert any(name.startswith("the precision of ") for name in changed), changed
    full_precision()
    assert precisions() == usual
    assert torch.get_float32_matmul_precision() == "highest"
    assert not torch.backends.cudnn.allow_tf32


@needs_newer
def test_an_op_library_may_turn_it_on_with_either_interface(tmp_path: Path) -> None:
    for number, statement in enumerate((NEWER, OLDER)):
        root = write_library(tmp_path / str(number), tmp_path / "log")
        (root / "lib.py").write_text(f"import torch\n{statement}\n{(root / 'lib.py').read_text()}")
        with Workers(tmp_path / "scratch") as workers:
            ran = workers.run("after", plan(root), cell("r"), "cpu", 60)
        assert (ran.status, ran.findings) == ("ok", ()), ran.detail
