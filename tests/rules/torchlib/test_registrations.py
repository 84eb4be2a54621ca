"""Registering code and the operators that are found in it."""

from __future__ import annotations

import time
from pathlib import Path
from textwrap import dedent

import pytest

from opschema_cli.importing_files import IMPORTED
from opschema_cli.project import Project
from opschema_cli.source.python_workers import Parsers
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.torchlib.detection import TorchlibOptions
from opschema_rules.torchlib.load import read_tree
from opschema_rules.torchlib.mentions import mentioned
from opschema_rules.torchlib.ops_words import BEHIND_OPS
from opschema_rules.torchlib.pack import PACK
from tests.rules.torchlib.operators_of import schema_of, told, tree_of

FOO = "def foo(x: Tensor) -> Tensor: ...\n"


def found(code: str) -> dict[str, list[str]]:
    return told(dedent(code))


def test_a_decorated_function_with_all_that_its_handle_registers() -> None:
    assert found("""
        @torch.library.custom_op("ns::foo", mutates_args=("y",), device_types="cuda")
        def foo(x: Tensor, y: Tensor, n: int = 3, *, scale: float = 1.0) -> Tensor: ...

        @foo.register_fake
        def _(x, y, n=3, *, scale=1.0): ...

        @foo.register_kernel("cpu")
        def foo_cpu(x, y, n=3, *, scale=1.0): ...

        @foo.register_vmap
        def batched(info, in_dims, *args): ...

        def setup(ctx, inputs, output): ...
        def backward(ctx, grad): ...
        foo.register_autograd(backward, setup_context=setup)
        foo.register_autocast("cuda", torch.float16)
    """) == {
        "ns::foo": [
            "(Tensor x, Tensor(a1!) y, SymInt n=3, *float scale=1.0) -> Tensor",
            "autograd backward",
            "autocast cuda",
            "fake _",
            "kernel cpu foo_cpu",
            "vmap batched",
        ]
    }  # fmt: skip


@pytest.mark.parametrize(
    "code",
    [
        '@torch.library.custom_op("ns::foo", mutates_args=())\n' + FOO,
        FOO + 'foo_op = torch.library.custom_op("ns::foo", foo, mutates_args=())',
        FOO + 'foo_op = torch.library.custom_op("ns::foo", mutates_args=())(foo)',
        "from torch.library import custom_op as op\n@op('ns::foo', mutates_args=())\n" + FOO,
        "import torch.library as lib\n@lib.custom_op('ns::foo', mutates_args=())\n" + FOO,
        "from functools import partial\nop = partial(torch.library.custom_op, mutates_args=())\n@op('ns::foo')\n" + FOO,
        "NAME = 'foo'\n@torch.library.custom_op(f'ns::{NAME}', mutates_args=())\n" + FOO,
        "NS = 'ns' + '::'\n@torch.library.custom_op(NS + 'foo', mutates_args=())\n" + FOO,
        "@torch.library.triton_op('ns::foo', mutates_args={})\n" + FOO,
        "from torch.library import *\nimport torch._library.custom_ops as c\n@c.custom_op('ns::foo', mutates_args=())\n" + FOO,
    ],
)  # fmt: skip
def test_ways_to_write_a_definition(code: str) -> None:
    assert told(code) == {"ns::foo": ["(Tensor x) -> Tensor"]}


def test_libraries() -> None:
    assert found("""
        lib = torch.library.Library("ns", "FRAGMENT")
        lib.define("foo(Tensor x, int n=1) -> Tensor")
        lib.define("bar.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")

        @torch.library.impl(lib, "foo", "CUDA")
        def foo_cuda(x, n): ...

        @torch.library.impl("ns::foo", ["cpu", "meta"])
        def foo_both(x, n): ...

        def foo_meta(x, n=1): ...
        lib.impl("foo", foo_meta, "Meta")
        lib._register_fake("bar.out", lambda x, *, out: out)
        only_cpu = torch.library.Library("ns", "IMPL", "CPU")
        only_cpu.impl("bar.out", foo_meta)
    """) == {
        "ns::foo": ["(Tensor x, int n=1) -> Tensor", "fake Meta foo_meta", "kernel CUDA foo_cuda", "kernel cpu,meta foo_both"],
        "ns::bar.out": ["(Tensor x, *Tensor(a!) out) -> Tensor(a!)", "fake <lambda>", "kernel CPU foo_meta"],
    }  # fmt: skip


