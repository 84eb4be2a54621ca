"""Rules on definitions, REG101 to REG118: places, fixes, and what looks wrong and is right."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.torchlib.pack import PACK

HEAD = "import torch\nfrom torch import Tensor\nfrom typing import List, Optional, Sequence, Tuple, Union\n\n"


def lint(text: str, *select: str, head: str = HEAD, files: dict[str, str] | None = None) -> Linted:
    return lint_files([PACK], {"kit/__init__.py": "", "kit/ops.py": head + text, **(files or {})}, select)


def found(text: str, *select: str, head: str = HEAD, files: dict[str, str] | None = None) -> list[tuple[str, str]]:
    """Each finding's code, and the text at its place."""
    linted = lint(text, *select, head=head, files=files)
    return [(item.code, linted.text(item.place)) for item in linted.diagnostics]


def fixed(text: str, *, unsafe: bool = False, head: str = HEAD, files: dict[str, str] | None = None) -> str:
    texts, _ = fix_files([PACK], {"kit/ops.py": head + text, **(files or {})}, ["REG1"], unsafe=unsafe)
    return texts.get("kit/ops.py", head + text).removeprefix(head)


def op(
    parameters: str, returns: str = " -> Tensor", options: str = "mutates_args=()", body: str = "return x.clone()"
) -> str:
    return f'@torch.library.custom_op("kit::f", {options})\ndef f({parameters}){returns}:\n    {body}\n'


OLD = {"requirements.txt": "torch==2.6.0\n"}


@pytest.mark.parametrize(
    ("set_by_code", "count"),
    [
        ("f.__signature__ = inspect.signature(shape)", 0),
        ("f.__annotations__ = {'args': Tensor, 'return': Tensor}", 0),
        ("f.__annotations__['return'] = Tensor", 0),
        ("shape.__signature__ = inspect.signature(f)", 2),
        ("f.__name__ = 'g'", 2),
    ],
)
def test_a_signature_that_code_sets_is_not_read_from_the_function(set_by_code: str, count: int) -> None:
    text = (
        "import inspect\n\n\ndef shape(x: Tensor) -> Tensor: ...\n\n\ndef f(*args):\n    return args[0].clone()\n\n\n"
    )
    defines = 'torch.library.custom_op("kit::f", f, mutates_args=())\n'
    assert len(found(f"{text}{set_by_code}\n{defines}", "REG101", "REG102")) == count


@pytest.mark.parametrize(
    ("decorator", "count"),
    [
        ("functools.update_wrapper(given, shape)", 0),
        ("given.__annotations__.update(shape.__annotations__)", 0),
        ("given.__annotations__['return'] = Tensor", 0),
        ("given.__signature__ = inspect.signature(shape)", 0),
        ("given.__defaults__ = (2, 1.0)", 0),
        ("setattr(given, '__signature__', inspect.signature(shape))", 0),
        ("print(given.__annotations__, given.__defaults__ == ())", 2),
        ("given.__name__ = shape.__name__", 2),
    ],
)
@pytest.mark.parametrize("apply", ["@shaped\n{}", "{}\n\nf = shaped(f)"])
def test_a_decorator_that_sets_the_signature_of_what_it_returns(decorator: str, count: int, apply: str) -> None:
    head = "import functools, inspect\n\n\ndef shape(x: Tensor) -> Tensor: ...\n\n\n"
    head += f"def shaped(given):\n    {decorator}\n    return given\n\n\n"
    defined = apply.format("def f(*args):\n    return args[0].clone()\n")
    text = f'{head}{defined}\n\ntorch.library.custom_op("kit::f", f, mutates_args=())\n'
    assert len(found(text, "REG101", "REG102")) == count


