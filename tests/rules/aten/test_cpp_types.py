from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.aten.cpp_types import Convention, kernel_signature, operator_kernel
from opschema_rules.aten.generated import functions_of
from opschema_rules.aten.model import Function
from opschema_rules.aten.native import read_native

if TYPE_CHECKING:
    from torchgen.model import NativeFunction


def functions(text: str) -> Mapping[str, Function]:
    file = Project(Workspace(Path(), {"native_functions.yaml": text})).yaml("native_functions.yaml")
    assert file is not None
    return functions_of(read_native(file, None))


def signature(schema: str, *, symint: bool = False, fields: str = "") -> str:
    (function,) = (item for item in functions(f"- func: {schema}\n{fields}").values() if not item.generated)
    return str(kernel_signature(function, symint=symint))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("relu(Tensor self) -> Tensor", "at::Tensor relu(const at::Tensor & self)"),
        ("relu_(Tensor(a!) self) -> Tensor(a!)", "at::Tensor & relu_(at::Tensor & self)"),
        (
            "add.out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
            "at::Tensor & add_out(const at::Tensor & self, const at::Scalar & other, at::Tensor & out)",
        ),
        (
            "clamp(Tensor self, Scalar? min=None) -> Tensor",
            "at::Tensor clamp(const at::Tensor & self, const ::std::optional<at::Scalar> & min)",
        ),
        (
            "mean.dim(Tensor self, int[1]? dim, *, ScalarType? dtype=None) -> Tensor",
            "at::Tensor mean(const at::Tensor & self, at::OptionalIntArrayRef dim, ::std::optional<at::ScalarType> dtype)",
        ),
        ("sizes(Tensor self) -> SymInt[]", "::std::vector<c10::SymInt> sizes(const at::Tensor & self)"),
        (
            "both(Tensor[] xs, Tensor?[] ys) -> (Tensor, Scalar)",
            "::std::tuple<at::Tensor,at::Scalar> both(at::TensorList xs, const c10::List<::std::optional<at::Tensor>> & ys)",
        ),
        ("mask(bool[3] mask) -> ()", "void mask(::std::array<bool,3> mask)"),
    ],
)
def test_a_schema_as_cpp(schema: str, expected: str) -> None:
    assert signature(schema) == expected


def test_a_kernel_that_takes_symint() -> None:
    schema = "expand(Tensor(a) self, SymInt[] size, *, SymInt? n=None) -> Tensor(a)"
    assert (
        signature(schema)
        == "at::Tensor expand(const at::Tensor & self, at::IntArrayRef size, ::std::optional<int64_t> n)"
    )
    assert signature(schema, symint=True) == (
        "at::Tensor expand_symint(const at::Tensor & self, c10::SymIntArrayRef size, ::std::optional<c10::SymInt> n)"
    )


def test_fields_of_the_entry_that_change_types() -> None:
    assert signature("cat(Tensor[] xs) -> Tensor", fields="  structured_delegate: cat.out\n") == (
        "at::Tensor cat(const at::ITensorListRef & xs)"
    )
    assert signature("f_(Tensor(a!) self) -> Tensor(a!)", fields="  use_const_ref_for_mutable_tensors: True\n") == (
        "const at::Tensor & f_(const at::Tensor & self)"
    )


@pytest.mark.parametrize("schema", ["f(bool[] x) -> Tensor", "f(Tensor x) -> Scalar?", "f(Tensor x) -> Tensor[2]"])
def test_what_torchgen_does_not_write(schema: str) -> None:
    assert signature(schema) == "None"


def test_only_an_operator_with_symint_has_two_kernels() -> None:
    found = functions("- func: relu(Tensor self) -> Tensor\n- func: view(Tensor(a) self, SymInt[] size) -> Tensor(a)\n")
    assert operator_kernel(found["relu"]).symint is None
    assert [item.name for item in operator_kernel(found["view"]).signatures] == ["view", "view_symint"]


def test_all_of_torch_as_torchgen_writes_it() -> None:
    pytest.importorskip("torchgen")
    found = dict(_of_torchgen())
    ours = functions(_folder().joinpath("native_functions.yaml").read_text())
    assert len(found) > 3_000
    assert found.keys() == ours.keys()
    wrong = {
        name: (kinds[kind], _ours(ours[name], *kind))
        for name, kinds in found.items()
        for kind in kinds
        if kinds[kind] != _ours(ours[name], *kind)
    }
    assert wrong == {}


Kind = tuple[Convention, bool]


def _ours(function: Function, convention: Convention, symint: bool) -> str:
    return str(kernel_signature(function, symint=symint, convention=convention))


def _folder() -> Path:
    import torchgen

    return Path(torchgen.__file__).parent / "packaged/ATen/native"


def _of_torchgen() -> Iterator[tuple[str, dict[Kind, str]]]:
    """Each function of the installed torch, and the signatures of its kernel by convention and whether it takes SymInt."""
    from torchgen.gen import parse_native_yaml

    parsed = parse_native_yaml(str(_folder() / "native_functions.yaml"), str(_folder() / "tags.yaml"))
    for function in parsed.native_functions:
        yield (
            str(function.func.name),
            {
                (convention, symint): _theirs(function, convention, symint)
                for convention in ("dispatcher", "native")
                for symint in (False, True)
            },
        )


def _theirs(function: NativeFunction, convention: Convention, symint: bool) -> str:
    from torchgen.api import dispatcher
    from torchgen.api.types import DispatcherSignature, NativeSignature
    from torchgen.context import native_function_manager

    with native_function_manager(function):
        kind = DispatcherSignature if convention == "dispatcher" else NativeSignature
        written = kind(function.func, symint=symint)
        parameters = ", ".join(f"{item.type} {item.name}" for item in written.arguments())
        # As `gen_backend_stubs.create_backend_index` names it.
        name = dispatcher.name(function.func) + ("_symint" if symint else "")
        return f"{written.returns_type().cpp_type()} {name}({parameters})"