def test_a_library_in_a_with_statement_and_one_that_is_made_late() -> None:
    assert found("""
        lib = None

        def make():
            global lib
            lib = torch.library.Library("late", "FRAGMENT") if lib is None else lib

        with torch.library._scoped_library("early", "FRAGMENT") as inner:
            inner.define("foo(Tensor x) -> Tensor")
        lib.define("bar(Tensor x) -> Tensor")
    """) == {"early::foo": ["(Tensor x) -> Tensor"], "late::bar": ["(Tensor x) -> Tensor"]}


def test_registrations_by_name_stand_in_other_files() -> None:
    assert told({
        "kit/__init__.py": "",
        "kit/names.py": "NS = 'kit'",
        "kit/ops.py": "import torch\nfrom kit.names import NS\n"
        "@torch.library.custom_op(f'{NS}::foo', mutates_args=())\ndef foo(x: torch.Tensor) -> torch.Tensor: ...",
        "kit/fakes.py": "from torch.library import register_fake\nimport torch\n"
        "@register_fake('kit::foo')\ndef fake(x): ...\n"
        "torch.library.register_autograd(torch.ops.kit.foo.default, None or fake)\n",
    }) == {"kit::foo": ["(Tensor x) -> Tensor", "autograd fake", "fake fake"]}  # fmt: skip


def test_a_factory_over_classes_makes_one_operator_with_many_names() -> None:
    assert found("""
        class Relu: _op_name = "relu"
        class Exp: _op_name = "exp"

        def register(cls):
            name = f"ns::unary_{cls._op_name}"

            @torch.library.custom_op(name, mutates_args=())
            def _wrapped(x: Tensor) -> Tensor: ...

            @_wrapped.register_fake
            def _(x): ...

            cls._wrapped = _wrapped

        for _cls in [Relu, Exp]:
            register(_cls)
        del _cls
    """) == {"ns::unary_exp ns::unary_relu": ["(Tensor x) -> Tensor", "fake _"]}


def test_a_factory_decides_by_what_it_is_given() -> None:
    assert found("""
        class A: pair = True
        class B: pair = False

        def register(cls, name):
            if cls.pair:
                @torch.library.custom_op(name, mutates_args=())
                def _fwd(x: Tensor) -> tuple[Tensor, Tensor]: ...

                @_fwd.register_fake
                def fake_of_two(x): ...
            else:
                @torch.library.custom_op(name, mutates_args=())
                def _fwd(x: Tensor) -> Tensor: ...

                @_fwd.register_fake
                def fake_of_one(x): ...

        for cls, name in ((A, "ns::a"), (B, "ns::b")):
            register(cls, name)
    """) == {
        "ns::a": ["(Tensor x) -> (Tensor, Tensor)", "fake fake_of_two"],
        "ns::b": ["(Tensor x) -> Tensor", "fake fake_of_one"],
    }


BRANCHES = """
    if version == 2:
        @torch.library.custom_op("ns::foo", mutates_args=())
        def foo(x: Tensor) -> tuple[Tensor, Tensor]: ...
        @torch.library.register_fake("ns::foo")
        def fake_of_two(x): ...
    elif version == 3:
        @torch.library.custom_op("ns::foo", mutates_args=())
        def foo(x: Tensor) -> Tensor: ...
        @torch.library.register_fake("ns::foo")
        def fake_of_one(x): ...
"""


def test_what_is_registered_by_name_is_for_the_definition_in_the_same_branch() -> None:
    operators = tree_of(dedent(BRANCHES)).operators
    assert [[item.function.function.name for item in one.registrations] for one in operators] == [
        ["fake_of_two"],
        ["fake_of_one"],
    ]


def test_what_stands_in_no_other_branch_may_be_for_each_definition() -> None:
    operators = tree_of(dedent(BRANCHES.replace("elif version == 3", "if version == 3"))).operators
    assert [len(item.registrations) for item in operators] == [2, 2]


