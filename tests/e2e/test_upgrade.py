"""``opschema upgrade``: what another release of PyTorch means for a tree, each thing at its place with both sides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import Here

FILES = {
    "registered.cpp": """\
#include <torch/library.h>
using at::native::qr, at::native::tril;
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("qr", &qr); }
TORCH_LIBRARY_IMPL(aten, PrivateUse2, m) { m.impl("tril", &tril); }
""",
    "registered.py": """\
import torch

lib = torch.library.Library("aten", "IMPL")


def flash(query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, return_debug_mask, *, scale=None,
          window_size_left=None, window_size_right=None, seqused_k=None, alibi_slopes=None):
    return query, query, query, query, query


lib.impl("_flash_attention_forward", flash, "PrivateUse1")
""",
}

CALLS = {
    "calls.py": """\
import torch
from torch import ops

aten = torch.ops.aten
TABLE = {aten.qr.default: 1, torch.ops.aten.cholesky.out: 2}


def refused(x, y):
    torch.ops.aten._cdist_backward(grad=x, x1=x, x2=x, p=2.0, cdist=y)
    aten._scaled_mm(x, y, out_dtype=None)
    return torch.ops.aten._scaled_mm.default(x, y)


def taken(x, y, *rest, **words):
    if hasattr(aten, "cholesky"):  # torch.ops.aten.qr
        aten.cholesky.default(x)
    if torch.__version__ < "2.9":
        aten.qr(x)
    try:
        torch.ops.aten.cholesky(x)
    except AttributeError:
        pass
    aten._scaled_mm(x, y, *rest)
    aten._cdist_backward(x, x, x, 2.0, y)
    torch.ops.aten._scaled_mm(x, y, x, y)
    torch.ops.aten.add.Tensor(x, **words)
    torch.ops.mine.qr(x)


def other(aten, x):
    return aten.qr(x)
""",
    "calls.cpp": """\
at::Tensor f(at::Tensor x) {
  auto s = "at::qr(x)";  // at::qr(x)
#if TORCH_VERSION_MINOR < 9
  at::cholesky(x);
#endif
  at::native::qr(x);
  kit::at::qr(x);
  at::_ops::cholesky::call(x, false);
  return std::get<0>(at::qr(x, true));
}
""",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    for name, text in FILES.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "tree/opschema.toml").write_text("[aten]\ninstalled-torch = false\n")
    return Here(tmp_path / "tree", tmp_path / "cache", monkeypatch, capsys)


def test_what_must_change_is_an_error_with_the_line_to_write(here: Here) -> None:
    done = here("upgrade", "--from", "v2.6.0", "--output-format", "json")  # to the newest
    assert done.code == 1
    found = json.loads(done.out)["diagnostics"]
    assert {(item["path"], item["line"], item["severity"]): item["message"] for item in found} == {
        ("registered.cpp", 3, "error"): "`qr` is not an operator of torch 2.15; remove it here; torch 2.15 has"
        " `linalg_qr`, `linalg_qr.out`",
        ("registered.cpp", 4, "info"): "`tril` changes from torch 2.6 to torch 2.15: `diagonal` is now of type `SymInt`; it was"
        " `int`",
        ("registered.py", 6, "error"): "`_flash_attention_forward` changes from torch 2.6 to torch 2.15: the argument `Tensor? "
        "block_table=None` was added, the argument `int? num_splits=None` was added, the return `Tensor philox_seed` is now `"
        "Tensor rng_state`, the return `Tensor philox_offset` is now `Tensor unused`; its kernel takes `(query, key, value, "
        "cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, return_debug_mask, *, scale=None, window_size_left=None, "
        "window_size_right=None, seqused_k=None, alibi_slopes=None, block_table=None, num_splits=None)` now",
    }  # fmt: skip


def test_both_sides_have_their_places(here: Here) -> None:
    done = here("upgrade", "--from", "2.6", "--to", "2.15", "registered.py")
    assert done.code == 1
    assert "<torch 2.6>/native_functions.yaml:14908:9" in done.out
    assert "- func: _flash_attention_forward(Tensor query, Tensor key, Tensor value" in done.out
    assert "<torch 2.15>/native_functions.yaml:15327:9" in done.out
    assert "registered.cpp" not in done.out


def test_calls_that_the_newer_release_refuses(here: Here) -> None:
    for name, text in CALLS.items():
        Path(name).write_text(text)
    done = here("upgrade", "--from", "2.4", "--to", "2.15", "--output-format", "json", "calls.py", "calls.cpp")
    lost, changes = (
        "is not an operator of torch 2.15; it is used here; torch 2.15 has",
        "changes from torch 2.4 to torch 2.15:",
    )
    needs = f"`_scaled_mm` {changes} it requires `scale_a`, `scale_b`, but the call does not pass them"
    found = [(item["path"], item["line"], item["message"]) for item in json.loads(done.out)["diagnostics"]]
    assert found == [
        ("calls.cpp", 8, f"`cholesky` {lost} `linalg_cholesky`, `linalg_cholesky.out`"),
        ("calls.cpp", 9, f"`qr` {lost} `linalg_qr`, `linalg_qr.out`"),
        ("calls.py", 5, f"`qr` {lost} `linalg_qr`, `linalg_qr.out`"),
        ("calls.py", 5, f"`cholesky.out` {lost} `linalg_cholesky`, `linalg_cholesky.out`"),
        (
            "calls.py",
            9,
            f"`_cdist_backward` {changes} it has no argument `grad` any more; write `grad_output` for `grad`",
        ),
        ("calls.py", 10, needs),
        ("calls.py", 11, needs),
    ]


def test_nothing_to_change(here: Here) -> None:
    done = here("upgrade", "--from", "2.14", "--to", "2.15")
    assert (done.code, done.out.partition(":")[0]) == (0, "All clean")


def test_releases_that_make_no_sense(here: Here) -> None:
    unknown = here("upgrade", "--from", "2.13", "--to", "9.9")
    assert (unknown.code, unknown.out) == (2, "")
    assert "`9.9` is not a release of torch that opschema knows; known releases: 2.4, 2.5, " in unknown.err
    assert "--from and --to are both 2.13" in here("upgrade", "--from", "2.13", "--to", "2.13").err
    assert here("upgrade", "--to", "2.13").code == 2
