from __future__ import annotations

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.aten.pack import PACK

NATIVE = """\
- func: abs(Tensor self) -> Tensor
- func: abs_(Tensor(a!) self) -> Tensor(a!)
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
- func: add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
- func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
- func: expand(Tensor(a) self, SymInt[] size) -> Tensor(a)
- func: mean.dim(Tensor self, int[1]? dim) -> Tensor
- func: max_pool2d(Tensor self, int[2] kernel_size) -> Tensor
- func: twin.a(Tensor self, int n) -> Tensor
- func: twin.b(Tensor self, *, int n) -> Tensor
"""

HEADER = """\
#pragma once
namespace torch_xla {

// at::Tensor abs_(at::Tensor& self);
class AtenXlaType {
 public:
  static void InitializeAtenBindings();
  static at::Tensor max_pool2d(const at::Tensor& self, at::IntArrayRef kernel_size);
  static at::Tensor add(const at::Tensor& self, const at::Scalar& other,
                        const at::Scalar& alpha);
  static at::Tensor& add_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out);
  static at::Tensor abs(const at::Tensor& self);
  static at::Tensor expand_symint(const at::Tensor& self, c10::SymIntArrayRef size);
};

}  // namespace torch_xla
"""

MADE = """\
backend: XLA
cpp_namespace: torch_xla
class_name: AtenXlaType
supported:
  - add.Scalar
  - add.out
  - abs
  - expand
symint:
  - expand
autograd:
  - max_pool2d
"""

OPTIONS = ["header=csrc/type.h", "backend=XLA", "autograd=max_pool2d"]


def migrate(header: str, options: list[str] | None = None, **files: str) -> Migrated:
    texts = {"native_functions.yaml": NATIVE, "csrc/type.h": header, **files}
    return migrate_files(PACK, "backend-from-header", texts, OPTIONS if options is None else options)


def declaring(*declarations: str) -> str:
    return "class AtenXlaType {\n" + "".join(f"  static {item};\n" for item in declarations) + "};\n"


def notes(*declarations: str) -> list[str]:
    found = migrate(declaring(*declarations), [*OPTIONS, "cpp-namespace=torch_xla"])
    return [item.partition(": ")[2] for item in found.notes()]


def test_a_header_becomes_a_yaml() -> None:
    done = migrate(HEADER)
    assert done.files["xla_native_functions.yaml"] == MADE
    assert done.notes() == [
        "csrc/type.h:7: no operator of `native_functions.yaml` has a kernel `InitializeAtenBindings`"
    ]


def test_sites_are_the_declarations() -> None:
    assert migrate(HEADER).sites() == [
        "csrc/type.h:8: list `max_pool2d` under `autograd` of xla_native_functions.yaml",
        "csrc/type.h:9: list `add.Scalar` under `supported` of xla_native_functions.yaml",
        "csrc/type.h:11: list `add.out` under `supported` of xla_native_functions.yaml",
        "csrc/type.h:12: list `abs` under `supported` of xla_native_functions.yaml",
        "csrc/type.h:13: list `expand` under `supported` and `symint` of xla_native_functions.yaml",
    ]


def test_a_site_that_is_left_out_is_not_listed() -> None:
    files = {"native_functions.yaml": NATIVE, "csrc/type.h": HEADER}
    done = migrate_files(PACK, "backend-from-header", files, OPTIONS, skip=["abs"])
    assert done.files["xla_native_functions.yaml"] == MADE.replace("  - abs\n", "")


def test_the_class_that_torchgen_expects_is_not_named() -> None:
    done = migrate(HEADER.replace("AtenXlaType", "XLANativeFunctions"))
    assert done.files["xla_native_functions.yaml"] == MADE.replace("class_name: AtenXlaType\n", "")


def test_a_yaml_is_completed_by_the_added_lines_alone() -> None:
    old = """\
backend: XLA
cpp_namespace: torch_xla
supported:
  # The first one.
  - add.Scalar   # why
  - mean.dim
autograd:
  - max_pool2d
"""
    done = migrate(HEADER, ["header=csrc/type.h"], **{"codegen/xla.yaml": old})
    assert (
        done.files["codegen/xla.yaml"]
        == """\
backend: XLA
cpp_namespace: torch_xla
supported:
  # The first one.
  - abs
  - add.Scalar   # why
  - add.out
  - expand
  - mean.dim
autograd:
  - max_pool2d
symint:
  - expand
"""
    )


def test_a_yaml_that_has_all_stays() -> None:
    done = migrate(HEADER, ["header=csrc/type.h"], **{"codegen/xla.yaml": MADE})
    assert done.files["codegen/xla.yaml"] == MADE
    assert done.sites() == []


def test_an_operator_that_is_generated_is_not_listed_again() -> None:
    old = "backend: XLA\ncpp_namespace: torch_xla\nfull_codegen:\n  - abs\n"
    done = migrate(declaring("at::Tensor abs(const at::Tensor& self)"), ["header=csrc/type.h"], **{"xla.yaml": old})
    assert done.files["xla.yaml"] == old