def test_nested_functions_of_one_name_are_told_apart_by_scope() -> None:
    assert found("""
        def first():
            @torch.library.custom_op("ns::a", mutates_args=())
            def op(x: Tensor) -> Tensor: ...
            @op.register_fake
            def fake_a(x): ...

        def second():
            @torch.library.custom_op("ns::b", mutates_args=())
            def op(x: Tensor, y: Tensor) -> Tensor: ...
            @op.register_fake
            def fake_b(x, y): ...

        first()
        second()
    """) == {
        "ns::a": ["(Tensor x) -> Tensor", "fake fake_a"],
        "ns::b": ["(Tensor x, Tensor y) -> Tensor", "fake fake_b"],
    }


HELPER = """
from torch.library import Library, infer_schema
my_lib = Library("own", "FRAGMENT")

def direct_register(op_name, op_func, mutates_args=None, fake_impl=None, target_lib=None, dispatch_key="CUDA"):
    if mutates_args is None:
        mutates_args = []
    schema_str = infer_schema(op_func, mutates_args=mutates_args)
    lib = target_lib or my_lib
    lib.define(op_name + schema_str)
    lib.impl(op_name, op_func, dispatch_key=dispatch_key)
    if fake_impl is not None:
        lib._register_fake(op_name, fake_impl)
"""


def test_a_helper_is_followed_from_each_of_its_calls() -> None:
    files = {
        "kit/__init__.py": "",
        "kit/helper.py": HELPER,
        "kit/ops.py": "import torch\nfrom kit.helper import direct_register\n"
        "def foo(x: torch.Tensor, out: torch.Tensor) -> None: ...\n"
        "def fake(x, out): ...\n"
        "direct_register(op_name='foo', op_func=foo, mutates_args=['out'], fake_impl=fake, dispatch_key='CPU')\n"
        "def bar(x: torch.Tensor) -> torch.Tensor: ...\n"
        "direct_register('bar', bar)\n",
    }
    assert told(files) == {
        "own::foo": ["(Tensor x, Tensor(a1!) out) -> ()", "kernel CPU foo", "fake fake"],
        "own::bar": ["(Tensor x) -> Tensor", "kernel CUDA bar"],
    }
    places = [item.place.path for item in tree_of(files).operators]
    assert places == ["kit/ops.py", "kit/ops.py"]


def test_vllms_helper_is_known_where_it_is_imported_from_vllm() -> None:
    assert found("""
        from vllm.utils.torch_utils import direct_register_custom_op

        def foo(x: Tensor, out: Tensor) -> None: ...
        def fake(x, out): ...

        direct_register_custom_op("foo", foo, mutates_args=["out"], fake_impl=fake, dispatch_key="PrivateUse1")
    """) == {"vllm::foo": ["(Tensor x, Tensor(a1!) out) -> ()", "fake fake", "kernel PrivateUse1 foo"]}


def test_a_decorator_of_the_tree_that_registers() -> None:
    assert found("""
        def cute_op(name, *, mutates_args, schema=None):
            def dec(fn):
                kwargs = {"mutates_args": mutates_args}
                if schema is not None:
                    kwargs["schema"] = schema
                op = torch.library.custom_op(name, fn, **kwargs)

                @op.register_fake
                def _fake(*args, **kw): ...

                return op
            return dec

        @cute_op("ns::foo", mutates_args=("out",))
        def foo(x: Tensor, out: Tensor) -> None: ...

        @cute_op("ns::bar", mutates_args=("out",), schema="(Tensor x, Tensor(a!) out) -> ()")
        def bar(x, out): ...

        @foo.register_kernel("cpu")
        def on_cpu(x, out): ...
    """) == {
        "ns::foo": ["(Tensor x, Tensor(a1!) out) -> ()", "fake _fake", "kernel cpu on_cpu"],
        "ns::bar": ["(Tensor x, Tensor(a!) out) -> ()", "fake _fake"],
    }


def test_what_may_not_take_place() -> None:
    assert found("""
        try:
            from torch.library import register_fake
        except ImportError:
            from torch.library import impl_abstract as register_fake

        @torch.library.custom_op("ns::foo", mutates_args=())
        def foo(x: Tensor) -> Tensor: ...

        if torch.cuda.is_available():
            @register_fake("ns::foo")
            def fake(x): ...

        def never_called():
            foo.register_kernel("cpu", foo)
    """) == {"ns::foo": ["(Tensor x) -> Tensor", "fake fake (perhaps)", "kernel cpu ? (perhaps)"]}