@pytest.mark.parametrize(
    ("parameters", "returns", "expected"),
    [
        ("x: Tensor, a", " -> Tensor", [("REG101", "a")]),
        ("x: Tensor, a", "", [("REG101", "f"), ("REG101", "a")]),
        ("x: Tensor, *a: int, **b: int", " -> Tensor", [("REG102", "a"), ("REG102", "b")]),
        ("x: Tensor, a: List[str]", " -> Tensor", [("REG103", "List[str]")]),
        ("x: Tensor, a: Tuple[int, ...]", " -> Tensor", [("REG103", "Tuple[int, ...]")]),
        ("x: Tensor", " -> Optional[Tensor]", [("REG104", "Optional[Tensor]")]),
        ("x: 'Nowhere'", " -> Tensor", [("REG105", "'Nowhere'")]),
        ("x: Tensor, a: List[int] = []", " -> Tensor", [("REG106", "[]")]),
        ("x: Tensor, a: float = float('-inf')", " -> Tensor", [("REG106", "float('-inf')")]),
        ("x: Tensor, a: torch.dtype = torch.strided", " -> Tensor", [("REG106", "torch.strided")]),
        ("x: Tensor, a: int = 1j", " -> Tensor", [("REG106", "1j")]),
        ("x: Tensor, a: Tensor = torch.zeros(1)", " -> Tensor", [("REG106", "torch.zeros(1)")]),
        ("x: Tensor, a: str = '\\\\'", " -> Tensor", [("REG106", "'\\\\'")]),
        ("x: Tensor, a: int = None", " -> Tensor", [("REG107", "None")]),
        ("x: Tensor, a: str = 1", " -> Tensor", [("REG107", "1")]),
    ],
)
def test_what_infer_schema_refuses(parameters: str, returns: str, expected: list[tuple[str, str]]) -> None:
    assert found(op(parameters, returns), "REG1") == expected


@pytest.mark.parametrize(
    "parameters",
    [
        "x: Tensor, a: int = True, b: float = 1, c: bool = 0, d: Optional[int] = None",
        "x: Tensor, a: bool = None, b: Tensor = None, c: torch.types.Number = 1.5",
        "x: Tensor, a: torch.dtype = torch.float32, b: torch.device = 'cpu', c: Optional[str] = 'x'",
        "x: Tensor, a: int = LIMIT, b: Unknown = None",
        "x: Tensor, a: Sequence[Tensor], b: Union[int, float, bool], c: 'Optional[List[int]]' = None",
    ],
)
def test_what_infer_schema_takes(parameters: str) -> None:
    imports = "from elsewhere import LIMIT, Unknown\n\n"
    assert found(imports + op(parameters), "REG1") == []


def test_a_written_schema_leaves_the_signature_alone() -> None:
    options = 'mutates_args=(), schema="(Tensor x, int a=1) -> Tensor"'
    assert found(op("x, *a: dict, b: str = []", "", options), "REG1") == []


@pytest.mark.parametrize(
    ("before", "after", "files"),
    [
        ("a: int = None", "a: Optional[int] = None", {}),
        ("a: List[int] = None", "a: Optional[List[int]] = None", {}),
        ("a: 'float' = None", "a: 'Optional[float]' = None", {}),
        ('a: "List[int]" = None', 'a: "Optional[List[int]]" = None', {}),
        ("a: list['Tensor'] = None", "a: list['Tensor'] = None", {}),
        ("a: list[int]", "a: List[int]", OLD),
        ("a: list[int] | None", "a: Optional[List[int]]", OLD),
    ],
)
def test_types_are_respelled(before: str, after: str, files: dict[str, str]) -> None:
    assert fixed(op(f"x: Tensor, {before}"), files=files) == op(f"x: Tensor, {after}")


def test_a_tuple_becomes_a_list_only_when_asked() -> None:
    before, after = op("x: Tensor, a: Tuple[int, int]"), op("x: Tensor, a: List[int]")
    assert (fixed(before), fixed(before, unsafe=True)) == (before, after)


