"""Schema strings: what is read, every fault at its place, and the verdicts of torch's own two parsers."""

from __future__ import annotations

import random
import re
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from opschema_cli.schema.operator_schema import AliasInfo, OperatorSchema, Return, SchemaType
from opschema_cli.schema.schema_string import MAX_LENGTH, Dialect, ParsedSchema, parse_schema
from opschema_cli.schema.schema_tokens import SchemaError
from opschema_cli.source.text import Span

DIALECTS: tuple[Dialect, ...] = ("dispatcher", "torchgen")


def read(text: str, dialect: Dialect = "dispatcher") -> OperatorSchema:
    parsed = parse_schema(text, dialect)
    assert parsed.errors == ()
    assert parsed.schema is not None
    return parsed.schema


def faults(text: str, dialect: Dialect = "dispatcher") -> list[str]:
    """Kind and place of every fault; those that torch lets pass have a `?`."""
    return [
        f"{error.kind}{'' if error.refused else '?'} {text[slice(*error.span)]}"
        for error in parse_schema(text, dialect).errors
    ]


def mended(text: str, error: SchemaError) -> str:
    assert error.edit is not None
    return text[: error.edit.span.start] + error.edit.replacement + text[error.edit.span.end :]


# -- what is read ------------------------------------------------------------------------------------------------------


def test_a_schema_is_read_with_its_places() -> None:
    text = "my::op.out(Tensor x, int[2] size=[1, 2], *, Tensor(a!)? out) -> Tensor(a!) y"
    schema = read(text)
    assert (schema.namespace, schema.name, schema.overload) == ("my", "op", "out")
    assert schema.qualified_name == text[slice(*schema.name_span)] == "my::op.out"
    x, size, out = schema.arguments
    assert (x.type, x.default, x.kwarg_only) == (SchemaType("Tensor"), None, False)
    assert (size.type.size, size.type.inner, size.default) == (2, SchemaType("int"), "[1, 2]")
    assert text[slice(*size.span)] == "int[2] size=[1, 2]"
    assert size.default_span is not None
    assert text[slice(*size.default_span)] == "[1, 2]"
    assert (out.alias, out.is_write, out.kwarg_only) == (AliasInfo(("a",), write=True), True, True)
    assert [text[slice(*span)] for span in (out.type_span, out.name_span)] == ["Tensor(a!)?", "out"]
    assert (schema.returns[0].name, text[slice(*schema.returns[0].type_span)]) == ("y", "Tensor(a!)")
    assert (schema.positional, schema.kwarg_only, schema.mutated) == ((x, size), (out,), (out,))


def test_a_schema_without_name_and_a_name_alone() -> None:
    assert (read("(Tensor x) -> Tensor").name, read("(Tensor x) -> Tensor").name_only) == ("", False)
    assert (read("ns::op.out").qualified_name, read("ns::op.out").name_only) == ("ns::op.out", True)
    assert faults("(Tensor x) -> Tensor", "torchgen") == ["syntax "]
    assert faults("op", "torchgen") == ["syntax op"]


@pytest.mark.parametrize(
    "of",
    [
        *("Tensor[]", "int[2]", "int[2]?", "Tensor?[]", "SymInt[][]", "int[][3]", "Any", "NoneType", "()"),
        *("(Tensor, int)", "Future(Tensor)", "Dict(str, Tensor[])", "Union(int, str)", "(Tensor, int)[]"),
        *(
            "Tensor(a!)",
            "Tensor(a!)?",
            "Tensor(a!)[]",
            "Tensor[](a!)",
            "Tensor(a)[](b!)",
            "Tensor(a|b -> *)",
            "Tensor!",
        ),
        *("Dict(str, Tensor)(a!)", "__torch__.torch.classes.ns.Name", "my.module.Opaque"),
    ],
)
def test_types_come_back_as_they_are_written(of: str) -> None:
    argument = read(f"f({of} x) -> ()").arguments[0]
    assert (argument.type.text(), str(argument)) == (of, f"{of} x")
    assert str(read(f"f() -> ({of} y)")) == f"f() -> {f'({of} y)' if of[0] == '(' else f'{of} y'}"