def test_the_apis_before_custom_op() -> None:
    assert found("""
        from torch._custom_op.impl import custom_op
        import torch._custom_ops as ops

        def two(x: Tensor, eps: float = 1e-5) -> Tensor: ...

        @custom_op("ns::foo")
        def foo(x: Tensor) -> Tensor: ...

        @foo.impl("cpu")
        def foo_cpu(x): ...

        @foo.impl_abstract()
        def foo_abstract(x): ...

        @ops.custom_op("ns::bar")
        def bar(x: Tensor) -> Tensor: ...

        @ops.impl("ns::bar", device_types="cuda")
        def bar_cuda(x): ...

        @custom_op(qualname="ns::baz", manual_schema="(Tensor x, int n) -> Tensor")
        def baz(x, n): ...

        @custom_op("ns::bat", "(Tensor x) -> Tensor")
        def bat(x): ...

        @bat.impl("cuda")
        def bat_cuda(x): ...

        ops.custom_op("ns::box", func_or_schema="(Tensor x) -> Tensor")
        ops.custom_op("ns::bag", "(Tensor x, int n) -> Tensor")
        ops.custom_op("ns::two", two)

        @ops.impl("ns::bag")
        @ops.impl_abstract("ns::bag")
        def bag(*args): ...
    """) == {
        "ns::foo": ["(Tensor x) -> Tensor", "kernel cpu foo_cpu", "fake foo_abstract"],
        "ns::bar": ["(Tensor x) -> Tensor", "kernel cuda bar_cuda"],
        "ns::baz": ["(Tensor x, int n) -> Tensor"],
        "ns::bat": ["(Tensor x) -> Tensor", "kernel cuda bat_cuda"],
        "ns::box": ["(Tensor x) -> Tensor"],
        "ns::bag": ["(Tensor x, int n) -> Tensor", "fake bag", "kernel cpu,cuda bag"],
        "ns::two": ["(Tensor x, float eps=1e-05) -> Tensor"],
    }


@pytest.mark.parametrize(
    ("code", "complete"),
    [
        ("", True),
        ("for name in load():\n    torch.library.register_fake(name, fake)", False),
        ("for name in load():\n    torch.library.register_fake(f'other::{name}', fake)", True),
        ("for name in load():\n    torch.library.register_fake(f'ns::{name}', fake)", False),
        ("from elsewhere import decorate\ndecorate(foo)", False),
        ("torch.compile(foo)", True),
        ("def helper(name, function):\n    torch.library.register_fake(name, function)", True),
        (
            "def make(name):\n    def deco(f):\n        return torch.library.register_fake(name)(f)\n    return deco",
            True,
        ),
    ],
)
def test_complete(code: str, complete: bool) -> None:
    start = '@torch.library.custom_op("ns::foo", mutates_args=())\n' + FOO
    tree = tree_of(start + code)
    assert [item.complete for item in tree.operators] == [complete]


def test_what_no_operator_is_defined_for() -> None:
    code = '@torch.library.custom_op("ns::foo", mutates_args=())\n' + FOO
    tree = tree_of(code + "torch.library.register_fake('ns::fooo', foo)\ntorch.library.register_fake('aten::add', foo)")
    assert [item.name for item in tree.strays] == ["ns::fooo"]


def test_calls() -> None:
    tree = tree_of({
        "kit/__init__.py": "",
        "kit/ops.py": "import torch\n"
        "@torch.library.custom_op('kit::foo', mutates_args=())\ndef foo(x: torch.Tensor) -> torch.Tensor: ...\n"
        "def use(x):\n    return foo(x)\n",
        "kit/far.py": "from kit.ops import foo as f\nimport torch\n"
        "def use(x, foo):\n    foo(x)\n    f(x)\n    op = torch.ops.kit.foo.default\n    op(x)\n    torch.ops.kit.foo(x)\n",
    })  # fmt: skip
    calls = [(item.place.path, item.body.file.text(item.call), item.through) for item in tree.operators[0].calls]
    assert calls == [
        ("kit/ops.py", "foo(x)", "handle"),
        ("kit/far.py", "f(x)", "handle"),
        ("kit/far.py", "op(x)", "torch.ops"),
        ("kit/far.py", "torch.ops.kit.foo(x)", "torch.ops"),
    ]