def test_a_name_that_the_file_lacks_is_not_written() -> None:
    head = "import torch\nfrom torch import Tensor\n\n"
    assert fixed(op("x: Tensor, a: list[int]"), head=head, files=OLD) == op("x: Tensor, a: list[int]")
    assert fixed(op("x: Tensor, a: int = None"), head=head) == op("x: Tensor, a: int | None = None")


@pytest.mark.parametrize(
    ("mutates", "after"),
    [
        ('mutates_args=("x")', 'mutates_args=("x",)'),
        ('mutates_args="x"', 'mutates_args=("x",)'),
        ("mutates_args='x'", "mutates_args=('x',)"),
        ('mutates_args="out"', 'mutates_args="out"'),
    ],
)
def test_a_string_becomes_a_tuple(mutates: str, after: str) -> None:
    before = op("x: Tensor", " -> None", mutates, "x.zero_()")
    assert fixed(before) == op("x: Tensor", " -> None", after, "x.zero_()")


def test_that_nothing_is_written_is_an_unsafe_fix() -> None:
    before, after = (op("x: Tensor", " -> None", f"mutates_args={text}", "x.zero_()") for text in ("None", "()"))
    assert (fixed(before), fixed(before, unsafe=True)) == (before, after)


@pytest.mark.parametrize(
    ("options", "parameters", "expected"),
    [
        ('mutates_args=("y",)', "x: Tensor", [("REG108", '"y"')]),
        ("mutates_args=None", "x: Tensor", [("REG108", "None")]),
        ('mutates_args=["a"]', "x: Tensor, a: List[int]", [("REG108", '["a"]')]),
        ("device_types='cpu'", "x: Tensor", [("REG108", "torch.library.custom_op")]),
        ('mutates_args={"xs"}', "x: Tensor, xs: Optional[List[Tensor]]", []),
        ("**OPTIONS", "x: Tensor", []),
        ("mutates_args=NAMES", "x: Tensor", []),
        ('mutates_args="unknown"', "x: Tensor", []),
    ],
)
def test_mutates_args(options: str, parameters: str, expected: list[tuple[str, str]]) -> None:
    imports = "from elsewhere import NAMES, OPTIONS\n\n"
    assert found(imports + op(parameters, options=options), "REG108", "REG109") == expected


@pytest.mark.parametrize(
    ("mutates", "schema", "expected"),
    [
        ('("y",)', "(Tensor(a!) x, Tensor y) -> ()", [("REG109", '"y",')]),
        ('"unknown"', "(Tensor(a!) x, Tensor y) -> ()", [("REG109", '"unknown"')]),
        ('["x"]', "(Tensor(a!) x, Tensor y) -> ()", []),
        ("()", "(Tensor(a) x, Tensor y) -> Tensor(a)", []),
    ],
)
def test_mutates_args_beside_a_schema(mutates: str, schema: str, expected: list[tuple[str, str]]) -> None:
    options = f'mutates_args={mutates}, schema="{schema}"'
    assert found(op("x, y", "", options), "REG109") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('torch.library.define("kit::f", "(tensor x) -> Tensor")\n', [("REG110", "tensor")]),
        ('torch.library.define("kit::f", "f(Tensor x) -> Tensor")\n', [("REG110", "f")]),
        ('@torch.library.define(LIB, "f(Tensor x) -> Tensor")\ndef f(x):\n    return x.clone()\n', []),
        ('torch.library.define("kit::f", "(Tensor x, "\n    "int a -> Tensor")\n', [("REG110", "(")]),
        ('LIB.define(r"f(Tensor x, Tesor y, int x) -> Tensor")\n', [("REG110", "Tesor"), ("REG110", "x")]),
        ('SCHEMA = "(Tensor x, long a) -> Tensor"\ntorch.library.define("kit::f", SCHEMA)\n', [("REG110", "long")]),
        ('torch.library.define("kit::f", "(Tensor x)->Tensor")\n', [("REG110", '"(Tensor x)->Tensor"')]),
        ('LIB.define("f(Tensor x,int a)->Tensor")\n', []),
        ('LIB.define("f" + NAME + "(Tensor x, int a) -> Tensor")\n', []),
        ('torch.library.define("kit::f", "(Tensor x, str mode=\'a, b\') -> (Tensor, Tensor[])")\n', []),
    ],
)
def test_schema_strings(text: str, expected: list[tuple[str, str]]) -> None:
    imports = 'from elsewhere import NAME\n\nLIB = torch.library.Library("kit", "FRAGMENT")\n'
    assert found(imports + text, "REG110") == expected