def test_types_are_equal_whatever_they_alias() -> None:
    aliased, plain = read("f(Tensor(a!)[] x, Tensor[] y) -> ()").arguments
    assert aliased.type == plain.type
    assert (str(aliased.type), aliased.type.base, aliased.is_write, plain.is_write) == (
        "Tensor[]",
        "Tensor",
        True,
        False,
    )
    assert not read("f(Tensor(a!)[](b) x) -> ()").arguments[0].is_write


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  f (Tensor x,int[ 2 ]y = [ 1,2 ])->(Tensor)\n", "f(Tensor x, int[2] y=[ 1,2 ]) -> Tensor"),
        ("f(Tensor x, # the input\n  int y) \\\n -> ()", "f(Tensor x, int y) -> ()"),
        ("f(*, ...) -> (Tensor, ...)", "f(...) -> (Tensor, ...)"),
        ("f(Tensor(a ! -> a | b) x) -> ...", "f(Tensor(a! -> a|b) x) -> ..."),
    ],
)
def test_the_dispatcher_takes_any_spacing(text: str, canonical: str) -> None:
    assert str(read(text)) == canonical


@pytest.mark.parametrize(
    "argument",
    [
        *(
            "int x=-1",
            "float x=1",
            "float x=.5e-3",
            "bool x=True",
            "str x='a, \\'b\\''",
            'str x="""a\nb"""',
            "Scalar x=1.5",
        ),
        *("Tensor? x=None", "int[2] x=0", "SymInt[1] x=[]", "bool[3] x=[True, False, True]", "ScalarType x=float32"),
        *("Layout x=strided", "MemoryFormat? x=contiguous_format", "int x=Mean", "Device x='cuda:1'", "complex x=1j"),
    ],
)
def test_defaults_that_fit(argument: str) -> None:
    assert str(read(f"f({argument}) -> ()").arguments[0]) == argument


# -- faults ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "my::op(Tensro x, bool n=true, Tensor(a! y) -> Tensr",
            ["unknown-type Tensro", "default true", "default-order Tensor(a! y", "unclosed y", "unknown-type Tensr"],
        ),
        ("f(Tensor x int y) => Tensor", ["comma int", "arrow =>"]),
        ("f(Tensor x, , int y,) -> Tensor", ["comma ,", "comma ,"]),
        ("f(Tensor x, int y -> (Tensor, Tensr", ["unclosed (", "unclosed (", "unknown-type Tensr"]),
        ("f(int[ x, Dict(str y, Tensor z) -> ()", ["list-size x", "unclosed y"]),
        ("f(Tensor 2x, int y=, Tensor(3) z) -> ()", ["syntax 2", "default ,", "alias 3"]),
        ("my-op(é x, int y=foo) -> ()", ["name my-op", "character é", "default foo"]),
        ('f(Tensor x, str s="abc, int y=2x) -> ()', ['unclosed "abc', "syntax x"]),
        ("f(Tensor x)", ["arrow "]),
        ("f(Tensor x) Tensor", ["arrow Tensor"]),
        ("f(Tensor x) -> Tensor Tensor, int", ["syntax , int"]),
        ("f(Tensor x)\n-> Tensor", ["syntax \n"]),
        ("f.default(..., int x=1) -> (..., int)", ["overload-name default", "vararg int", "vararg int"]),
        (
            "f(None? x, Union(int, int) y, Dict(bool?, int) z, Future w) -> ()",
            ["type ?", "type Union(int, int)", "type Dict(bool?, int)", "type w"],
        ),
        ("f(Dimname d, int64_t n) -> ()", ["removed-type Dimname", "unknown-type int64_t"]),
        ("f(int a=1, int[] b, int c, *, int d) -> ()", ["default-order int c"]),
        ("", ["name "]),
    ],
)
def test_every_fault_is_told_at_its_place(text: str, expected: list[str]) -> None:
    assert faults(text) == expected