RUN = "    def run(self, x):\n        self._op(x)\n"

CLASSES = """
class Op:
    _wrapped = None
    def forward(self, x):
        return type(self)._wrapped(x)
class Relu(Op):
    name = "relu"
class Exp(Op):
    name = "exp"

def register(cls):
    @torch.library.custom_op(f"ns::{cls.name}", mutates_args=())
    def _fwd(x: Tensor) -> Tensor: ...
    SET

for _cls in (Relu, Exp):
    register(_cls)
"""


@pytest.mark.parametrize("written", ["cls._wrapped = _fwd", "setattr(cls, '_wrapped', _fwd)"])
def test_calls_of_an_operator_that_classes_hold(written: str) -> None:
    (operator,) = tree_of(CLASSES.replace("SET", written)).operators
    assert operator.names == frozenset({"ns::relu", "ns::exp"})
    assert [item.body.file.text(item.call) for item in operator.calls] == ["type(self)._wrapped(x)"]


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        ("class K:\n    def __init__(self):\n        self._op = foo\n" + RUN, ["self._op(x)"]),
        ("class K:\n    _op = foo\n" + RUN + "        type(self)._op(x)\n", ["self._op(x)", "type(self)._op(x)"]),
        ("class K:\n    def run(self, x):\n        self._op(x)\nK._op = foo\n", ["self._op(x)"]),
        ("class K:\n    @torch.library.custom_op('ns::foo', mutates_args=())\n    def op(x: Tensor) -> Tensor: ...\n"
         "    def run(self, x):\n        self.op(x)\n", ["self.op(x)"]),
        ("class K:\n    def __init__(self, op=None):\n        self._op = op or foo\n" + RUN, []),
        ("class K:\n    def __init__(self):\n        self._op = foo\n    def swap(self):\n        self._op = print\n"
         "    def run(self, x):\n        self._op(x)\n", []),
        ("class K:\n    def foo(self, x): ...\n    def run(self, x):\n        self.foo(x)\n", []),
        ("bar = torch.library.custom_op('ns::bar', foo._init_fn, mutates_args=())\nclass K: ...\nclass L(K):\n    op = foo\n"
         "class M(K):\n    op = bar\nK.op = foo\nM.op = bar\ndef run(self: K, x):\n    self.op(x)\n", []),
    ],
)  # fmt: skip
def test_calls_through_attributes(code: str, calls: list[str]) -> None:
    head = '@torch.library.custom_op("ns::foo", mutates_args=())\n' + FOO
    found = [call for item in tree_of(head + code).operators for call in item.calls]
    assert [item.body.file.text(item.call) for item in found] == calls


def test_a_helper_that_computes_the_schema_tells_the_name_where_it_registers() -> None:
    assert found("""
        lib = None

        def guard(gen_fake=None):
            def decorator(func):
                def fake(*args):
                    return gen_fake(*args)
                global lib
                lib = torch.library.Library("own", "FRAGMENT") if lib is None else lib
                before, after = torch.library.infer_schema(func, mutates_args="unknown").split("->", 1)
                schema = f"{before} -> {after}".strip()
                name = func.__name__
                lib.define(f"{name}" + schema)
                lib.impl(f"{name}", func, dispatch_key="CUDA")
                lib._register_fake(f"{name}", fake)
                return func
            return decorator

        @guard()
        def first(x: Tensor) -> Tensor: ...

        @guard(gen_fake=first)
        def second(x: Tensor, y: Tensor) -> Tensor: ...
    """) == {
        "own::first": ["?", "kernel CUDA first", "fake fake"],
        "own::second": ["?", "kernel CUDA second", "fake fake"],
    }