def test_a_schema_string_is_fixed_in_its_place() -> None:
    assert fixed('torch.library.define("kit::f", "(tensor x, int a) -> Tensor")\n') == (
        'torch.library.define("kit::f", "(Tensor x, int a) -> Tensor")\n'
    )
    assert fixed('torch.library.define("kit::f", "f(Tensor x) -> Tensor")\n') == (
        'torch.library.define("kit::f", "(Tensor x) -> Tensor")\n'
    )


def test_a_schema_string_in_cpp() -> None:
    files = {"csrc/ops.cpp": 'TORCH_LIBRARY(kit, m) {\n  m.def("f(Tensor x, "\n        "flot a) -> Tensor");\n}\n'}
    linted = lint("", "REG110", files=files)
    assert [linted.text(item.place) for item in linted.diagnostics] == ["flot"]


@pytest.mark.parametrize(
    "name", ["f", "a::b::c", "kit::f.default", "kit::f.", "kit::", "kit::1f", "kit::class", "ki-t::f", "kit:f"]
)
def test_names_that_are_none(name: str) -> None:
    text = f'torch.library.define("{name}", "(Tensor x) -> Tensor")\n'
    assert found(text, "REG111") == [("REG111", f'"{name}"')]


@pytest.mark.parametrize("name", ["kit::f", "kit::_f.out", "aten::f", "kit::F2", "kit::print"])
def test_names_that_are_right(name: str) -> None:
    assert found(f'torch.library.define("{name}", "(Tensor x) -> Tensor")\n', "REG111", "REG112") == []


@pytest.mark.parametrize(
    "helper",
    [
        'return name if "::" in name else f"kit::{name}"',
        'if "::" not in name:\n        name = f"kit::{name}"\n    return name',
        'return name if name.count("::") else "kit::" + name',
        'if name.find("::") < 0:\n        return "kit::" + name\n    return name',
        'while "::" not in name:\n        name = "kit::" + name\n    return name',
        "return name if is_qualified(name) else f'kit::{name}'",
    ],
)
def test_a_name_that_a_function_completes(helper: str) -> None:
    text = f"def full(name):\n    {helper}\n"
    define = 'torch.library.define(full("{}"), "(Tensor x) -> Tensor")\n'
    assert found(text + define.format("f"), "REG111") == []
    assert {code for code, _ in found(text + define.format("a::b::c"), "REG111")} == {"REG111"}


def test_a_name_that_is_put_together_is_not_guessed() -> None:
    text = "def make(space, name):\n    torch.library.define(f'{space}{name}', '(Tensor x) -> Tensor')\n"
    assert found(text, "REG1") == []


DEFINE = 'torch.library.define("kit::f", "(Tensor x) -> Tensor")\n'
INNER = DEFINE.replace("torch", "    torch")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (DEFINE + DEFINE, 1),
        (DEFINE * 3, 2),
        (DEFINE + op("x: Tensor"), 1),
        (f"if FAST:\n{INNER}else:\n{INNER}", 0),
        (f"try:\n{INNER}except RuntimeError:\n    pass\n{DEFINE}", 0),
        (f"def first():\n{INNER}\n\ndef second():\n{INNER}", 0),
        (DEFINE + DEFINE.replace("::f", "::f.int").replace("x)", "x, int a)"), 0),
        (DEFINE + DEFINE.replace("kit::", "tools::"), 0),
    ],
)
def test_definitions_of_one_name(text: str, count: int) -> None:
    assert len(found("from elsewhere import FAST\n\n" + text, "REG113")) == count