def test_faults_that_torch_lets_pass() -> None:
    text = "f(int x=None, int y=0x10, int x=1, str s=2, *, int(a!) z, Tensor?? w, *) -> ()"
    assert faults(text) == [
        *("default-type? None", "default-type? 0x10", "duplicate-argument? x", "default-type? 2"),
        *("alias-type? int(a!)", "type? ?", "star? *"),
    ]
    assert parse_schema(text).schema is not None
    assert not parse_schema(text).refused


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("int x=0x2F", ["torch reads `0x2F` as 0, since integers in a schema are decimal; write `47`"]),
        ("SymInt? x=-0XAE", ["torch reads `-0XAE` as 0, since integers in a schema are decimal; write `-174`"]),
        ("int[2] x=[0x1, 2]", ["torch reads `0x1` as 0, since integers in a schema are decimal; write `1`"]),
        ("int x=0x0", []),
        ("float x=0x2F", []),
        ("int x=0xe", ["`0xe` is not a value of type `int`"]),
    ],
)
def test_hexadecimal_integers_are_read_as_zero(argument: str, expected: list[str]) -> None:
    assert [item.message for item in parse_schema(f"f({argument}) -> ()").errors] == expected


@pytest.mark.parametrize(
    ("argument", "kind"),
    [
        *(
            ("Tensor x=0", "default"),
            ("Tensor[] x=[]", "default"),
            ("int[] x=0", "default"),
            ("int[]? x=[1]", "default"),
        ),
        *(("int[2] x=True", "default"), ("bool[3] x=[1, 1, 1]", "default"), ("int x=99999999999999999999", "default")),
        *(("float x=1e999", "default"), ("Device x='cuda:01'", "default"), ("int x=float32", "default")),
        *(("Any x=None", "default"), (r"str x='\x41'", "default"), ("complex x=1", "default")),
        *(("int x=1.5", "default-type"), ("bool x=1", "default-type"), ('float x="inf"', "default-type")),
    ],
)
def test_defaults_that_do_not_fit(argument: str, kind: str) -> None:
    written = argument.partition("=")[2]
    mark = "?" if kind == "default-type" else ""
    assert faults(f"f({argument}) -> ()") == [f"{kind}{mark} {written}"]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("f(tensor x) -> ()", "f(Tensor x) -> ()"),
        ("f(double x) -> ()", "f(float x) -> ()"),
        ("f(Optional[Tensor] x) -> ()", "f(Tensor? x) -> ()"),
        ("f(Tensor?(a!) x) -> ()", "f(Tensor(a!)? x) -> ()"),
        ("f(Tensor(a! x) -> ()", "f(Tensor(a!) x) -> ()"),
        ("f(bool[2] x=[true, True]) -> ()", "f(bool[2] x=[True, True]) -> ()"),
        ("f(str mode=nearest) -> ()", 'f(str mode="nearest") -> ()'),
        ("f(Tensor x int y) -> ()", "f(Tensor x, int y) -> ()"),
        ("f(Tensor x, ) -> ()", "f(Tensor x ) -> ()"),
        ("f(Tensor x) Tensor", "f(Tensor x) -> Tensor"),
        ("f(Tensor x -> Tensor", "f(Tensor x) -> Tensor"),
        ("f(__torrch__.torch.classes.a.B x) -> ()", "f(__torch__.torch.classes.a.B x) -> ()"),
    ],
)
def test_what_is_certain_is_mended(text: str, right: str) -> None:
    (error,) = parse_schema(text).errors
    assert mended(text, error) == right
    assert parse_schema(right).errors == ()


def test_what_is_not_certain_is_left() -> None:
    for text in ("f(Tensor x => ()", "f(Tensro x) -> ()", "f(int x=foo) -> ()", "f(Tensor x)", "a-b(int x) -> ()"):
        assert all(error.edit is None for error in parse_schema(text).errors)


def test_near_names_are_offered_and_not_written() -> None:
    (error,) = parse_schema("f(Tensro x) -> ()").errors
    assert (error.message, error.edit) == ("no type is called `Tensro`; did you mean `Tensor`?", None)
    (error,) = parse_schema("f(int64_t x) -> ()").errors
    assert (error.message, error.edit) == ("no type is called `int64_t`; did you mean `SymInt` or `int`?", None)


def test_type_variables_are_those_of_torchscript() -> None:
    assert faults("ns::f(t[] x) -> t") == ["unknown-type t", "unknown-type t"]
    assert faults("aten::f(t[] x) -> t") == []
    assert parse_schema("ns::f(t[] x) -> t", type_variables=True).errors == ()
    assert faults("aten::f(t[] x) -> t", "torchgen") == ["unknown-type t", "unknown-type t"]