@pytest.mark.parametrize(
    ("declaration", "note"),
    [
        (
            "at::Tensor mean(const at::Tensor& self, at::IntArrayRef dim)",
            "`mean` takes `at::IntArrayRef` as `dim`, not `at::OptionalIntArrayRef`; the nearest kernel of"
            " `native_functions.yaml` is that of `mean.dim`:"
            " `at::Tensor mean(const at::Tensor & self, at::OptionalIntArrayRef dim)`",
        ),
        (
            "at::Tensor& abs(const at::Tensor& self)",
            "`abs` returns `at::Tensor&`, not `at::Tensor`; the nearest kernel of `native_functions.yaml` is that of `abs`:"
            " `at::Tensor abs(const at::Tensor & self)`",
        ),
        (
            "at::Tensor abs(const Tensors& self)",
            "`abs` has types that are not known; the nearest kernel of `native_functions.yaml` is that of `abs`:"
            " `at::Tensor abs(const at::Tensor & self)`",
        ),
        (
            "at::Tensor expand(const at::Tensor& self, c10::SymIntArrayRef size)",
            "`expand` takes `c10::SymIntArrayRef` as `size`, not `at::IntArrayRef`; the nearest kernel of"
            " `native_functions.yaml` is that of `expand`: `at::Tensor expand(const at::Tensor & self, at::IntArrayRef size)`",
        ),
        ("at::Tensor twin(const at::Tensor& self, int64_t n)", "`twin` may be the kernel of any of `twin.a`, `twin.b`"),
    ],
)
def test_what_is_not_certain_is_noted(declaration: str, note: str) -> None:
    assert notes(declaration, "at::Tensor& abs_(at::Tensor& self)") == [note]


def test_one_of_several_that_is_listed_settles_it() -> None:
    old = "backend: XLA\ncpp_namespace: torch_xla\nsupported:\n  - twin.b\n"
    header = declaring("at::Tensor twin(const at::Tensor& self, int64_t n)")
    done = migrate(header, ["header=csrc/type.h"], **{"xla.yaml": old})
    assert (done.files["xla.yaml"], done.notes()) == (old, [])


def test_what_is_compiled_conditionally_is_noted() -> None:
    header = HEADER.replace("  static at::Tensor abs(", "#ifdef FAST\n  static at::Tensor abs(").replace(
        "  static at::Tensor expand",
        "#endif\n#if 0\n  static at::Tensor& abs_(at::Tensor& self);\n#endif\n  static at::Tensor expand",
    )
    done = migrate(header)
    assert done.files["xla_native_functions.yaml"] == MADE.replace("  - abs\n", "")
    assert [item.partition(": ")[2] for item in done.notes()] == [
        "no operator of `native_functions.yaml` has a kernel `InitializeAtenBindings`",
        "`abs` is declared only where `defined(FAST)` holds",
    ]


@pytest.mark.parametrize(
    ("options", "header", "error"),
    [
        (
            ["header=csrc/typ.h", "backend=XLA"],
            HEADER,
            "-o header=csrc/typ.h: there is no such file; did you mean `csrc/type.h`?",
        ),
        (["header=csrc/type.h"], HEADER, "-o backend=: name the backend, as its dispatch key is called (`XLA`)"),
        (["header=csrc/type.h", "backend=X", "class=Other"], HEADER, "-o class=Other: the header has `AtenXlaType`"),
        (
            ["header=csrc/type.h", "backend=X", "autograd=max_pol2d"],
            HEADER,
            "-o autograd=max_pol2d: the header declares no kernel of it; did you mean `max_pool2d`?",
        ),
        (
            ["header=csrc/type.h", "backend=X"],
            "struct A { void f(); };",
            "-o header=csrc/type.h: it declares no kernel",
        ),
        (
            ["header=csrc/type.h", "backend=X"],
            declaring("T abs(int64_t n)") + declaring("T abs(int64_t n)").replace("AtenXlaType", "Second"),
            "-o header=csrc/type.h: it has several classes with kernels (`AtenXlaType`, `Second`); choose one with -o class=",
        ),
        (
            ["header=csrc/type.h", "backend=X"],
            declaring("at::Tensor abs(const at::Tensor& self)"),
            "`AtenXlaType` is in no namespace; name the kernels' one with -o cpp-namespace=",
        ),
        (
            ["header=csrc/type.h", "backend=X", "output=csrc/type.h"],
            HEADER,
            "-o output=csrc/type.h: this is not the YAML of a backend",
        ),
        (
            ["header=csrc/type.h", "backend=X", "output=../x.yaml"],
            HEADER,
            "-o output=../x.yaml: this is not a path of a YAML file in the workspace",
        ),
    ],
)
def test_options_that_do_not_fit(options: list[str], header: str, error: str) -> None:
    with pytest.raises(OpschemaError) as caught:
        migrate(header, options)
    assert str(caught.value) == error


def test_another_backend_than_that_of_the_yaml() -> None:
    with pytest.raises(OpschemaError, match=r"-o backend=HPU: xla\.yaml is that of `XLA`"):
        migrate(HEADER, ["header=csrc/type.h", "backend=HPU", "output=xla.yaml"], **{"xla.yaml": MADE})


@pytest.mark.usefixtures("no_cpp")
def test_without_a_parser_it_says_what_to_install() -> None:
    with pytest.raises(OpschemaError, match=r"-o header=csrc/type\.h: C\+\+ is not read, .* pip install"):
        migrate(HEADER)


def test_a_header_that_was_written_for_another_version() -> None:
    header = declaring("at::Tensor add(const at::Tensor& self, at::Scalar other, at::Scalar alpha)")
    done = migrate(header, [*OPTIONS, "cpp-namespace=at"])
    assert done.files["xla_native_functions.yaml"] == (
        "backend: XLA\ncpp_namespace: at\nclass_name: AtenXlaType\nsupported:\n  - add.Scalar\n"
    )
