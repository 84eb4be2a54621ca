"""Changes of contracts: of schemas, of Python signatures and declarations, and of operators that were renamed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opschema_cli.diff.compare import Doubt, compare
from opschema_cli.diff.entries import Call, Condition, Entry, Output, Parameter, Workload
from opschema_cli.diff.model import KINDS, Unclear
from opschema_cli.source.text import Place, Span


def test_the_page_lists_every_kind() -> None:
    page = (Path(__file__).parents[2] / "docs/diff.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| (DIF\d+) \| `([\w-]+)` \| (.*) \|$", page)
    assert rows == [(kind.code, name, kind.summary) for name, kind in KINDS.items()]


def entry(schema: str, name: str = "kit::op", path: str = "ops.py", **parts: object) -> Entry:
    return Entry(name, "torchlib", schema, place=Place(path, Span(0, 0)), **parts)  # type: ignore[arg-type]


def changes(old: Entry, new: Entry) -> list[tuple[str, str, str]]:
    """The kind, the message and who is affected."""
    return [(item.kind, item.message, " ".join(item.hits)) for item in compare([old], [new]).changes]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("(Tensor x) -> Tensor", "(Tensor x) -> Tensor", []),
        (
            "(Tensor x, float eps) -> Tensor",
            "(Tensor x) -> Tensor",
            [("argument-removed", "the argument `float eps` was removed", "callers backends graphs")],
        ),
        (
            "(Tensor x) -> Tensor",
            "(Tensor x, float eps=1e-05) -> Tensor",
            [("argument-added", "the argument `float eps=1e-05` was added", "backends")],
        ),
        (
            "(Tensor x, Tensor y) -> Tensor",
            "(Tensor x, int n=1, Tensor? y=None) -> Tensor",
            [
                ("argument-added", "the argument `int n=1` was added before `y`", "callers backends graphs new-graphs"),
                ("default", "`y` now has the default `None`; it had no default", "new-graphs"),
                ("type", "`y` is now of type `Tensor?`; it was `Tensor`", "backends new-graphs"),
            ],
        ),
        (
            "(Tensor x, float eps=0.00001) -> Tensor",
            "(Tensor x, float eps=1e-5) -> Tensor",
            [],
        ),
        (
            "(Tensor x, float eps=1e-5) -> Tensor",
            "(Tensor x, float eps) -> Tensor",
            [("required", "`eps` now has no default; it had the default `1e-5`", "callers graphs new-graphs")],
        ),
        (
            "(Tensor x, int n=1) -> Tensor",
            "(Tensor x, *, int n=1) -> Tensor",
            [("keyword-only", "`n` is now keyword-only", "callers graphs new-graphs")],
        ),
        (
            "(Tensor x, Tensor(a1!) y) -> Tensor(a1!)",
            "(Tensor x, int n, Tensor(a2!) y) -> Tensor(a2!)",
            [
                ("alias", "`y` is now `Tensor(a2!)`; it was `Tensor(a1!)`", ""),
                (
                    "argument-added",
                    "the argument `int n` was added without a default",
                    "callers backends graphs new-graphs",
                ),
                ("return-alias", "the return is now `Tensor(a2!)`; it was `Tensor(a1!)`", ""),
            ],
        ),
        (
            "(Tensor(a!) x) -> Tensor(a!)",
            "(Tensor(b!) x) -> Tensor(b!)",
            [
                ("alias", "`x` is now `Tensor(b!)`; it was `Tensor(a!)`", "graphs new-graphs"),
                ("return-alias", "the return is now `Tensor(b!)`; it was `Tensor(a!)`", "graphs new-graphs"),
            ],
        ),
        (
            "(Tensor(a!) x, Tensor(b!) y) -> Tensor(a!)",
            "(Tensor(a!) x, Tensor(b!) y) -> Tensor(b!)",
            [
                (
                    "return-alias",
                    "the return is now `Tensor(b!)`; it was `Tensor(a!)`",
                    "callers semantics graphs",
                )
            ],
        ),
        (
            "(Tensor x) -> Tensor",
            "(Tensor(a!) x) -> Tensor",
            [("alias", "`x` is now `Tensor(a!)`; it was `Tensor`", "callers backends semantics graphs new-graphs")],
        ),
        (
            "(Tensor x) -> Tensor",
            "(Tensor x) -> (Tensor, Tensor)",
            [
                (
                    "returns",
                    "it now returns `Tensor, Tensor`; it returned `Tensor`",
                    "callers backends semantics graphs new-graphs",
                )
            ],
        ),
        (
            "(Tensor x, int n) -> Tensor",
            "(Tensor x, SymInt n) -> Tensor",
            [("symint", "`n` is now of type `SymInt`; it was `int`", "backends")],
        ),
    ],
)  # fmt: skip
def test_each_change_of_a_schema_says_who_is_affected(old: str, new: str, found: list[tuple[str, str, str]]) -> None:
    assert changes(entry(old), entry(new)) == found


def called(*parameters: Parameter) -> Entry:
    return entry("", calls=(Call("forward", parameters),), arguments=(Parameter("x", "Tensor", role="input"),))


def test_a_call_of_a_class_must_stay_valid() -> None:
    x, dim, eps = Parameter("x"), Parameter("dim", default="-1"), Parameter("eps", default="1e-5", kind="kwonly")
    old = called(x, dim, eps)
    assert changes(old, called(x, dim, Parameter("eps", default="0.00001", kind="kwonly"))) == []
    assert changes(old, called(x, dim, eps, Parameter("out", default="None"))) == [
        ("argument-added", "`forward()`: the argument `out` was added", "")
    ]
    assert changes(old, called(x, Parameter("axis", default="-1"), eps)) == [
        ("argument-renamed", "`forward()`: the argument `dim` is now called `axis`", "callers")
    ]
    assert changes(old, called(x, Parameter("dim"), eps)) == [
        ("required", "`forward()`: `dim` is now required; it had the default `-1`", "callers")
    ]
    assert changes(old, called(x, Parameter("kwargs", kind="kwarg"), Parameter("args", kind="vararg"))) == [
        ("argument-removed", "`forward()`: the argument `dim` was removed", ""),
        ("argument-removed", "`forward()`: the argument `eps` was removed", ""),
    ]
    anything = called(Parameter("args", kind="vararg"), Parameter("kwargs", kind="kwarg"))
    assert all(not hits for _, _, hits in changes(anything, old))  # it may always have needed these arguments
    assert changes(old, called(x, Parameter("dim", default="LAST"), eps)) == [
        ("default", "`forward()`: `dim` now has the default `LAST`; it had the default `-1`", "")  # LAST may be -1
    ]
    half = called(Parameter("dtype", default="torch.half"))
    assert changes(half, called(Parameter("dtype", default="torch.float16"))) == []
    for default in ("None", "torch.bfloat16"):
        found = changes(half, called(Parameter("dtype", default=default)))
        assert [(kind, hits) for kind, _, hits in found] == [("default", "callers")]


def test_dtypes_shapes_and_workloads_of_a_declaration() -> None:
    def declared(*dtypes: str, shape: str = "[M, N]") -> Entry:
        argument = Parameter("x", "|".join(dtypes), role="input", dtypes=dtypes, shape=shape)
        return entry("", arguments=(argument,), returns=(Output("y", "same_as(x)", dtypes, shape),))

    assert changes(declared("float16", "bfloat16"), declared("float16")) == [
        ("dtypes", "`x` does not take `bfloat16` any more", "callers"),
        ("dtypes", "the return `y` is not returned as `bfloat16` any more", "semantics"),
    ]
    assert changes(declared("float16"), declared("float16", shape="[M,N]")) == []
    assert changes(declared("float16"), declared("float16", shape="[N]"))[0][2] == "semantics"


def ruled(*rules: str, shape: str = "", combinations: tuple[str, ...] = (), result: str = "y") -> Entry:
    arguments = (Parameter("x", role="input", shape=shape), Parameter("n", role="param"), Parameter("w", role="input"))
    conditions, dtypes = ([Condition(rule) for rule in items] for items in (rules, combinations))
    return entry(
        "", arguments=arguments, returns=(Output(result),), constraints=tuple(conditions), combinations=tuple(dtypes)
    )


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (ruled("x.ndim == 2", "n>0 and n < 9"), ruled("9 > n", "(0 < n)", "2 == x.ndim"), []),
        (ruled("x.shape == (M, N)", "w.shape == (N,)"), ruled("x.shape == [A, B]", "w.shape == (B,)"), []),
        (  # the same in other words
            ruled("x.shape == (M, N)", "w.shape == (N, 2 * M)"),
            ruled("w.ndim == x.ndim == 2", "w.shape[0] == x.shape[1] and w.shape[1] == 2 * x.shape[0]"),
            [
                ("the declaration now states `w.ndim == x.ndim`", ""),
                ("the declaration now states `2 == x.ndim`", ""),
                ("the declaration now states `w.shape[0] == x.shape[1]`", ""),
                ("the declaration now states `2 * x.shape[0] == w.shape[1]`", ""),
            ],
        ),
        (
            ruled("x.shape == (M, N)", "w.shape == (N,)"),
            ruled("x.shape == (M, N)", "w.shape == (M,)"),  # the first size is not the second one
            [("the declaration now states `w.shape == (M,)`; it was `w.shape == (N,)`", "semantics")],
        ),
        (
            ruled("n > 0"), ruled("n > 0", "x.shape[0] % 8 == 0"),
            [("calls must now satisfy `x.shape[0] % 8 == 0`", "callers")],
        ),
        (ruled("n > 0"), ruled(), [("calls need not satisfy `n > 0` any more", "")]),
        (
            ruled("n % 16 == 0"), ruled("n % 8 == 0"),
            [("the declaration now states `n % 8 == 0`; it was `n % 16 == 0`", "")],
        ),
        (
            ruled("n % 8 == 0"), ruled("n % 16 == 0"),
            [("calls must now satisfy `n % 16 == 0`; it was `n % 8 == 0`", "callers")],
        ),
        (
            ruled("n in (1, 2)"), ruled("n in (2, 3, 1)"),
            [("the declaration now states `n in (2, 3, 1)`; it was `n in (1, 2)`", "")],
        ),
        (
            ruled(shape="[M, N]"), ruled("x.ndim == 2", shape="[M, N]"),
            [("the declaration now states `x.ndim == 2`", "")],
        ),
        (
            ruled("n > 0"), ruled("n > 0", "z is None or z.ndim == 1"),
            [("the declaration now states `z is None or z.ndim == 1`", "")],
        ),
        (
            ruled("y.shape == x.shape"), ruled(),
            [("the declaration does not state `y.shape == x.shape` any more", "semantics")],
        ),
        (
            ruled("y.shape == x.shape", "n > 0"), ruled("n > 1", "x.shape == out.shape", result="out"),
            [
                ("calls must now satisfy `n > 1`; it was `n > 0`", "callers"),
                ("the return `y` is now called `out`", "semantics"),
            ],
        ),
        (
            ruled(combinations=("`w: int8`, `x: float16`", "`w: int8`, `x: float32`")),
            ruled(combinations=("`w: int8`, `x: float16`",)),
            [("it does not take the dtypes `w: int8`, `x: float32` together any more", "callers")],
        ),
    ],
)  # fmt: skip
def test_conditions_are_compared_by_their_meaning(old: Entry, new: Entry, found: list[tuple[str, str]]) -> None:
    assert sorted(item[1:] for item in changes(old, new)) == sorted(found)


def test_known_ranks_relate_equal_shapes_and_places_counted_from_the_end() -> None:
    def hits(old: Entry, new: Entry) -> set[str]:
        return {found for _, _, found in changes(old, new)}

    old = ruled("x.shape == (M, N)", "w.shape == (N,)", "z.shape == (N,)", "N % 2 == 0")
    new = ruled("x.ndim == 2", "w.ndim == 1", "z.shape == w.shape", "w.shape[0] == x.shape[-1]", "x.shape[-1] % 2 == 0")
    assert hits(old, new) == {""}
    assert hits(new, ruled("x.ndim == 2", "z.ndim == 1", "x.shape[1] % 2 == 0", "x.shape[-1] == z.shape[0]")) == {""}
    assert hits(ruled("w.ndim == 1"), ruled("w.ndim == 1", "x.shape == w.shape")) == {"callers"}
    assert hits(ruled("x.ndim == 3", "x.shape[1] % 2 == 0"), ruled("x.ndim == 3", "x.shape[-1] % 2 == 0")) != {""}
    assert hits(ruled("n > 0"), ruled("n > 0", "x.shape[-1] % 2 == 0")) == {"callers"}  # its rank is not known


def test_removed_workloads_and_those_that_were_only_renamed() -> None:
    def rows(*items: Workload) -> Entry:
        return entry("", workloads=items)

    small = Workload("small", ("float16", "float32"), {"x_shape": "[4, 8]"})
    large = Workload("", ("float16",), {"x_shape": "[64, 64]"})
    renamed = Workload("tiny", ("float32", "float16"), {"x_shape": "[4,8]"})
    assert changes(rows(small, large), rows(renamed, large)) == []
    assert [item[1:] for item in changes(rows(small, large), rows(Workload("small", ("float16",), small.values)))] == [
        ("no workload has `float32` any more", "semantics"),
        ("the workload `x_shape: [64, 64]` was removed", "semantics"),
    ]


def test_an_operator_of_another_name_is_renamed_if_nothing_else_fits() -> None:
    one, two = "(Tensor x) -> Tensor", "(Tensor x, int n) -> Tensor"
    result = compare([entry(one, "top::a"), entry(two, "top::b")], [entry(two, "kit::b"), entry(one, "top::c")])
    assert [(item.kind, item.message) for item in result.changes] == [
        ("operator-renamed", "`top::a` is now called `top::c`"),
        ("operator-renamed", "`top::b` is now called `kit::b`"),
    ]
    keys = [entry("", name, "ops.yaml", symbol="AddOp", arguments=(Parameter("x"),)) for name in ("add", "AddOp")]
    assert [(item.message, item.hits) for item in compare(keys[:1], keys[1:]).changes] == [
        ("`add` is now called `AddOp`; its class is still `AddOp`", ("semantics",))
    ]
    result = compare([entry(one, "top::a")], [entry(one, "top::c"), entry(one, "top::d")])
    assert {item.kind for item in result.changes} == {"operator-removed", "operator-added"}


def test_names_that_include_a_file_may_change() -> None:
    def kernel(name: str, path: str) -> Entry:
        parameter = Parameter("tensor 0", "IN")
        return Entry(
            name, "pypto", arguments=(parameter,), aliases=("T:0", f"{path}:T:0"), place=Place(path, Span(0, 0))
        )

    old = [kernel("T:0", "a.py")]
    found = compare(old, [kernel("b.py:T:0", "b.py"), kernel("a.py:T:0", "a.py")]).changes
    assert [item.kind for item in found] == ["operator-added"]
    assert compare(old, [kernel("moved.py:T:0", "moved.py")]).changes == ()
    before = [kernel(f"{folder}/a.py:T:0", f"{folder}/a.py") for folder in ("one", "two")]
    after = [kernel(f"{folder}/b.py:T:0", f"{folder}/b.py") for folder in ("two", "one")]
    assert compare(before, after).changes == ()
    before = [kernel(f"st/{arch}/dma/a.py:T:0", f"st/{arch}/dma/a.py") for arch in ("one", "two")]
    after = [kernel(f"st/{arch}/copy/b.py:T:0", f"st/{arch}/copy/b.py") for arch in ("two", "one")]
    assert compare(before, after).changes == ()  # in each of two folders, one is renamed
    others = [kernel(f"st/one/{name}/b.py:T:0", f"st/one/{name}/b.py") for name in ("copy", "move")]
    assert sorted(item.kind for item in compare(before[:1], others).changes) == [
        "operator-added",
        "operator-added",
        "operator-removed",
    ]  # it may be either


def test_what_is_not_known_is_never_a_change() -> None:
    old = entry("(Tensor x) -> Tensor")
    for new in (entry("(? x) -> Tensor"), entry("", unknown=("declaration",))):
        result = compare([old], [new])
        assert (result.changes, len(result.unclear)) == ((), 1)
    nameless = entry("(Tensor x) -> Tensor", "?", unknown=("name",))
    assert compare([old], [nameless]).changes == ()
    assert compare([old, nameless], [nameless]).changes[0].kind == "operator-removed"
    other = entry("(Tensor x, int n) -> Tensor", "?", unknown=("name",))
    assert compare([old], [other]).changes[0].kind == "operator-removed"  # it is another operator
    doubt = Doubt(still_there=lambda item: f"a.cpp has its name {item.name}")
    assert compare([old], [], doubt).unclear == (
        Unclear("kit::op", "`kit::op` is not found on the new side, but a.cpp has its name kit::op", old.place),
    )


def test_operators_that_share_a_name_correspond_by_their_contract() -> None:
    one, two, three = (entry(f"(Tensor x{rest}) -> Tensor") for rest in ("", ", int n", ", float n"))
    assert compare([one, two], [two, one]).changes == ()
    assert [item.kind for item in compare([one, two], [three, one]).changes] == ["type"]
    assert compare([one, two], [one]).unclear[0].reason == "2 operators had the name `kit::op`, and 1 has it now"
    assert compare([one, one], [one]) == compare([one], [one])  # it was declared twice, as in a linked file


def test_a_planned_operator_promises_nothing() -> None:
    old = entry("", arguments=(Parameter("x", role="input"),), planned=True)
    new = entry("", arguments=(Parameter("y", role="param"),))
    assert all(not hits for _, _, hits in changes(old, new))
    assert [item.hits for item in compare([old], []).changes] == [("semantics",)]


def test_a_declaration_that_is_not_implemented_any_more_narrows_no_call() -> None:
    def declared(dtypes: tuple[str, ...], *rules: str, planned: bool = False, **parts: object) -> Entry:
        conditions = tuple(map(Condition, rules))
        x = Parameter("x", role="input", dtypes=dtypes)
        return entry("", arguments=(x,), constraints=conditions, planned=planned, **parts)

    old = declared(("float16", "float32"))
    found = [
        ("constraint", "calls must now satisfy `x.ndim == 2`"),
        ("dtypes", "`x` does not take `float32` any more"),
    ]
    for planned, hit in ((False, "callers"), (True, "semantics")):
        new = declared(("float16",), "x.ndim == 2", planned=planned)
        assert changes(old, new) == [(kind, message, hit) for kind, message in found]
    call, longer = (Call("forward", tuple(map(Parameter, names))) for names in ("x", "xy"))
    found_call = changes(declared((), calls=(call,)), declared((), calls=(longer,), planned=True))
    assert [hits for _, _, hits in found_call] == ["callers"]  # the code is there


def test_operators_of_an_installed_package_are_not_removed() -> None:
    """They are known from the kernels that the tree registers and the backends that list them."""
    old = entry(
        "(Tensor x) -> Tensor", "aten::a", foreign=True, backends=("XLA",), keys={"fake": ("*",)}, tags=("core",)
    )
    new = entry("(Tensor x) -> Tensor", "aten::b", foreign=True, keys={"kernel": ("CPU",)})
    assert [(item.kind, item.operator, item.message, item.hits) for item in compare([old], [new]).changes] == [
        ("backend", "aten::a", "`XLA` does not list it any more", ("backends",)),
        ("fake", "aten::a", "it has no fake (meta) kernel any more", ("semantics",)),
        ("kernel-keys", "aten::b", "it now has a kernel for `CPU`", ()),
    ]


def test_kernels_fakes_and_tags() -> None:
    old = entry("", keys={"kernel": ("CPU", "CUDA"), "fake": ("*",)}, tags=("pt2_compliant_tag",))
    assert changes(old, entry("", keys={"kernel": ("CPU",)})) == [
        ("fake", "it has no fake (meta) kernel any more", "semantics"),
        ("kernel-keys", "it has no kernel for `CUDA` any more", "backends"),
        ("tag", "it does not have the tag `pt2_compliant_tag` any more", "semantics"),
    ]
    assert changes(old, entry("", keys={"kernel": ("*",), "fake": ("*",)}, tags=old.tags)) == []