# -- torchgen's dialect ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(Tensor x,int y = 1)->Tensor", ["spacing int", "spacing  ", "spacing  ", "spacing ->", "spacing Tensor"]),
        ("f(int[2] x=[0, 1], *) -> (Tensor)", ["spacing  ", "star *", "spacing (Tensor)"]),
        (
            "f(Dict(str, int) x, complex y, int[02] z) -> (int, int)[]",
            ["unknown-type Dict(str, int)", "unknown-type complex", "list-size 02", "syntax []"],
        ),
        (
            "f(Tensor(ab!) x, Tensor(a|b!) y, Tensor[](a) z, Tensor! w, int(a!) v) -> ()",
            ["alias Tensor(ab!)", "alias Tensor(a|b!)", "alias Tensor[](a)", "alias Tensor!", "alias-type int(a!)"],
        ),
        ('add_out(Tensor x, str s="a, b") -> ()', ["name add_out", 'default "a, b"']),
        ("f(Tensor x, ...) -> (int, ...)", ["vararg ...", "vararg ..."]),
        ("f(Tensor 2x,int y) => Tensor", ["syntax 2", "spacing int", "arrow =>"]),
        ("f_(Tensor self) -> Tensor", ["inplace Tensor self"]),
        ("f_(Tensor(a!) self) -> Tensor", ["inplace Tensor"]),
        ("f_(Tensor(a!)[] self) -> Tensor(a!)[]", ["inplace Tensor(a!)[]"]),
        ("__ifoo__(Tensor(a!) self) -> Tensor(a!)", ["name __ifoo__"]),
        ("f.out(Tensor x, *, Tensor(a!) out) -> Tensor(b!)", ["out Tensor(b!)"]),
        ("f.out(Tensor x, *, Tensor(a!) out, int n) -> Tensor(a!)", ["out int n"]),
        ("f.out(Tensor x, *, Tensor(a!) out) -> ()", ["out Tensor(a!) out"]),
        ("f(Tensor x, Tensor(a!) out) -> Tensor(a!)", ["out Tensor(a!)"]),
        ("f(Tensor(a!) x, Tensor self) -> ()", ["inplace Tensor(a!) x"]),
    ],
)
def test_torchgen_is_stricter(text: str, expected: list[str]) -> None:
    assert faults(text, "torchgen") == expected
    assert parse_schema(text, "torchgen").refused


def test_spacing_is_mended() -> None:
    text = "f(Tensor x,int[2] y = [0, 1])->(Tensor)"
    for _ in range(10):
        errors = parse_schema(text, "torchgen").errors
        text = mended(text, errors[-1]) if errors else text
    assert text == "f(Tensor x, int[2] y=[0,1]) -> Tensor"


# -- hostile text ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *(
            "f(" + "([, " * 2400,
            "(" * 9999,
            "f(" + "Dict(int, " * 900,
            "f(" + "Optional[" * 1000,
            "f(" + "Tensor(a!" * 1000,
        ),
        *(
            "f(" + "int[]" * 1900 + " x) -> ()",
            "f(" + "x y z," * 1600,
            "f(" + "-> " * 3000,
            "f(int x=" + "9" * 9000 + ") -> ()",
        ),
        *(
            "f(int[" + "9" * 9000 + "] x) -> ()",
            "f(" + ", ".join(f"Tensr{i} x" for i in range(700)) + ") -> ()",
            "\ud800(\x00",
        ),
        "x" * (MAX_LENGTH + 1),
    ],
    ids=range(13),
)
def test_hostile_text_is_read_in_time(text: str) -> None:
    begin = time.process_time()
    for dialect in DIALECTS:
        assert parse_schema(text, dialect).errors
    assert time.process_time() - begin < 4


ALPHABET = st.sampled_from([*"()[],*=?!|:.<->ab_10 \n\"'\\é#", "Tensor", "int", "->", "(a!)", "f(", ") -> ", "..."])


@given(st.lists(ALPHABET, max_size=40).map("".join))
def test_any_text_has_a_verdict(text: str) -> None:
    for dialect in DIALECTS:
        parsed = parse_schema(text, dialect)
        assert (parsed.schema is None) <= parsed.refused
        assert all(0 <= error.span.start <= error.span.end <= len(text) for error in parsed.errors)
        assert list(parsed.errors) == sorted(parsed.errors, key=lambda error: error.span)


