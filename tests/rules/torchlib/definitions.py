"""Definitions of operators, by hand: one slip each, or none, as tables of what differs. ``NS`` is the case's own namespace."""

from __future__ import annotations

from tests.rules.torchlib.case_collector import HEAD, CaseCollector, op
from tests.rules.torchlib.oracle import How, Probe

ANNOTATIONS = (
    "Tensor", "torch.Tensor", "int", "float", "bool", "str", "torch.dtype", "torch.device", "torch.types.Number",
    "Union[int, float]", "int | float", "int | float | bool", "Optional[Tensor]", "Tensor | None", "None | Tensor",
    "Union[Tensor, None]", "List[int]", "list[float]", "Sequence[bool]", "list[Tensor | None]", "Optional[List[int]]",
    "Optional[list[Tensor]]", "list[Optional[Tensor]] | None", "List[torch.types.Number]", "Optional[List[torch.types.Number]]",
    "List[str]", "Optional[str]", "Optional[List[str]]", "List[torch.dtype]", "torch.dtype | None", "torch.Size",
    "torch.SymInt", "Tuple[int, int]", "tuple[int, ...]", "tuple", "list", "List", "dict", "dict[str, int]", "object",
    "complex", "bytes", "None", "List[List[int]]", "torch.layout", "torch.memory_format", "Optional[torch.types.Number]",
    "'Tensor'", "'int'", "'Optional[int]'", "'Missing'", "'list[Tensor]'", "List['Tensor']", "Optional['Tensor']",
    "list['int']", "'List[str'", "'torch.Tensor | None'", "Optional[Union[int, float]]",
)  # fmt: skip
RETURNS = (
    "Tensor", "None", "int", "float", "bool", "torch.types.Number", "List[Tensor]", "list[Tensor]", "Sequence[Tensor]",
    "Tuple[Tensor, Tensor]", "tuple[Tensor]", "Tuple[Tensor, ...]", "tuple", "Optional[Tensor]", "Tensor | None", "List[int]",
    "str", "Tuple[Tensor, Optional[Tensor]]", "tuple[int, Tensor, list[Tensor]]", "torch.dtype", "'Tensor'", "'None'",
    "Tuple['Tensor', 'Tensor']", "tuple['Tensor', int]", "List['Tensor']", "dict[str, Tensor]", "torch.SymInt",
    "Union[int, float, bool]", "list[list[Tensor]]", "tuple[int, int]", "tuple[None]", "Union[int, float]", "tuple[str, Tensor]",
)  # fmt: skip
DEFAULTS = (
    ("int", "1"), ("int", "-1"), ("int", "True"), ("int", "2**40"), ("int", "2**70"), ("int", "1j"), ("float", "1"),
    ("float", "1e-6"), ("float", "-0.5"), ("float", 'float("inf")'), ("float", '-float("inf")'), ("float", 'float("nan")'),
    ("bool", "True"), ("bool", "1"), ("str", '"a"'), ("str", '""'), ("str", "'a\"b'"), ("str", '"a\\nb"'), ("str", '"\\\\"'),
    ("str", '"(a)"'), ("Optional[int]", "None"), ("Optional[int]", "3"), ("Optional[Tensor]", "None"), ("List[int]", "[]"),
    ("List[int]", "(1, 2)"), ("List[int]", "[1]"), ("List[int]", "None"), ("List[int]", "1"), ("Optional[List[int]]", "None"),
    ("Optional[List[int]]", "()"), ("torch.dtype", "torch.float32"), ("torch.dtype", "torch.half"),
    ("Optional[torch.dtype]", "None"), ("torch.device", 'torch.device("cpu")'), ("torch.device", '"cpu"'),
    ("torch.device", "None"), ("Optional[torch.device]", "None"), ("torch.types.Number", "1"), ("torch.types.Number", "1.5"),
    ("Optional[str]", '"x"'), ("Optional[float]", "0.5"), ("Optional[bool]", "True"), ("Tensor", "torch.zeros(1)"),
    ("int", "SIZE"), ("float", "SCALE"), ("List[int]", "SHAPE"), ("int", "torch.strided"), ("int", "{}"), ("str", 'b"a"'),
)  # fmt: skip
MUTATES = (
    ("()", "x: Tensor"),
    ("[]", "x: Tensor"),
    ("{}", "x: Tensor"),
    ('"x"', "x: Tensor"),
    ('("x")', "x: Tensor"),
    ('""', "x: Tensor"),
    ("None", "x: Tensor"),
    ('("y",)', "x: Tensor"),
    ('("a",)', "x: Tensor, a: int"),
    ('("unknown",)', "x: Tensor"),
    ('("a", "y")', "x: Tensor, a: int"),
    ('{"xs"}', "x: Tensor, xs: List[int]"),
    ('("X",)', "x: Tensor"),
)
MIDDLE = (
    ("int", "None"),
    ("float", "None"),
    ("str", "None"),
    ("Tensor", "None"),
    ("bool", "None"),
    ("Optional[int]", "None"),
    ("int", "1.0"),
    ("str", "1"),
    ("Optional[Tensor]", "1"),
    ("float", "1"),
    ("bool", "1"),
    ("torch.dtype", '"float32"'),
)
PARAMETERS = (
    "x",
    "x: Tensor, a",
    "x: Tensor, /",
    "x: Tensor, *a: int",
    "x: Tensor, **a: int",
    "x: Tensor, *, a: int",
    "*a",
    "",
)
HOWS: tuple[How, ...] = ("real", "fake")
WRITES = (
    ('("x",)', "x: Tensor"), ('["x"]', "x: Tensor"), ('{"x"}', "x: Tensor"), ('"unknown"', "x: Tensor"), ("NAMES", "x: Tensor"),
    ('("x", "w")', "x: Tensor, w: Optional[Tensor] = None"),
)  # fmt: skip
NAMES = (
    "foo", "a::b::c", "NS::f.ov", "NS::f.default", "NS::f.", "NS::", "NS::f g", "NS::f-1", "NS.b::f", "NS::1f", "NS:f",
    "prim::NSx", "aten::NSx", "NS::class", "NS::_f", "NS::F", "NS-x::f", "NS/f", "NS.f",
)  # fmt: skip