def test_a_template_of_cpp_leaves_open_what_it_may_name() -> None:
    files = {
        "ops.py": "import torch\nlib = torch.library.Library('ns', 'FRAGMENT')\n"
        "lib.define('lookup_sgd_forward(Tensor x) -> Tensor')\nlib.define('other(Tensor x) -> Tensor')\n"
        "torch.library.register_fake('ns::made_by_template', print)\n",
        "csrc/ops_template.cpp": '#include <torch/library.h>\nTORCH_LIBRARY_FRAGMENT(ns, m) {\n'
        '{%- for kind in kinds %}\n  m.def("lookup_{{ kind }}_forward_more(Tensor x) -> Tensor");\n'
        '  m.impl("lookup_{{ kind }}_forward", {{ kind }});\n{%- endfor %}\n}\n',
    }  # fmt: skip
    tree = tree_of(files)
    complete = {name: item.complete for item in tree.operators for name in item.names or ()}
    assert complete["ns::lookup_sgd_forward"] is False
    assert complete["ns::other"] is True
    assert tree.strays == []
    assert any("template" in reason for _, reason in tree.unresolved)


def test_cpp_defines_and_python_registers() -> None:
    assert told({
        "csrc/ops.cpp": '#include <torch/library.h>\nTORCH_LIBRARY(ns, m) {\n  m.def("foo(Tensor x) -> Tensor");\n}\n'
        "TORCH_LIBRARY_IMPL(ns, CUDA, m) {\n  m.impl(\"foo\", &foo);\n}\n",
        "ops.py": "import torch\n@torch.library.register_fake('ns::foo')\ndef fake(x): ...\n",
    }) == {"ns::foo": ["(Tensor x) -> Tensor", "fake fake", "kernel CUDA"]}  # fmt: skip


@pytest.mark.parametrize(
    "code",
    [
        "custom_op = lambda *a: a\ncustom_op('ns::foo', 1)",
        "class K:\n    def impl(self, x): return self.impl(x)\n    def define(self): self.define()",
        "x = x\ntorch.library.register_fake(x, x)",
        "def f(g): return f(f)(g)\n@f\ndef h(): ...\ntorch.library.custom_op(f, h, mutates_args=())",
        "torch.library.custom_op(*args, **kwargs)\ntorch.library.define()\ntorch.library.impl()()()",
        "a = b if a else b\nb = a if b else a\na.define(b)\ntorch.library.Library(a, b).define(a)",
        "for i in range(10**9):\n    torch.library.define(f'ns::{i}', '')",
    ],
)  # fmt: skip
def test_what_makes_no_sense_gives_no_operator(code: str) -> None:
    assert told(code) == {}


@pytest.mark.parametrize(
    "head",
    [
        "def first(name, f):\n    return torch.library.custom_op(name, mutates_args=())(f)\n"
        "def second(name, f):\n    return first(name, f)\n"
        "def third(name, f):\n    return second(name, f)\n",
        "def third(name, f):\n    return second(name, f)\n"
        "def second(name, f):\n    return first(name, f)\n"
        "def first(name, f):\n    return torch.library.custom_op(name, mutates_args=())(f)\n",
        "from torch.library import custom_op as mine\ndef third(name, f):\n    return mine(name, mutates_args=())(f)\n",
    ],
)
def test_helpers_that_call_helpers_of_their_own_file_are_followed(head: str) -> None:
    text = f"import torch\n{head}def f(x: torch.Tensor) -> torch.Tensor: ...\nthird('kit::f', f)\n"
    assert [item.names for item in tree_of(text).operators] == [frozenset({"kit::f"})]


def test_a_lambda_registers_as_a_function_does() -> None:
    assert found("""
        lib = torch.library.Library("ns", "DEF")
        def foo(x): return x

        define = lambda name: lib.define(name + "(Tensor x) -> Tensor")
        define("foo")

        def outer(name):
            impl = lambda key: lib.impl(name, foo, key)
            impl("CPU")
        outer("foo")
    """) == {"ns::foo": ["(Tensor x) -> Tensor", "kernel CPU foo"]}


CHAIN = {
    "a.py": """\
from torch.library import Library
lib = Library("ns", "DEF")
def register_op(schema, function):
    lib.define(schema)
    lib.impl(schema.split("(")[0], function, "CPU")
""",
    "b.py": """\
from a import register_op
def register_again(schema, function):
    register_op(schema, function)
def f(x): return x
register_op("f(Tensor x) -> Tensor", f)
""",
    "c.py": """\
from b import register_again
def g(x): return x
register_again("g(Tensor x) -> Tensor", g)
""",
}