# -- torch's own parsers -----------------------------------------------------------------------------------------------


@cache
def native_functions() -> tuple[str, ...]:
    torchgen = pytest.importorskip("torchgen")
    path = Path(torchgen.__path__[0], "packaged/ATen/native/native_functions.yaml")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(entry["func"] for entry in yaml.load(path.read_bytes(), loader))


@cache
def torch_schemas() -> tuple[str, ...]:
    """All schemas that torch has registered, but the few that it prints as it cannot read them."""
    torch = pytest.importorskip("torch", minversion="2.13")
    return tuple(text for text in map(str, torch._C._jit_get_all_schemas()) if not dispatcher_refuses(text))


def dispatcher_refuses(text: str) -> bool:
    torch = pytest.importorskip("torch", minversion="2.13")
    try:
        torch._C.parse_schema(text, allow_typevars=False)
    except (RuntimeError, ValueError, IndexError, UnicodeDecodeError):
        return True
    return False


def torchgen_refuses(text: str) -> bool:
    model = pytest.importorskip("torchgen.model")
    try:
        model.FunctionSchema.parse(text)
    except (AssertionError, RuntimeError, ValueError, LookupError):
        return True
    return False


@pytest.mark.parametrize("dialect", DIALECTS)
def test_native_functions_come_back_as_they_are_written(dialect: Dialect) -> None:
    for text in native_functions():
        schema = read(text, dialect)
        assert str(schema) == text
        for item in schema.slots:
            assert text[slice(*item.span)] == str(item)
            assert text[slice(*item.type_span)] == item.type.text()


def shape_of_torchgen(schema: Any) -> object:
    """Torchgen's schema as plain values."""
    outs = [*schema.arguments.flat_kwarg_only, *schema.arguments.out]
    arguments = [(item, False) for item in schema.arguments.flat_positional] + [(item, True) for item in outs]
    return (
        str(schema.name),
        [(item.name, str(item.type), item.default, str(item.annotation or ""), kw) for item, kw in arguments],
        [(item.name, str(item.type), str(item.annotation or "")) for item in schema.returns],
    )


def shape_of_ours(schema: OperatorSchema) -> object:
    arguments = [
        (item.name, str(item.type), item.default, str(item.alias or "")[1:-1], item.kwarg_only)
        for item in schema.arguments
    ]
    returns = [(item.name, str(item.type), str(item.alias or "")[1:-1]) for item in schema.returns]
    return schema.qualified_name, arguments, returns


def test_native_functions_are_read_as_torchgen_reads_them() -> None:
    model = pytest.importorskip("torchgen.model")
    for text in native_functions():
        assert shape_of_ours(read(text, "torchgen")) == shape_of_torchgen(model.FunctionSchema.parse(text))


KNOWN_FAULTS = {"static_runtime::clamp_nan_to_num": "duplicate-argument"}
"""Faults of PyTorch's own schemas: `posinf` appears twice."""


def test_all_schemas_of_torch_are_read() -> None:
    torch = pytest.importorskip("torch", minversion="2.13")
    for text in torch_schemas():
        parsed = parse_schema(text)
        allowed = KNOWN_FAULTS.get(text.partition("(")[0])
        assert [error.kind for error in parsed.errors] == ([allowed] if allowed else []), text
        assert str(torch._C.parse_schema(str(parsed.schema), False)) == str(torch._C.parse_schema(text, False))


PIECES = re.compile(r"\w+|->|\.\.\.|\s+|.")
EXTRA = (
    *(
        "Tensor",
        "int",
        "None",
        "True",
        "*",
        "...",
        "(a!)",
        "(a -> *)",
        "[]",
        "[2]",
        "?",
        "!",
        "=",
        "=1",
        "=None",
        "=[]",
    ),
    *(
        '="x"',
        "->",
        ",",
        " ",
        "\n",
        "Dict(str, int)",
        "(int, int)",
        "strided",
        "1.5",
        "-1",
        "()",
        "self",
        "out",
        "double",
    ),
    *(
        "Optional[int]",
        "(b!)",
        "_",
        "default",
        "'",
        "#",
        "\\",
        "é",
        "j",
        "e5",
        "0x1",
        "|",
        "a|b",
        "*, ",
        "dtype",
        "float32",
    ),
)