def test_definitions_in_two_files_may_be_alternatives() -> None:
    assert found(DEFINE, "REG113", files={"kit/other.py": "import torch\n\n" + DEFINE}) == []


FAKE = '@torch.library.register_fake("kit::{}")\ndef fake(x):\n    return torch.empty_like(x)\n'
KERNEL = '@torch.library.impl("kit::g", "cpu")\ndef kernel(x):\n    return x.clone()\n'


@pytest.mark.parametrize(
    ("text", "severities"),
    [
        (DEFINE + FAKE.format("g"), ["error"]),
        (DEFINE + KERNEL, ["warning"]),
        (DEFINE + FAKE.format("f"), []),
        (DEFINE + FAKE.format("f.default"), []),
        (FAKE.format("g"), []),
        (
            DEFINE
            + "if hasattr(torch.ops.kit, 'g'):\n"
            + "".join(f"    {line}\n" for line in FAKE.format("g").splitlines()),
            [],
        ),
        (DEFINE + "torch.library.define(make(), '(Tensor x) -> Tensor')\n" + FAKE.format("g"), []),
        (DEFINE + "LIB = torch.library.Library('kit', 'FRAGMENT')\nLIB.define(make())\n" + FAKE.format("g"), []),
    ],
)
def test_registrations_for_nothing(text: str, severities: list[str]) -> None:
    linted = lint("from elsewhere import make\n\n" + text, "REG117")
    assert [item.severity.value for item in linted.diagnostics] == severities


@pytest.mark.parametrize(
    ("cpp", "count"),
    [
        ('TORCH_LIBRARY(_C, m) { m.def("gelu_and_mul(Tensor x) -> ()"); m.impl("gelu_mul", &f); }', 1),
        ('TORCH_LIBRARY(_C, m) { m.def("gelu_and_mul(Tensor x) -> ()"); m.impl("gelu_and_mul", &f); }', 0),
        ('TORCH_LIBRARY_IMPL(_C, CUDA, m) { m.impl("gelu_mul", &f); }', 0),
        ('TORCH_LIBRARY_IMPL(_C, CUDA, m) { m.impl("rms_nrom", &f); }', 1),
        ('TORCH_LIBRARY_IMPL(_C, CUDA, m) { m.impl("rms_norm_", &f); }', 0),
        ('TORCH_LIBRARY_IMPL(_C, CUDA, m) { m.impl("rms_norm", &f); }', 0),
        ('TORCH_LIBRARY_FRAGMENT(_C, m) { m.def(given()); m.impl("rms_nrom", &f); }', 0),
    ],
)
def test_kernels_in_namespaces_that_others_define_operators_in(cpp: str, count: int) -> None:
    own = 'TORCH_LIBRARY_FRAGMENT(_C, m) { m.def("rms_norm(Tensor x) -> ()"); }\n'
    include = "#include <torch/library.h>\n"
    files = {"csrc/own.cpp": include + own, "csrc/more.cpp": f"{include}void f(const at::Tensor& x);\n{cpp}\n"}
    found = lint_files([PACK], files, ["REG117"]).diagnostics
    assert [item.severity.value for item in found] == ["warning"] * count


@pytest.mark.parametrize(
    ("registered", "found"),
    [
        ("gh", ["kit::g", "kit::h"]),
        ("ghi", []),  # the others are in compiled code
        ("ghij", []),
    ],
)
def test_more_operators_than_the_tree_defines_are_defined_elsewhere(registered: str, found: list[str]) -> None:
    linted = lint(DEFINE + "".join(map(FAKE.format, registered)), "REG117")
    assert [op for item in linted.diagnostics for op in item.ops] == found