def test_what_is_read_ahead_leads_to_the_same_operators() -> None:
    """The pack is asked what it reads on while it waits for a file of its own."""
    parsers = Parsers(1)
    project = Project(Workspace(Path("/nowhere"), CHAIN), parsers=lambda: parsers)
    options = TorchlibOptions()

    def read_on() -> None:
        more = list(PACK.speed.reads_on(project, options))
        if more:
            project.load_python(more, ahead=True)
            project.when_parsed(more, read_on)

    try:
        project.load_python(["a.py"], ahead=True)
        project.when_parsed(["a.py"], read_on)
        operators = read_tree(project, options).operators
        assert sorted(name for item in operators for name in item.names or ()) == ["ns::f", "ns::g"]
    finally:
        parsers.close()


def test_the_names_that_a_file_mentions_are_found_in_time_that_grows_with_it() -> None:
    text = (
        "from .kit import one, two as three\nfrom star import *\n\tfrom kit.deep import (\n    four,\n    five\n)\n"
        "import kit.six, seven as eight\n# from no import nine\nx = 1; import ten\ntorch.ops.kit.eleven.default(x)\n"
    )
    expected = {
        "one",
        "two",
        "star.*",
        "four",
        "five",
        "six",
        "seven",
        "kit",
        "eleven",
        "default",
    }
    assert _mentioned(text) == expected
    for line in ("import a from b import ", "# see: from a import (b\n"):
        started = time.process_time()
        _mentioned(line * 20_000)
        assert time.process_time() - started < 1.0


def _mentioned(text: str) -> set[str]:
    data = text.encode()
    return mentioned(BEHIND_OPS.read(data), IMPORTED.read(data))


WRAPPER = """
    lib = torch.library.Library("ns", "FRAGMENT")

    class Registered:
        def __init__(self, name, function, mutated, **more):
            self.name, self.function, self.mutated, self.more = name, function, mutated, more

        @property
        def handle(self):
            if not hasattr(torch.ops.ns, self.name):
                lib.define(self.name + torch.library.infer_schema(self.function, mutates_args=self.mutated))
                lib.impl(self.name, self.function, "CUDA")
                lib._register_fake(self.name, self.fake)
            return getattr(torch.ops.ns, self.name)

        @property
        def fake(self):
            return self.more["fake"] if "fake" in self.more else nothing

    def nothing(*args): ...

    def registered(function=None, *, name=None, mutated=None, eager=True, **more):
        def decorator(function):
            made = Registered(name or function.__name__, function, mutated or [], **more)
            return made.handle if eager else made

        return decorator if function is None else decorator(function)
"""


def test_a_property_of_an_object_registers_when_it_is_read() -> None:
    assert found(dedent(WRAPPER) + dedent("""
        def fake_foo(x): ...

        @registered(fake=fake_foo)
        def foo(x: Tensor) -> Tensor: ...

        @registered(name="fill", mutated=["x"])
        def _fill(x: Tensor) -> None: ...

        @registered
        def plain(x: Tensor) -> Tensor: ...
    """)) == {
        "ns::foo": ["(Tensor x) -> Tensor", "kernel CUDA foo (perhaps)", "fake fake_foo (perhaps)"],
        "ns::fill": ["(Tensor(a0!) x) -> ()", "kernel CUDA _fill (perhaps)", "fake nothing (perhaps)"],
        "ns::plain": ["(Tensor x) -> Tensor", "kernel CUDA plain (perhaps)", "fake nothing (perhaps)"],
    }  # fmt: skip


def test_a_property_that_is_not_read_may_be_read_later() -> None:
    assert found(dedent(WRAPPER) + dedent("""
        @registered(eager=False)
        def foo(x: Tensor) -> Tensor: ...
    """)) == {"ns::foo": ["(Tensor x) -> Tensor", "kernel CUDA foo (perhaps)", "fake nothing (perhaps)"]}  # fmt: skip


