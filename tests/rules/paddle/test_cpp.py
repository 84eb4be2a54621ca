"""C++ functions that look as if they did not fit, and do; and those that do not."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.paddle.cpp_types import shown_type
from opschema_rules.paddle.pack import PACK

OP = """\
- op : half
  args : (Tensor x, Tensor mask, int axis, bool exact)
  output : Tensor(out)
  infer_meta : {func : UnchangedInferMeta, param : [x]}
  kernel : {func : half}
  optional : mask
"""

KERNEL = """\
namespace phi {
void UnchangedInferMeta(const MetaTensor& x, MetaTensor* out);
template <typename T, typename Context>
void HalfKernel(const Context& ctx, const DenseTensor& x, const paddle::optional<DenseTensor>& mask, int axis, bool exact,
                DenseTensor* out) {}
}
PD_REGISTER_KERNEL(half, CPU, ALL_LAYOUT, phi::HalfKernel, float) {}
"""


def found(yaml: str, cpp: str, path: str = "ops.yaml") -> list[str]:
    return [item.message for item in lint_files(PACK, {path: yaml, "half.cc": cpp}).diagnostics]


def test_a_kernel_that_fits() -> None:
    assert found(OP, KERNEL) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("int axis", "int64_t axis", "takes `int64_t axis`, but `axis` (int) is passed"),
        ("bool exact", "const Scalar& exact", "takes `const Scalar& exact`, but `exact` (bool) is passed"),
        ("paddle::optional<DenseTensor>& mask", "DenseTensor& mask", "`mask` (optional Tensor) is passed"),
        (
            ", bool exact",
            "",
            "takes 4 arguments after the context, but 5 are passed; the first difference is at `exact`",
        ),
        ("DenseTensor* out)", "DenseTensor* out, DenseTensor* rest)", "takes 6 arguments after the context"),
        ("DenseTensor* out)", "std::vector<DenseTensor*> out)", "but `out` (output Tensor) is passed"),
    ],
)
def test_a_call_through_a_pointer_is_exact(old: str, new: str, words: str) -> None:
    (message,) = found(OP, KERNEL.replace(old, new))
    assert words in message


@pytest.mark.parametrize(
    ("yaml", "cpp"), [("long", "int64_t"), ("int", "int32_t"), ("int64_t", "long"), ("size_t", "size_t")]
)
def test_names_of_one_type(yaml: str, cpp: str) -> None:
    assert found(OP.replace("int axis", f"{yaml} axis"), KERNEL.replace("int axis", f"{cpp} axis")) == []


@pytest.mark.parametrize("cpp", ["long", "size_t"])
def test_numbers_of_other_types(cpp: str) -> None:
    assert found(OP, KERNEL.replace("int axis", f"{cpp} axis")) == [
        f"`HalfKernel()` takes `{cpp} axis`, but `axis` (int) is passed (the kernel `half` of `half`)"
    ]


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        (", bool exact", "", 0),
        ("paddle::optional<DenseTensor>& mask", "DenseTensor& mask", 0),
        ("const paddle::optional<DenseTensor>& mask, ", "", 0),
        ("int axis", "float axis", 1),
        ("int axis, bool exact", "bool exact, int axis", 1),
        ("bool exact", "bool exact, int more", 1),
    ],
)
def test_a_context_is_read_by_number(old: str, new: str, messages: int) -> None:
    assert len(found(OP, KERNEL.replace(old, new), "inconsistent/static_ops.yaml")) == messages


@pytest.mark.parametrize(
    "cpp",
    [
        KERNEL.replace("{}\n}", "{}\ntemplate <typename T>\nvoid HalfKernel(int axis) {}\n}"),
        KERNEL.replace("const Context& ctx, ", "OP_PARAMETERS"),
        KERNEL.replace("int axis, bool exact", "MY_INT axis, MY_BOOL exact"),
        KERNEL.replace("phi::HalfKernel", "phi::gpu::HalfKernel").replace("int axis", "float axis"),
        KERNEL.replace("int axis", "const int axis /* the axis */").replace("bool exact", "bool exact UNUSED"),
        "#if 0\n" + KERNEL.replace("int axis", "float axis") + "#endif\n" + KERNEL,
    ],
)
def test_other_functions_and_what_is_not_understood(cpp: str) -> None:
    assert found(OP, cpp) == []


def test_functions_for_shapes_convert_numbers() -> None:
    yaml = OP.replace("param : [x]", "param : [x, axis]")
    cpp = KERNEL.replace("MetaTensor& x, ", "MetaTensor& x, const Scalar& axis, ")
    assert found(yaml, cpp) == []
    assert found(yaml, cpp.replace("const Scalar& axis", "const std::string& axis")) == [
        "`UnchangedInferMeta()` takes `const std::string& axis`, but `axis` (int) is passed (`infer_meta` of `half`)"
    ]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("const phi::DenseTensor &", "DenseTensor"),
        ("const paddle::optional<std::vector<const phi::DenseTensor*>>&", "optional list of DenseTensor"),
        ("std::vector<DenseTensor *>", "output list of DenseTensor"),
        ("const std::vector<std::string>&", "str[]"),
        ("const int", "int"),
        ("int32_t", "int"),
        ("long", "int64_t"),
        ("std::size_t", "size_t"),
        ("const phi::Place&", "Place"),
        ("const T*", None),
    ],
)
def test_types(written: str, shown: str | None) -> None:
    assert shown_type(written) == shown
