"""Overloads that Python cannot tell apart."""

from __future__ import annotations

import pytest

from tests.rules.aten.native_findings import lines

OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def entries(*schemas: str, field: str = "") -> str:
    """An entry for each schema, with a kernel of its own."""
    kernels = [f"{schema.partition('(')[0].replace('.', '_')}_kernel" for schema in schemas]
    parts = (
        f"- func: {schema}\n{field}  dispatch:\n    CPU: {item}\n"
        for schema, item in zip(schemas, kernels, strict=True)
    )
    return "".join(parts)


@pytest.mark.parametrize(
    "schemas",
    [
        ("f(Tensor self) -> Tensor", "f.two(Tensor self) -> (Tensor, Tensor)"),
        ("f(Tensor self) -> Tensor", "f.two(Tensor input) -> Tensor"),
        ("f(Tensor x, Tensor m) -> (Tensor, Tensor)", "f.two(Tensor x, Tensor(a!) m) -> (Tensor, Tensor)"),
    ],
)
def test_overloads_that_clash(schemas: tuple[str, str]) -> None:
    assert [line for line in lines(entries(*schemas)) if line.startswith("ATN36")] == ["ATN361 4:f.two <- 1:f"]


@pytest.mark.parametrize(
    "text",
    [
        entries("f(Tensor self) -> Tensor", "f.two(Tensor self, int n=0) -> (Tensor, Tensor)"),
        entries("f_backward(Tensor self) -> Tensor", "f_backward.two(Tensor self) -> (Tensor, Tensor)"),
        entries("f(Tensor self) -> Tensor", field="  python_module: nn\n")
        + entries("f.two(Tensor self) -> (Tensor, Tensor)", field="  python_module: fft\n"),
        entries("f(Tensor self) -> Tensor", field="  variants: method\n")
        + entries("f.two(Tensor self) -> (Tensor, Tensor)"),
        entries("f(int n) -> Tensor", "f.two(int n) -> int[]", field="  python_module: elsewhere\n"),
    ],
)
def test_overloads_that_do_not_clash(text: str) -> None:
    assert [line for line in lines(text) if line.startswith("ATN36")] == []


def test_methods_clash_in_what_follows_self() -> None:
    text = entries(
        "f(Tensor self, int n) -> Tensor", "f.two(int n, Tensor self) -> Tensor", field="  variants: method\n"
    )
    assert lines(text) == ["ATN361 5:f.two <- 1:f"]


def test_an_out_variant_in_another_module() -> None:
    text = entries("f(int n) -> Tensor", field="  python_module: nn\n")
    text += entries("f.out(int n, *, Tensor(a!) out) -> Tensor(a!)")
    assert lines(text) == ["ATN362 5:f.out <- 1:f"]


def test_an_out_variant_of_a_method() -> None:
    text = entries("f(Tensor self) -> Tensor", field="  variants: method\n")
    text += entries("f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
    assert lines(text) == ["ATN362 5:f.out <- 1:f"]


def test_the_out_variant_of_a_factory_has_no_options() -> None:
    text = entries(f"f(int n, *, {OPTIONS}) -> Tensor", "f.out(int n, *, Tensor(a!) out) -> Tensor(a!)")
    assert lines(text) == []


def test_a_composite_out_variant_with_other_arguments() -> None:
    text = "- func: f(int n) -> Tensor\n- func: f.out(int n, int m, *, Tensor(a!) out) -> Tensor(a!)\n"
    assert lines(text) == ["ATN311 2:int m <- 1:f"]
    assert lines(text.replace("f.out", "g.out")) == ["ATN362 2:g.out"]


def test_a_functional_variant_that_is_generated_has_no_binding() -> None:
    text = "- func: f_(Tensor(a!) self) -> Tensor(a!)\n  dispatch:\n    CPU: f_\n  autogen: f\n"
    text += entries("f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")
    assert lines(text) == ["ATN362 5:f.out"]


def test_a_composite_functional_variant_with_a_misspelt_name() -> None:
    text = "- func: concat(Tensor[] tensors) -> Tensor\n- func: concat.out(Tensor[] tensors, *, Tensor(a!) out) -> Tensor(a!)\n"
    assert lines(text) == []
    assert lines(text.replace("concat(", "conat(")) == ["ATN311 2:concat.out <- 1:conat"]


@pytest.mark.parametrize(
    "field", ["variants: functoin", "variants: [function]", "python_module: 3", "category_override: {}"]
)
def test_malformed_fields_of_the_functional_variant_are_told_elsewhere(field: str) -> None:
    text = entries("f(Tensor self) -> Tensor", field=f"  {field}\n")
    assert lines(text + entries("f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")) == []


def test_a_functional_variant_that_is_tagged_as_generated() -> None:
    text = entries("f(Tensor self) -> Tensor", field="  tags: generated\n")
    assert lines(text + entries("f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)")) == ["ATN306 2:generated"]