def definitions(collector: CaseCollector) -> None:
    """Signatures that infer_schema accepts and rejects."""
    for annotation in ANNOTATIONS:
        collector.add(f"type {annotation}", op(f"x: Tensor, a: {annotation}"))
    for annotation in RETURNS:
        collector.add(f"returns {annotation}", op("x: Tensor", f" -> {annotation}", "raise NotImplementedError"))
    constants = "SIZE = 4\nSCALE = 0.25\nSHAPE = [1]\n\n\n"
    for annotation, default in DEFAULTS:
        collector.add(
            f"default {annotation} {default}", constants + op(f"x: Tensor, a: {annotation} = {default}"), "f(x)"
        )
    for annotation, default in MIDDLE:
        text = op(f"x: Tensor, a: {annotation} = {default}, b: int = 1")
        text += f"\n\n@f.register_fake\ndef fake(x, a={default}, b=1):\n    return torch.empty_like(x)\n"
        probes = [Probe(how, call) for how in HOWS for call in ("f(x)", "f(x, b=2)")]
        collector.add(f"default before others {annotation} {default}", text, *probes)
    for parameters in PARAMETERS:
        collector.add(f"parameters {parameters}", op(parameters, body="return torch.ones(2)"))
    collector.add("no return type", op("x: Tensor", ""))
    collector.add("keyword-only tensor", op("x: Tensor, *, w: Tensor"))
    collector.add("keyword-only optional", op("x: Tensor, *, w: Optional[Tensor] = None"))
    collector.add("keyword-only list", op("x: Tensor, *, w: List[Tensor]"))
    for mutates, parameters in MUTATES:
        collector.add(
            f"mutates {mutates}", op(parameters, mutates=mutates), "f(x)" if parameters == "x: Tensor" else "x"
        )
    for mutates, parameters in WRITES:
        text = 'NAMES = ("x",)\n\n\n' + op(parameters, " -> None", "x.add_(1)", mutates=mutates)
        collector.add(f"writes {mutates}", text, "f(x)", Probe("fake", "f(x)"))
    function = "def f(x: Tensor) -> Tensor:\n    return x.clone()\n"
    for name in NAMES:
        collector.add(f"name {name}", f'@torch.library.custom_op("{name}", mutates_args=())\n{function}')
    collector.add("no mutates_args", f'@torch.library.custom_op("NS::f")\n{function}')
    collector.add("wrong keyword", op("x: Tensor", more=', device_type="cpu"'))


