from __future__ import annotations

import pytest

from opschema_cli.schema.cpp_spelling import spelling


@pytest.mark.parametrize(
    ("written", "other"),
    [
        ("const at::Tensor&", "const at::Tensor &"),
        ("at::Tensor const&", "const ::at::Tensor &"),
        ("Tensor &", "torch::Tensor&"),
        ("at::IntList", "at::IntArrayRef"),
        ("c10::ArrayRef<int64_t>", "IntArrayRef"),
        ("at::ArrayRef<at::Tensor>", "at::TensorList"),
        ("c10::optional<at::Tensor>", "::std::optional<at::Tensor>"),
        ("c10::optional<at::IntArrayRef>", "at::OptionalIntArrayRef"),
        ("c10::OptionalArrayRef<c10::SymInt>", "at::OptionalSymIntArrayRef"),
        ("const c10::List<c10::optional<at::Tensor> >&", "const c10::List<::std::optional<at::Tensor>> &"),
        ("const int64_t", "int64_t"),
        ("std::tuple<Tensor, Tensor>", "::std::tuple<at::Tensor,at::Tensor>"),
        ("[[maybe_unused]] bool /* unused */", "bool"),
        ("std::string_view", "c10::string_view"),
        ("int", "int32_t"),
        ("short", "std::int16_t"),
        ("unsigned int", "uint32_t"),
        ("unsigned", "unsigned int"),
        ("size_t", "uint64_t"),
    ],
)
def test_the_same_type(written: str, other: str) -> None:
    assert spelling(written) is not None
    assert spelling(written) == spelling(other)


@pytest.mark.parametrize(
    ("written", "other"),
    [
        ("at::Tensor", "const at::Tensor &"),
        ("at::Tensor &", "const at::Tensor &"),
        ("c10::SymInt", "int64_t"),
        ("at::OptionalIntArrayRef", "at::IntArrayRef"),
        ("const at::Scalar &", "const ::std::optional<at::Scalar> &"),
        ("at::TensorList", "const at::ITensorListRef &"),
        ("std::array<bool,2>", "std::array<bool,3>"),
        ("float", "double"),
        ("int", "int64_t"),
        ("unsigned", "int"),
        ("char", "int8_t"),
        ("long long", "int64_t"),
    ],
)
def test_another_type(written: str, other: str) -> None:
    assert spelling(written) is not None
    assert spelling(written) != spelling(other)


@pytest.mark.parametrize(
    ("written", "other"),
    [
        ("at::Scalar", "const at::Scalar &"),
        ("at::TensorList", "const at::ITensorListRef &"),
        ("c10::optional<std::string>", "::std::optional<c10::string_view>"),
    ],
)
def test_what_other_versions_of_torch_wrote(written: str, other: str) -> None:
    assert spelling(written) != spelling(other)
    assert spelling(written, any_version=True) == spelling(other, any_version=True)


@pytest.mark.parametrize(
    "written",
    [
        *("", "<", "const", "at::", "Tensor x[3]", "xla::Tensor", "TENSOR", "std::vector<Tensors>", "std::optional<"),
        *("at::Tensor,", "decltype(x)", "Tensor...", "tuple<" * 5_000),
    ],
)
def test_what_is_not_known_has_no_spelling(written: str) -> None:
    assert spelling(written) is None