@pytest.mark.parametrize(
    ("loads", "files", "found"),
    [
        ("torch.ops.load_library(path)", {}, []),
        ("from . import _C", {}, []),
        ("from kit._C import *", {}, []),
        ("    from kit import (_C_cuda as c)", {}, []),
        ("from . import _C", {"kit/_C.py": ""}, ["kit::rotate", "kit::sacle"]),
        ("from . import _C", {"kit/_C/__init__.py": ""}, ["kit::rotate", "kit::sacle"]),
        ("from . import _C", {"csrc/a.cpp": ""}, ["kit::rotate", "kit::sacle"]),
        ("torch.ops.load_library(path)", {"csrc/a.cu": ""}, ["kit::rotate", "kit::sacle"]),
        ("import torch._C", {}, ["kit::rotate", "kit::sacle"]),
        ("from . import ops  # not _C", {}, ["kit::rotate", "kit::sacle"]),
    ],
)
def test_a_library_without_sources_may_define_more(loads: str, files: dict[str, str], found: list[str]) -> None:
    ops = HEAD + DEFINE.replace("::f", "::scale") + FAKE.format("sacle") + FAKE.format("rotate")
    loader = f"import torch\ntry:\n    {loads.strip()}\nexcept ImportError:\n    pass\n"
    linted = lint_files([PACK], {"kit/__init__.py": loader, "kit/ops.py": ops, **files}, ["REG117"])
    assert sorted(op for item in linted.diagnostics for op in item.ops) == (found or ["kit::sacle"])


def test_a_slip_in_a_name_is_told_where_others_are_defined_elsewhere() -> None:
    text = DEFINE.replace("::f", "::rotate") + "".join(map(FAKE.format, ("g", "h", "i", "rotaet")))
    assert [item.ops for item in lint(text, "REG117").diagnostics] == [("kit::rotaet",)]


def test_the_like_name_is_shown() -> None:
    text = DEFINE.replace("::f", "::rotate") + FAKE.format("rotat")
    assert lint(text, "REG117").diagnostics[0].message.endswith("did you mean `kit::rotate`?")


STACKED = "import torch._custom_ops as ops\n\n\n@ops.{}\n@ops.{}\ndef f(x: Tensor) -> Tensor:\n    return x.clone()\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (FAKE.format("f") + DEFINE, 1),
        (DEFINE + FAKE.format("f"), 0),
        (KERNEL.replace("::g", "::f") + DEFINE, 0),
        ("def late():\n" + INNER + "\n" + FAKE.format("f"), 0),
        (STACKED.format('impl_abstract("kit::f")', 'custom_op("kit::f")'), 0),  # the last decorator is applied first
        (STACKED.format('custom_op("kit::f")', 'impl_abstract("kit::f")'), 1),
    ],
)
def test_order_in_a_module(text: str, count: int) -> None:
    assert len(found(text, "REG118")) == count


@pytest.mark.parametrize(
    ("tag", "parameters", "mutates", "wrong"),
    [
        ("inplace", "x: Tensor, y: Tensor", '("x",)', False),
        ("inplace", "x: Tensor, y: Tensor", '("x", "y")', True),
        ("inplace", "x: Tensor", '"unknown"', True),
        ("inplace", "x: Tensor", "NAMES", False),
        ("out", "x: Tensor, *, out: Tensor", '("out",)', False),
        ("out", "x: Tensor, out: Tensor", '("out",)', True),
        ("needs_fixed_stride_order", "x: Tensor", "()", False),
    ],
)
def test_tags(tag: str, parameters: str, mutates: str, wrong: bool) -> None:
    options = f"mutates_args={mutates}, tags=(torch.Tag.{tag},)"
    codes = [
        code
        for code, _ in found("from elsewhere import NAMES\n\n" + op(parameters, options=options), "REG114", "REG115")
    ]
    assert codes == ["REG114"] * wrong