def mutated(text: str, rng: random.Random) -> str:
    """``text`` with one to three words or characters deleted, doubled, swapped, replaced or put in."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        parts = PIECES.findall(text) if rng.random() < 0.6 else list(text)
        first, second = rng.randrange(len(parts)), rng.randrange(len(parts))
        match rng.choice(("delete", "double", "swap", "swap next", "replace", "insert")):
            case "delete":
                del parts[first]
            case "double":
                parts.insert(first, parts[first])
            case "swap":
                parts[first], parts[second] = parts[second], parts[first]
            case "swap next":
                parts[first : first + 2] = reversed(parts[first : first + 2])
            case "replace":
                parts[first] = rng.choice(EXTRA)
            case _:
                parts.insert(first, rng.choice(EXTRA))
        text = "".join(parts) or "f"
    return text


def has_open_type(parsed: ParsedSchema) -> bool:
    """Whether a class is named that a program may have registered, which we do not know and torch does."""
    slots = parsed.schema.slots if parsed.schema is not None else ()
    return any("." in part.name for item in slots for part in item.type.parts())


def is_whole(parsed: ParsedSchema) -> bool:
    return parsed.schema is None or bool(parsed.schema.name and not parsed.schema.name_only)


@pytest.mark.parametrize("seed", range(3))
def test_verdicts_on_mutated_schemas_are_those_of_torch(seed: int) -> None:
    rng = random.Random(seed)
    refused = 0
    for _ in range(400):
        text = mutated(rng.choice(native_functions() if rng.random() < 0.7 else torch_schemas()), rng)
        loose, strict = parse_schema(text), parse_schema(text, "torchgen")
        if has_open_type(loose) or not is_whole(loose):
            continue
        by_dispatcher = dispatcher_refuses(text)
        refused += by_dispatcher
        assert loose.refused == by_dispatcher, (text, loose.errors)
        if by_dispatcher or torchgen_refuses(text):
            assert strict.refused, text
        elif strict.refused:  # torchgen takes a misplaced space into a name or default: `Tensor []x` is called `[]x`
            assert any(error.kind == "spacing" for error in strict.errors), (text, strict.errors)
        if not strict.errors:
            assert str(strict.schema) == text
    assert 200 < refused < 400


def test_torchgen_accepts_faults_that_are_reported() -> None:
    """Schemas that `torchgen.model` accepts, by itself or with the dispatcher."""
    accepted = {
        "f(Tensor x, Tensor x) -> Tensor": ("duplicate-argument", False),
        "f(int x=1, Tensor y) -> Tensor": ("default-order", True),
        "f(int x=foo) -> Tensor": ("default", True),
        "f(int x=None) -> Tensor": ("default-type", False),
        "f(Tensor 2x) -> Tensor": ("syntax", True),
        "a-b(Tensor x) -> Tensor": ("name", True),
        "f.default(Tensor x) -> Tensor": ("overload-name", True),
        "f(int x= 1) -> Tensor": ("spacing", False),
    }
    for text, (kind, by_dispatcher) in accepted.items():
        assert not torchgen_refuses(text)
        assert dispatcher_refuses(text) == by_dispatcher
        assert [error.kind for error in parse_schema(text, "torchgen").errors] == [kind]


def test_reading_costs_what_torchgen_costs() -> None:
    """At most three times torchgen's own time, which reports one fault and no place; the best of three, for a busy machine."""
    model = pytest.importorskip("torchgen.model")
    texts = native_functions()

    def seconds(parse: Any) -> float:
        begin = time.process_time()
        for text in texts:
            parse(text)
        return time.process_time() - begin

    ours = min(seconds(lambda text: parse_schema(text, "torchgen")) for _ in range(3))
    theirs = min(seconds(model.FunctionSchema.parse) for _ in range(3))
    assert ours < 3 * theirs


def test_places_count_characters_of_the_text() -> None:
    assert parse_schema("  f(Tensro x) -> ()").errors[0].span == Span(4, 10)


def test_a_return_whose_type_is_not_known_is_shown() -> None:
    returned = Return(SchemaType())
    assert str(OperatorSchema("f", (), (returned,))) == "f() -> "