def test_a_constructor_registers_by_the_attributes_that_it_has_set() -> None:
    assert found("""
        lib = torch.library.Library("ns", "FRAGMENT")

        class Op:
            def __init__(self, name, function):
                self.name = name
                self.schema = torch.library.infer_schema(function, mutates_args=[])
                self.fake = function
                lib.define(self.name + self.schema)
                lib._register_fake(self.name, self.fake)

        def op(function=None, *, name=None):
            def decorator(function):
                word: str = function.__name__ if name is None else name
                return Op(word, function)

            if function is not None:
                return decorator(function)
            return decorator

        @op
        def foo(x: Tensor) -> Tensor: ...

        @op(name="bar")
        def other(x: Tensor, n: int) -> Tensor: ...
    """) == {
        "ns::foo": ["(Tensor x) -> Tensor", "fake foo"],
        "ns::bar": ["(Tensor x, SymInt n) -> Tensor", "fake other"],
    }


def test_a_method_of_an_object_takes_the_rest_of_its_parameters() -> None:
    assert found("""
        lib = torch.library.Library("ns", "DEF")
        lib.define("foo(Tensor x, float s) -> Tensor")

        class Kernels:
            def foo(self, x, s): ...

        lib.impl("foo", Kernels().foo, "CPU")
    """) == {"ns::foo": ["(Tensor x, float s) -> Tensor", "kernel CPU foo"]}
    code = 'lib = torch.library.Library("ns", "DEF")\nlib.define("foo(Tensor x) -> Tensor")\n'
    method = "class Kernels:\n    def foo(self, x{more}): ...\n\n\nlib.impl('foo', Kernels().foo, 'CPU')\n"
    head = "import torch\n\n"
    for more, codes in (("", set[str]()), (", s", {"REG202"})):
        linted = lint_files(PACK, {"ops.py": head + code + method.format(more=more)})
        assert {item.code for item in linted.diagnostics} - {"REG206"} == codes


def test_operators_of_a_wrapper_whose_names_are_not_known_are_kept_apart() -> None:
    text = """
import torch
from elsewhere import prefixed


def wrapped(name, schema):
    def decorate(fn):
        def backend(*args):
            return fn(*args)

        made = torch.library.custom_op(name, backend, mutates_args=(), schema=schema)
        made.register_fake(fn)
        return made

    return decorate


@wrapped(prefixed("a"), "(Tensor x) -> Tensor")
def a(x):
    return x.clone()


@wrapped(prefixed("b"), "(Tensor x) -> (Tensor, Tensor)")
def b(x):
    return x.clone(), x.clone()
"""
    tree = tree_of({"kit/ops.py": text})
    assert [schema_of(item) for item in tree.operators] == ["(Tensor x) -> Tensor", "(Tensor x) -> (Tensor, Tensor)"]
    assert [len(item.registrations) for item in tree.operators] == [1, 1]


BUILDER = """
from torch.library import Library

LIB = Library("kit", "DEF")


class Builder:
    def register(self, proto):
        if isinstance(proto, str):
            proto = [proto]
        for item in proto:
            LIB.define(item)
"""


def test_a_parameter_that_is_assigned_again_stands_for_what_is_assigned() -> None:
    one = """
class One(Builder):
    PROTO = "f(Tensor x) -> Tensor"

    def __init__(self):
        self.register(self.PROTO)


class Two(Builder):
    PROTO = ("g(Tensor x) -> Tensor", "h(Tensor x) -> Tensor")

    def __init__(self):
        self.register(self.PROTO)


def prefixed(name):
    name = "my_" + name
    LIB.define(name + "(Tensor x) -> Tensor")


prefixed("k")
"""
    assert sorted(told({"kit/ops.py": BUILDER + one})) == ["kit::f", "kit::g", "kit::h", "kit::my_k"]


def test_a_class_registers_by_what_its_base_inherits() -> None:
    files = {
        "kit/__init__.py": "",
        "kit/builder.py": BUILDER,
        "kit/public.py": "from kit.builder import Builder\n\n\nclass Public(Builder):\n    pass\n",
        "kit/ops.py": (
            "from torch.library import impl\nfrom kit.builder import LIB\nfrom kit.public import Public\n\n\n"
            "class Quant(Public):\n    def __init__(self):\n        self.register('q(Tensor x) -> Tensor')\n"
        ),
    }
    assert list(told(files)) == ["kit::q"]
