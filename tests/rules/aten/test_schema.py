"""Faults of schemas, each at its characters."""

from __future__ import annotations

import pytest

from tests.rules.aten.entry_findings import entry, fixed, lines, linted


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            "tanh(Tensor self, int n Tensor",
            [
                "ATN201 '(': the `(` is not closed",
                "ATN201 'Tensor': a comma is missing before `Tensor`",
                "ATN201 '': `Tensor` must be followed by the argument's name, not by the end",
                "ATN201 '': the returns are missing; an operator without any says `-> ()`",
            ],
        ),
        (
            "tanh(Tensor self,, int n) => Tensor",
            ["ATN201 ',': there is nothing on one side of the comma", "ATN201 '=>': the returns follow `->`"],
        ),
        ("tanh", ["ATN201 'tanh': torchgen takes complete schemas: `name(arguments) -> returns`"]),
        ("tanh(Tensor self;) -> Tensor", ["ATN201 ';': `;` is not allowed in a schema"]),
        ("tanh(Tensor self) Tensor", ["ATN201 'Tensor': `->` must precede the returns"]),
        ("tanh(Tensor self, ...) -> Tensor", ["ATN201 '...': torchgen has no `...`"]),
        (
            "tanh(Tensor self,int  n) -> Tensor",
            ["ATN202 'int': one space belongs here", "ATN202 '  ': one space belongs here"],
        ),
        (
            "tanh(Tensor self, int[02] n=[1, 2]) -> Tensor",
            ["ATN202 '02': torchgen writes `[02]` as `[2]`", "ATN202 ' ': no space belongs here"],
        ),
        (
            "tanh(Tensor self) ->(Tensor)",
            ["ATN202 '(': one space belongs here", "ATN202 '(Tensor)': a single return is written without parentheses"],
        ),
        (
            "tanh_out(Tensor self) -> Tensor",
            ["ATN203 'tanh_out': the name `tanh_out` ends with `_out`, which is for overloads: `tanh.out`"],
        ),
        (
            "a::b::tanh(Tensor self) -> Tensor",
            ["ATN203 'a::b::tanh': `a::b::tanh` is not an operator name; its form is `ns::name.overload`"],
        ),
        (
            "tanh-x(Tensor self) -> Tensor",
            ["ATN203 'tanh-x': `tanh-x` is not an operator name; its form is `ns::name.overload`"],
        ),
        (
            "tanh.default(Tensor self) -> Tensor",
            ["ATN203 'default': `default` cannot name an overload: it is how `torch.ops` calls the overload wi…"],
        ),
        (
            "class.def(Tensor self) -> Tensor",
            ["ATN203 'class.def': `class.def` is not an operator name; `class` is a reserved word"],
        ),
        (
            "tanh(Tensor self, int class) -> Tensor",
            ["ATN201 'class': `int` must be followed by the argument's name, not by `class`, a reserved word"],
        ),
        (
            "tanh.(Tensor self) -> Tensor",
            ["ATN203 'tanh.': `tanh.` is not an operator name; its form is `ns::name.overload`"],
        ),
        ("__iand2__(Tensor self) -> Tensor", ["ATN203 '__iand2__': `__iand2__` is not an in-place operator of Python"]),
        (
            "tanh(tensor self, Optional[int] n, Dimname d) -> Tensr",
            [
                "ATN204 'tensor': no type is called `tensor`; did you mean `Tensor`?",
                "ATN204 'Optional[int]': `Optional[...]` is Python's; a schema writes `int?`",
                "ATN204 'Dimname': PyTorch has no `Dimname` any more; named tensors were removed",
                "ATN204 'Tensr': no type is called `Tensr`; did you mean `Tensor`?",
            ],
        ),
        (
            "tanh(Tensor self, double x, long y) -> Tensor",
            [
                "ATN204 'double': no type is called `double`; did you mean `float`?",
                "ATN204 'long': no type is called `long`; did you mean `SymInt` or `int`?",
            ],
        ),
        ("tanh(DimVector x) -> Tensor", ["ATN204 'DimVector': no type is called `DimVector`"]),
        (
            "tanh_(Tensor(A!) self) -> Tensor(A!)",
            [
                "ATN205 'Tensor(A!)': torchgen takes no annotation such as in `Tensor(A!)`",
                "ATN205 'Tensor(A!)': torchgen takes no annotation such as in `Tensor(A!)`",
            ],
        ),
        ("tanh(Tensor self, int(b!) n) -> Tensor", ["ATN205 'int(b!)': a value of type `int` cannot be written"]),
        (
            "tanh(Tensor(ab) self) -> Tensor",
            ["ATN205 'Tensor(ab)': torchgen takes no annotation such as in `Tensor(ab)`"],
        ),
        (
            "tanh(Tensor self) -> Tensor(a -> *)",
            ["ATN205 'Tensor(a -> *)': torchgen cannot read `Tensor(a -> *)` without a name after it"],
        ),
        (
            "tanh(Tensor self, bool f=true, int n=half, int m) -> Tensor",
            [
                "ATN206 'true': `true` is not a value of type `bool`; write `True`",
                "ATN206 'half': `half` is not a value of type `int`; a word can only be a dtype, a layout or a me…",
                "ATN206 'int m': `m` has no default and follows `f`, which has one",
            ],
        ),
        ("tanh(Tensor self, int n, *, int n) -> Tensor", ["ATN207 'n': two arguments are called `n`"]),
        ("tanh(Tensor self, *) -> Tensor", ["ATN207 '*': no argument follows `*`"]),
        (
            "tanh(Tensor self, *, int a, *, int b) -> Tensor",
            ["ATN207 '*': `*` appears twice; all arguments after the first are keyword-only"],
        ),
        (
            "tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor",
            ["ATN208 'Tensor': the out argument `out` is `Tensor(a!)` and must be returned so here"],
        ),
        (
            "tanh.out(Tensor self, *, Tensor(a!) out, int n) -> Tensor(a!)",
            ["ATN208 'int n': `n` is not written and follows the out argument `out`"],
        ),
        (
            "tanh_(Tensor self) -> Tensor",
            ["ATN208 'Tensor self': `tanh_` is in-place by its name, and no `Tensor(a!) self` is written"],
        ),
        ("tanh_(Tensor(a!) self) -> Tensor", ["ATN208 'Tensor': `tanh_` is in-place and must return `Tensor(a!)`"]),
        (
            "tanh(Tensor self, Tensor(a!) x) -> Tensor(a!)",
            ["ATN208 'Tensor(a!)': `x` is written and positional: it cannot be returned; an out argument follo…"],
        ),
        (
            "tanh(Tensor self, bool[] m) -> int[2]",
            [
                "ATN209 'bool[]': torchgen has no C++ for `bool[]`; a list of `bool` needs a size: `bool[2]`",
                "ATN209 'int[2]': torchgen has no C++ for the returned type `int[2]`",
            ],
        ),
        (
            "tanh(Tensor self) -> (Scalar?, Tensor[]?)",
            [
                "ATN209 'Scalar?': torchgen has no C++ for the returned type `Scalar?`",
                "ATN209 'Tensor[]?': torchgen has no C++ for the returned type `Tensor[]?`",
            ],
        ),
        (
            "tanh(Tensor self, __torch__.torch.classes.a.B x) -> Tensor",
            ["ATN209 '__torch__.torch.classes.a.B': torchgen has no C++ for `__torch__.torch.classes.a.B`"],
        ),
        (
            "f(int n, *, ScalarType dtype, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
            [
                "ATN138 'f': `f` takes a dtype and no tensor; a factory needs a kernel in `dispatch`, usually `Co…",
                "ATN209 'ScalarType': `dtype` of a factory is optional: `ScalarType?`",
            ],
        ),
    ],
)
def test_faults(schema: str, expected: list[str]) -> None:
    assert lines(entry("", schema)) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("tanh(Tensor self int n) -> Tensor", "tanh(Tensor self, int n) -> Tensor"),
        ("tanh(Tensor self , , int n) -> Tensor", "tanh(Tensor self, int n) -> Tensor"),
        ("tanh(Tensor self,, int n) => Tensor", "tanh(Tensor self, int n) -> Tensor"),
        ("tanh(Tensor self) Tensor", "tanh(Tensor self) -> Tensor"),
        ("tanh(Tensor self,int  n) -> Tensor", "tanh(Tensor self, int n) -> Tensor"),
        ("tanh(Tensor self, int[02] n=[1, 2]) -> Tensor", "tanh(Tensor self, int[2] n=[1,2]) -> Tensor"),
        ("tanh(Tensor self) ->(Tensor)", "tanh(Tensor self) -> Tensor"),
        ("tanh(tensor self, Optional[int] n, Dimname d) -> Tensr", "tanh(Tensor self, int? n, Dimname d) -> Tensr"),
        ("tanh(Tensor self, double x, long y) -> Tensor", "tanh(Tensor self, float x, long y) -> Tensor"),
        (
            "tanh(Tensor self, bool f=true, int n=half, int m) -> Tensor",
            "tanh(Tensor self, bool f=True, int n=half, int m) -> Tensor",
        ),
        (
            "tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor",
            "tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
        ),
    ],
)
def test_fixes(schema: str, expected: str) -> None:
    assert fixed(entry("", schema)) == entry("", expected)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "- func: >-\n    tanh(Tensor self,, int n) => Tensor\n",
            "- func: >-\n    tanh(Tensor self, int n) -> Tensor\n",
        ),
        ("- {func: tanh(Tensor self int n) -> Tensor}\n", "- {func: tanh(Tensor self int n) -> Tensor}\n"),
        ('- {func: "tanh(Tensor self int n) -> Tensor"}\n', '- {func: "tanh(Tensor self, int n) -> Tensor"}\n'),
        ("- {func: tanh(Tensor self) => Tensor}\n", "- {func: tanh(Tensor self) -> Tensor}\n"),
    ],
)
def test_fixes_in_other_styles(before: str, after: str) -> None:
    """In braces, a comma ends plain text: the fix would change what the file says."""
    assert fixed(before) == after


@pytest.mark.parametrize(
    "schema",
    [
        "tanh(Tensor self) -> Tensor Tensor",
        "tanh.Long_overload(Tensor(a) self, int[2]? n=None, *, str s='linear', float f=1e-05) -> Tensor(a)",
        "tanh(Tensor self, bool[2] m=[True,False]) -> (Tensor[] a, Tensor b)",
        "__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "tanh_check(Tensor(a!) self, Tensor(b!)[] others) -> ()",
        "mine::tanh(Tensor(a -> *) self) -> (Tensor(a)[] x, Tensor y)",
    ],
)
def test_sound_schemas(schema: str) -> None:
    assert [line for line in lines(entry("", schema)) if line.startswith("ATN20")] == []


def test_a_file_for_an_older_pytorch() -> None:
    schemas = ["a(Tensor self, Dimname dim) -> Tensor", "b(Dimname dim) -> int", "c(Dimname[] dims) -> int"]
    few, many = (linted("".join(entry("", schema) for schema in schemas[:number])) for number in (2, 3))
    assert [item.severity.value for item in few.diagnostics] == ["error"] * 2
    assert [item.severity.value for item in many.diagnostics] == ["warning"] * 3