def strings(collector: CaseCollector) -> None:
    """String annotations, and the import that makes all of them strings."""
    future = "from __future__ import annotations\n"
    plain = op("x: Tensor, a: int | None = None", " -> tuple[Tensor, Tensor]", "return x.clone(), x.clone()")
    collector.add("future", plain, head=future + HEAD)
    collector.add("future twice quoted", op('x: "Tensor"'), head=future + HEAD)
    collector.add("future list quoted", op('x: Tensor, a: list["int"]'), head=future + HEAD)
    only = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from torch import Tensor as Hidden\n\n\n"
    collector.add("future type checking", only + op("x: Hidden"), head=future + HEAD)
    collector.add("future later", op("x: Later") + "\n\nfrom torch import Tensor as Later\n", head=future + HEAD)
    collector.add("future earlier", "Early = Tensor\n\n\n" + op("x: Early"), head=future + HEAD)
    inner = "from torch import Tensor as Inner\n\n"
    made = "".join(f"    {line}\n" if line else "\n" for line in (inner + op("x: Inner", " -> Inner")).splitlines())
    factory = f"def make():\n{made}    return f\n\n\nf = make()\n"
    collector.add("future local", factory, head=future + HEAD)
    collector.add("local", factory, "f(x)")
    collector.add("alias", "Maybe = Optional[int]\n\n\n" + op("x: Tensor, a: Maybe = None"), "f(x)")


SCHEMAS = (
    ("()", "(Tensor x, int a=1) -> Tensor", "x, a=1"),
    ('("x",)', "(Tensor x) -> Tensor", "x"),
    ("()", "(Tensor(a!) x) -> ()", "x"),
    ('"unknown"', "(Tensor(a!) x) -> ()", "x"),
    ('("x",)', "(Tensor(a!) x) -> ()", "x"),
    ('"x"', "(Tensor(a!) x) -> ()", "x"),
    ("()", "(Tensor x, int a -> Tensor", "x, a"),
    ("()", "f(Tensor x) -> Tensor", "x"),
    ("()", "(Tensor x, list a) -> Tensor", "x, a"),
    ("()", "(Tensor x, int a = 1, *, str s) -> (Tensor, Tensor)", "x, a=1, *, s"),
    ("()", "(Tensor x, *, Tensor y) -> Tensor", "x, *, y"),
    ('("out",)', "(Tensor x, Tensor(a!) out) -> ()", "x, out"),
    ('("o",)', "(Tensor x, Tensor(a!) out) -> ()", "x, out"),
    ('("o", "u", "t")', "(Tensor x, Tensor(a!) out) -> ()", "x, out"),
)
DEFINES = (
    "(Tensor x) -> Tensor", "(Tensor x, int[2] a=1, Scalar s=1.5, *, str? t=None) -> Tensor[]", "Tensor x -> Tensor",
    "f(Tensor x) -> Tensor", "(Tensor x)", "(tensor x) -> Tensor", "(Tensor x, int a=) -> Tensor", "(Tensor x -> Tensor",
    "(Tensor x,) -> Tensor", "() -> ()", "(Tensor(a!) x) -> Tensor(a!)", "(Tensor x) -> (Tensor, int)", "(Tensor x) -> tensor",
    "(Tensor x int a) -> Tensor", "(Tensor x, *, *, int a) -> Tensor", "(Tensor x, float a=None) -> Tensor",
    "(Tensor x, int x) -> Tensor", "(Tensor x, SymInt a=1, SymInt[] s=[], ScalarType? d=None) -> (Tensor, Tensor[])",
    "(Tensor x, *, int a) -> (Tensor y, Tensor z)", "(Tensor x, int a=1, int b) -> Tensor", "(Tensor x,int a)->Tensor",
)  # fmt: skip
TAGGED = (
    ("out", "(Tensor x) -> Tensor"),
    ("out", "(Tensor(a!) x) -> Tensor(a!)"),
    ("out", "(Tensor x, *, Tensor(a!)? out) -> Tensor(a!)"),
    ("out", "(Tensor x, *, Tensor(a!) out) -> ()"),
    ("out", "(Tensor x, *, Tensor(a!) out) -> Tensor"),
    ("out", "(Tensor x, *, Tensor(a!) out) -> Tensor(a)"),
    ("out", "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)"),
    ("out", "(Tensor x, *, Tensor(a!) o, Tensor(b!) p) -> (Tensor(b!), Tensor(a!))"),
    ("out", "(Tensor x, *, Tensor(a!) o, Tensor(b!) p) -> (Tensor(a!), Tensor(b!))"),
    ("inplace", "(*, Tensor(a!) x) -> Tensor(a!)"),
    ("inplace", "() -> Tensor"),
    ("inplace", "(Tensor x) -> Tensor"),
    ("inplace", "(Tensor(a!)[] x) -> Tensor(a!)"),
    ("inplace", "(Tensor(a!) x) -> ()"),
    ("inplace", "(Tensor(a!) x) -> Tensor[]"),
    ("inplace", "(Tensor(a!) x) -> Tensor"),
    ("inplace", "(Tensor(a!) x) -> Tensor(a)"),
    ("inplace", "(Tensor(a!) x, Tensor(b!) y) -> Tensor(b!)"),
    ("inplace", "(Tensor(a!) x, Tensor(b!) y) -> Tensor(a!)"),
    ("inplace", "(Tensor(a!) x, Tensor y) -> Tensor(a!)"),
)
INPLACE = (
    ('("x",)', "x: Tensor", "Tensor", "x.add_(1)"),
    ('("x",)', "x: Tensor", "Tensor", "x.add_(1).clone()"),
    ('("x",)', "x: Tensor", "None", "None"),
    ("()", "x: Tensor", "Tensor", "x"),
    ('"unknown"', "x: Tensor", "Tensor", "x"),
    ('("x", "y")', "x: Tensor, y: Tensor", "Tensor", "x"),
    ('("y",)', "x: Tensor, y: Tensor", "Tensor", "y"),
    ('("x",)', "x: Optional[Tensor]", "Tensor", "x"),
    ('("x",)', "*, x: Tensor", "Tensor", "x"),
    ('("x",)', "x: Tensor", "tuple[Tensor, Tensor]", "(x, x)"),
)
OUT = (
    ('("out",)', "x: Tensor, *, out: Tensor", "Tensor", "out"),
    ('("out",)', "x: Tensor, *, out: Tensor", "Tensor", "x.clone()"),
    ('("out",)', "x: Tensor, out: Tensor", "Tensor", "out"),
    ("()", "x: Tensor, *, out: Tensor", "Tensor", "out"),
    ('("out",)', "x: Tensor, *, out: Optional[Tensor] = None", "Tensor", "out"),
    ('("out",)', "x: Tensor, *, out: Tensor", "None", "None"),
    ('("out",)', "x: Tensor, *, out: Tensor", "tuple[Tensor]", "(out,)"),
    ('"unknown"', "x: Tensor, *, out: Tensor", "Tensor", "out"),
)


