"""Uses of PyTorch's operators in the YAML of backends, and what another release means for them."""

from __future__ import annotations

from pathlib import Path

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.aten.detection import AtenOptions
from opschema_rules.aten.torch_changes import torch_changes
from opschema_rules.aten.torch_uses import torch_uses

FILES = {
    "tile.yaml": "backend: PrivateUse1\ncpp_namespace: at::tile\nsupported: [abs, cholesky, rsqrt, stft.center, sum]\n",
    "kernels.cpp": """\
namespace at::tile {
at::Tensor PrivateUse1NativeFunctions::abs(const at::Tensor& self) { return self; }
at::Tensor PrivateUse1NativeFunctions::cholesky(const at::Tensor& self, bool upper) { return self; }
at::Tensor PrivateUse1NativeFunctions::stft(const at::Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
    std::optional<int64_t> win_length, const std::optional<at::Tensor>& window, bool center, c10::string_view pad_mode,
    bool normalized, std::optional<bool> onesided, std::optional<bool> return_complex) { return self; }
at::Tensor PrivateUse1NativeFunctions::sum(const at::Tensor& self, std::optional<at::ScalarType> dtype) { return self; }
}
""",
    "copied/native_functions.yaml": """\
- func: abs(Tensor self) -> Tensor
- func: tril(Tensor self, int diagonal=0) -> Tensor
- func: triu(Tensor self, float diagonal=0) -> Tensor
- func: mine(Tensor self) -> Tensor
""",
}


def test_changes_are_told_at_kernels_lists_and_copies() -> None:
    project = Project(Workspace(Path("/nowhere"), FILES))
    uses = list(torch_uses(project, AtenOptions(torch="2.6")))
    found = {}
    for item in torch_changes(project, uses, "2.6", "2.15"):
        source = project.source(item.place.path)
        assert source is not None
        place = (item.place.path, source.position(item.place.span.start).line, item.severity.value)
        found[place] = item.message, [other.place.path for other in item.related]
    sides = [f"<torch {name}>/native_functions.yaml" for name in ("2.6", "2.15")]
    assert found == {
        ("copied/native_functions.yaml", 2, "error"): (
            "`tril` changes from torch 2.6 to torch 2.15: `diagonal` is now of type `SymInt`; it was `int`; "
            "write `tril(Tensor self, SymInt diagonal=0) -> Tensor`",
            sides,
        ),
        ("kernels.cpp", 4, "error"): (
            "`stft.center` changes from torch 2.6 to torch 2.15: the argument `bool? align_to_window=None` was added; its kernel "
            "is now `at::Tensor stft(const at::Tensor & self, int64_t n_fft, ::std::optional<int64_t> hop_length, "
            "::std::optional<int64_t> win_length, const ::std::optional<at::Tensor> & window, bool center, c10::string_view "
            "pad_mode, bool normalized, ::std::optional<bool> onesided, ::std::optional<bool> return_complex, "
            "::std::optional<bool> align_to_window)`",
            sides,
        ),
        ("kernels.cpp", 7, "info"): (
            "`sum` changes from torch 2.6 to torch 2.15: it has the tag `reduction` now",
            sides[1:],
        ),
        ("tile.yaml", 3, "error"): (
            "`cholesky` is not an operator of torch 2.15; remove it here; torch 2.15 has `linalg_cholesky`, `linalg_cholesky.out`",
            ["kernels.cpp", sides[0]],
        ),
    }