@pytest.mark.parametrize(
    ("parameters", "devices", "expected"),
    [
        ("a: int", '"cpu"', ['"cpu"']),
        ("a: int, device: Optional[torch.device]", '["cpu"]', ['["cpu"]']),
        ("a: int, *, device: torch.device", '"cpu"', ["device"]),
        ("a: int, device: torch.device = 'cpu'", '"cpu"', ["device"]),
        ("x: Tensor", '"cuda:0"', ['"cuda:0"']),
        ("a: int, device: torch.device", '"cpu"', []),
        ("a: int", "None", []),
        ("a: int", "DEVICES", []),
        ("x: Optional[Tensor]", '("cpu", "npu", "privateuseone")', []),
    ],
)
def test_device_types(parameters: str, devices: str, expected: list[str]) -> None:
    text = "from elsewhere import DEVICES\n\n" + op(parameters, options=f"mutates_args=(), device_types={devices}")
    assert [text for _, text in found(text, "REG116")] == expected


CUT = """
import torch


def op(schema, **options):
    name = schema.split("(")[0]
    written = options.pop("written", ())

    def decorate(function):
        return torch.library.custom_op("kit::" + name, function, mutates_args=written, schema={0}, **options)

    return decorate


@op("f(Tensor(a!) x, int n) -> ()", written=("x",), {1})
def f(x, n):
    x.add_(n)
"""


@pytest.mark.parametrize(
    ("schema", "more", "expected"),
    [
        ("schema[len(name):]", "device_types='cpu'", []),
        ("schema.removeprefix(name)", "device_types='cpu'", []),
        ("schema", "device_types='cpu'", ["REG110"]),
        ("schema[len(name):]", "device_type='cpu'", ["REG122"]),
    ],
)
def test_a_helper_that_takes_a_schema_and_options_apart(schema: str, more: str, expected: list[str]) -> None:
    linted = lint_files([PACK], {"kit.py": CUT.format(schema, more)}, ["REG110", "REG122"])
    assert linted.codes() == expected


GROWN = """
import torch
from torch import Tensor

names = ["first"]
{0}
for name in names:
    torch.library.define(f"kit::{{name}}", "(Tensor x) -> Tensor")


@torch.library.register_fake("kit::second")
def _(x):
    return torch.empty_like(x)
"""


@pytest.mark.parametrize(
    ("grows", "expected"),
    [
        ("names.append('second')", []),
        ("def more():\n    names.extend(given())", []),
        ("names += ['second']", []),
        ("others = [*names, 'second']", ["REG117"]),
    ],
)
def test_operators_of_a_list_that_grows(grows: str, expected: list[str]) -> None:
    assert lint_files([PACK], {"kit.py": GROWN.format(grows)}, ["REG117"]).codes() == expected


WRITER = """
import torch
from torch import Tensor


def op(name, mutates=()):
    mutates = [*mutates]
    {0}
    return lambda function: torch.library.custom_op("kit::" + name, function, mutates_args=mutates)


@op("f")
def f(x: Tensor, out: Tensor) -> None:
    out.copy_(x)
"""


@pytest.mark.parametrize(
    ("grows", "expected"),
    [("mutates.append('out')", []), ("'out' in mutates or mutates.insert(0, 'out')", []), ("pass", ["REG403"])],
)
def test_a_helper_that_adds_to_mutates_args(grows: str, expected: list[str]) -> None:
    assert lint_files([PACK], {"kit.py": WRITER.format(grows)}, ["REG403", "REG108"]).codes() == expected


def test_a_name_that_the_module_changes_between_calls() -> None:
    calls = 'name = "first"\nmake()\nname = "second"\nmake()\nname = "third"\n'
    text = (
        'import torch\n\n\ndef make():\n    torch.library.define(f"kit::{name}", "(Tensor x) -> Tensor")\n\n\n' + calls
    )
    for name, expected in (("first", []), ("second", []), ("third", ["REG117"])):
        fake = f'torch.library.register_fake("kit::{name}", lambda x: torch.empty_like(x))\n'
        assert lint_files([PACK], {"kit.py": text + fake}, ["REG117"]).codes() == expected