def schemas(collector: CaseCollector) -> None:
    """Written schemas, mutates_args against them, and the demands of tags."""
    for mutates, schema, parameters in SCHEMAS:
        text = op(parameters, "", "raise NotImplementedError", mutates=mutates, more=f', schema="{schema}"')
        collector.add(f"schema {schema}", text)
    for schema in DEFINES:
        collector.add(f"define {schema}", f'torch.library.define("NS::f", "{schema}")\n')
        if schema.startswith("("):
            text = f'library = torch.library.Library("NS", "DEF")\nlibrary.define("f{schema}")\n'
            collector.add(f"library {schema}", text)
    collector.add("define no namespace", 'torch.library.define("f", "(Tensor x) -> Tensor")\n')
    collector.add("define lines", 'torch.library.define("NS::f", """(Tensor x,\n int a) -> Tensor""")\n')
    for tag, schema in TAGGED:
        text = f'torch.library.define("NS::f", "{schema}", tags=torch.Tag.{tag})\n'
        collector.add(f"tag {tag} {schema}", text)
    for mutates, parameters, returns, result in INPLACE:
        more = ", tags=torch.Tag.inplace"
        text = op(parameters, f" -> {returns}", f"return {result}", mutates=mutates, more=more)
        collector.add(f"inplace {mutates} {returns}", text, *(["f(x)"] if parameters == "x: Tensor" else []))
    for mutates, parameters, returns, result in OUT:
        text = op(parameters, f" -> {returns}", f"return {result}", mutates=mutates, more=", tags=torch.Tag.out")
        collector.add(f"out {mutates} {returns}", text, "f(x, out=y)")
    text = op("x: Tensor", mutates='("x",)', more=", tags=[torch.Tag.inplace, torch.Tag.out]")
    collector.add("both tags", text)


def add_definitions(collector: CaseCollector) -> None:
    """All of this module."""
    definitions(collector)
    strings(collector)
    schemas(collector)
