"""Carriers in every shape, and the real scalars, buffers and inputs that look like one."""

from __future__ import annotations

import textwrap

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

OP, YAML = "kit/ops/example.py", "kit/manifest/example.yaml"
CODES = ["CAR101", "CAR102", "CAR103", "CAR104"]

ENTRY = """\
signature:
  inputs:
    like: {dtype: "float16 | float32", shape: "[]"}
  outputs:
    y: {dtype: "same_as(like)", shape: "[n]"}
  params:
    n: {type: int}
  shape_rules: ["n > 0"]
workloads:
  - {like_shape: [], n: 4, dtypes: [float16], label: "small"}
  - {like_shape: [], n: 1024, dtypes: [float32], label: "large"}
roofline: {flops: "n", bytes: "n * elem_bytes"}
"""

CLASS = """\
class ExampleFwdOp(Op):
    _op_name = "example"
    _wrapped = None

    def __init__(self, n: int, dtype: torch.dtype, *, kernel_map=None):
        self.n = n
        self._c = torch.empty((), dtype=dtype, device="cuda")
        self._key = id(self)

    def _eager(self):
        return self.kernel_map["example"](self.n)

    def forward(self) -> torch.Tensor:
        wrapped = type(self)._wrapped
        if wrapped is not None:
            return wrapped(self._c, self.n, self._key)
        return self._eager()
"""

REGISTRATION = """\

REGISTRY = {}


def _register(op_cls, fake):
    op_name = op_cls._op_name

    @torch.library.custom_op(f"top::elementwise_{op_name}", mutates_args=())
    def _wrapped(like: torch.Tensor, n: int, key: int) -> torch.Tensor:
        return REGISTRY[key]._eager()

    @_wrapped.register_fake
    def _(like: torch.Tensor, n: int, key: int) -> torch.Tensor:
        return fake(like, n)

    op_cls._wrapped = _wrapped


_register(ExampleFwdOp, fake=lambda like, n: like.new_empty((n,)))
"""


def lint(code: str, entry: str = ENTRY, **files: str) -> Linted:
    texts = example_files([("yaml", entry), ("python", code)]) | files
    return lint_files([PACK], texts, CODES)


def found(linted: Linted, code: str) -> list[str]:
    """The texts at the places of one rule's findings."""
    return [linted.text(item.place) for item in linted.diagnostics if item.code == code]


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """``text`` with each pair's first half, which it holds once, replaced by the second."""
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def method(name: str, body: str) -> str:
    """``CLASS`` with one method in place of its own."""
    head, _, tail = CLASS.partition(f"    def {name}(")
    rest = tail.partition("\n\n")
    return head + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n" + rest[1] + rest[2]


def test_both_sides_of_a_carrier() -> None:
    linted = lint(CLASS + REGISTRATION)
    assert sorted(linted.codes()) == CODES
    by_code = {item.code: item for item in linted.diagnostics}

    declared = by_code["CAR101"]
    assert (declared.place.path, linted.text(declared.place)) == (YAML, "like")
    assert declared.message == (
        "`like` is a carrier: `forward()` does not take it, it is 0-dimensional and only lends its dtype or device; "
        "drop it and declare a `dtype` param"
    )
    assert [(linted.text(item.place), item.message) for item in declared.related] == [
        ("forward", "`forward()` takes no argument"),
        ("self._c", "the op makes `self._c` itself"),
    ]

    kept = by_code["CAR102"]
    assert (kept.place.path, linted.text(kept.place)) == (OP, "self._c")
    assert [(linted.position(item.place).line, item.message) for item in kept.related] == [
        (linted.project.source(OP).text[: linted.project.source(OP).text.index("self._c, self.n")].count("\n") + 1,
         "passed to the custom op"),
        (linted.position(by_code["CAR104"].place).line, "the op never uses the values of `like`"),
    ]  # fmt: skip

    lent = by_code["CAR103"]
    assert linted.text(lent.place) == "same_as(like)"
    assert lent.message.endswith("write `float16 | float32`")

    param = by_code["CAR104"]
    assert linted.text(param.place) == "like"
    assert linted.project.source(OP).text[: param.place.span.start].endswith("def _wrapped(")
    assert [linted.text(item.place) for item in param.related] == ["like", "self._c"]
    assert {item.ops for item in linted.diagnostics} == {("ExampleFwdOp",)}


DEMANDING = """\
from kit.manifest import load_manifest


def test_every_signature_has_inputs():
    for entry in load_manifest().values():
        assert len(entry["signature"]["inputs"]) >= 1
"""


@pytest.mark.parametrize(
    ("spec", "test", "severity"),
    [('["latest"]', DEMANDING, "error"), ("[]", "", "error"), ("[]", DEMANDING, "warning")],
    ids=["accepts-empty", "demands-nothing", "demands-one"],
)
def test_a_tree_that_demands_an_input_is_warned_only(spec: str, test: str, severity: str) -> None:
    files = {"opschema.toml": f"[tileops]\nspec = {spec}\n", "tests/test_manifest.py": test}
    linted = lint(CLASS + REGISTRATION, **files)
    assert {item.severity.value for item in linted.diagnostics} == {severity}


FORWARDS = {
    "attribute-called": "return type(self)._wrapped(self._c, self.n, self._key)",
    "self-attribute": "return self._wrapped(self._c, self.n, self._key)",
    "class-attribute": "return self.__class__._wrapped(self._c, self.n, self._key)",
    "named-class": "return ExampleFwdOp._wrapped(self._c, self.n, self._key)",
    "named-type": "cls = type(self)\nreturn cls._wrapped(self._c, self.n, self._key)",
    "walrus": "if (op := type(self)._wrapped) is not None:\n    return op(self._c, self.n, self._key)\nreturn self._eager()",
    "getattr": 'return getattr(type(self), "_wrapped")(self._c, self.n, self._key)',
    "keyword": "op = self._wrapped\nreturn op(key=self._key, n=self.n, like=self._c)",
    "local": "carrier = self._c\nreturn self._wrapped(carrier, self.n, self._key)",
    "torch-ops": "return torch.ops.top.elementwise_example(self._c, self.n, self._key)",
    "torch-ops-overload": "return torch.ops.top.elementwise_example.default(self._c, self.n, self._key)",
    "torch-ops-getattr": 'return getattr(torch.ops.top, "elementwise_example")(self._c, self.n, self._key)',
}


@pytest.mark.parametrize("body", FORWARDS.values(), ids=FORWARDS)
def test_however_the_custom_op_is_called(body: str) -> None:
    code = method("forward", "def forward(self) -> torch.Tensor:\n" + textwrap.indent(body, "    "))
    linted = lint(code + REGISTRATION)
    assert sorted(linted.codes()) == CODES
    assert found(linted, "CAR102") == ["self._c"]


CREATIONS = {
    "list": "torch.zeros([], dtype=dtype)",
    "size": "torch.ones(size=(), dtype=dtype)",
    "full": "torch.full((), 0.0)",
    "torch-size": "torch.empty(torch.Size([]), dtype=dtype)",
    "tensor": "torch.tensor(0.0)",
    "negative": "torch.tensor(-1, dtype=dtype)",
    "new": "kernel_map.new_empty(())",
    "moved": "torch.empty(()).to(dtype).cuda()",
    "no-grad": "torch.empty((), requires_grad=False)",
    "squeezed": "torch.zeros(1, dtype=dtype).squeeze()",
    "squeezed-place": "torch.zeros((1, 1)).squeeze(0).squeeze(-1)",
    "reshaped": "torch.zeros(1).reshape(())",
    "viewed": "torch.ones(1, 1).view([])",
    "element": "torch.zeros(1, dtype=dtype)[0]",
    "last-element": "torch.zeros(4)[-1].to(dtype)",
    "element-of-two": "torch.zeros(2, 3)[1, 2]",
    "element-of-values": "torch.tensor([0.0, 1.0])[0]",
    "new-of-converted": "kernel_map.to(dtype).new_empty(())",
    "new-squeezed": "kernel_map.new_full((1,), 0.0).squeeze()",
    "converted": "torch.empty((), device='cuda').to(dtype)",
    "expanded": "torch.ones(()).expand(())",
    "named-size": "torch.empty(SCALAR)",
}


@pytest.mark.parametrize("value", CREATIONS.values(), ids=CREATIONS)
def test_however_the_tensor_is_made(value: str) -> None:
    code = "SCALAR = ()\n\n\n" + changed(CLASS, ('torch.empty((), dtype=dtype, device="cuda")', value))
    assert found(lint(code + REGISTRATION), "CAR102") == ["self._c"]


NO_CREATIONS = {
    "one-element": "torch.zeros(1)",
    "one-element-again": "torch.zeros(1).squeeze().reshape(1)",
    "two-elements": "torch.zeros(2).squeeze()",
    "two-reshaped": "torch.zeros(2).reshape(())",
    "squeezed-elsewhere": "torch.zeros(2, 1).squeeze(1)",
    "squeezed-out-of-range": "torch.zeros(1).squeeze(1)",
    "slice": "torch.zeros(1)[:1]",
    "row": "torch.zeros(2, 3)[0]",
    "no-such-element": "torch.zeros(1)[1]",
    "some-element": "torch.zeros(4)[n]",
    "truth": "torch.zeros(4)[True]",
    "element-of-unknown": "kernel_map.table[0]",
    "element-of-a-list": "[torch.zeros(1)][0]",
    "new-of-computed": "kernel_map.compute().new_empty(())",
    "expanded-to-four": "torch.ones(()).expand(4)",
    "viewed-as-bytes": "torch.zeros(1).view(torch.int8)",
    "values": "torch.tensor([0.0])",
    "number": "torch.zeros(1).item()",
    "sum": "torch.zeros(4).sum()",
    "size-of-a-parameter": "torch.empty(n)",
    "parameter-that-hides-a-constant": "torch.empty(kernel_map)",
    "list-that-grew": "torch.empty(GREW)",
    "into-another": "torch.zeros((), out=kernel_map.buffer)",
    "unpacked": "torch.zeros(*n).squeeze()",
    "arguments-unpacked": "torch.zeros(1, **n).squeeze()",
}


@pytest.mark.parametrize("value", NO_CREATIONS.values(), ids=NO_CREATIONS)
def test_what_has_elements_or_an_unknown_shape_is_no_carrier(value: str) -> None:
    constants = "kernel_map = ()\nGREW = []\nGREW.append(4)\n\n\n"
    code = constants + changed(CLASS, ('torch.empty((), dtype=dtype, device="cuda")', value))
    assert not {"CAR102", "CAR104"} & set(lint(code + REGISTRATION).codes())


SETTERS = {
    "setattr": 'setattr(self, "_c", torch.empty((), dtype=dtype))',
    "local": 'c = torch.zeros(1)[0]\n        setattr(self, "_c", c)',
    "none-first": 'setattr(self, "_c", None)\n        setattr(self, "_c", torch.empty(()))',
    "buffer": 'self.register_buffer("_c", torch.empty((), dtype=dtype))',
    "buffer-keywords": 'self.register_buffer(name="_c", tensor=torch.empty(()), persistent=False)',
}


@pytest.mark.parametrize("write", SETTERS.values(), ids=SETTERS)
def test_a_call_that_writes_the_attribute(write: str) -> None:
    code = changed(CLASS, ('self._c = torch.empty((), dtype=dtype, device="cuda")', write))
    linted = lint(code + REGISTRATION)
    assert set(linted.codes()) == set(CODES)
    assert found(linted, "CAR102") == ['"_c"']


OTHER_SETTERS = {
    "computed-name": 'setattr(self, "_" + "c", torch.empty(()))',
    "name-in-a-loop": 'for name in ["_c"]:\n            setattr(self, name, torch.empty(()))',
    "on-another": 'setattr(kernel_map, "_c", torch.empty(()))',
    "elements": 'setattr(self, "_c", torch.empty(4))',
    "real-scalar": 'setattr(self, "_c", kernel_map.scale)',
    "also-a-real-scalar": 'setattr(self, "_c", torch.empty(()))\n        setattr(self, "_c", kernel_map.scale)',
    "read-by-name": 'setattr(self, "_c", torch.empty(()))\n        self.scale = getattr(self, "_c")',
    "read": 'setattr(self, "_c", torch.empty(()))\n        self.scale = self._c.item()',
    "buffer-that-is-read": 'self.register_buffer("_c", torch.ones(()))\n        self.scale = self._c + 1',
    "buffer-with-elements": 'self.register_buffer("_c", torch.ones(4))',
    "parameter": 'self.register_parameter("_c", torch.nn.Parameter(torch.ones(())))',
    "unpacked": 'self.register_buffer("_c", torch.ones(()), **kernel_map)',
}


@pytest.mark.parametrize("write", OTHER_SETTERS.values(), ids=OTHER_SETTERS)
def test_a_call_that_writes_something_else(write: str) -> None:
    code = changed(CLASS, ('self._c = torch.empty((), dtype=dtype, device="cuda")', write))
    assert not {"CAR102", "CAR104"} & set(lint(code + REGISTRATION).codes())


@pytest.mark.parametrize(
    ("write", "method"),
    [
        ('self.register_buffer("_c", torch.empty(()))', "register_buffer(self, name, tensor)"),
        ('setattr(self, "_c", torch.empty(()))', "__setattr__(self, name, value)"),
    ],
)
def test_a_call_that_the_class_gives_a_meaning_of_its_own(write: str, method: str) -> None:
    own = f"    def {method}:\n        keep(name)\n\n"
    code = changed(
        CLASS,
        ('self._c = torch.empty((), dtype=dtype, device="cuda")', write),
        ("    def forward(", own + "    def forward("),
    )
    assert not {"CAR102", "CAR104"} & set(lint(code + REGISTRATION).codes())


HELPERS = {
    "method": (
        "self._c = self._make(dtype)",
        "    def _make(self, dtype):\n        return torch.empty((), dtype=dtype)\n\n",
        "self._c",
    ),
    "property": (
        "self.dtype = dtype",
        "    @property\n    def _c(self):\n        return torch.empty((), dtype=self.dtype)\n\n",
        "_c",
    ),
    "lazy-property": (
        "self._cache = None",
        "    @property\n    def _c(self):\n        if self._cache is None:\n"
        "            self._cache = torch.empty(())\n        return self._cache\n\n",
        "_c",
    ),
    "other-method": (
        "self._prepare(dtype)",
        "    def _prepare(self, dtype):\n        self._c = torch.empty((), dtype=dtype)\n\n",
        "self._c",
    ),
    "two-branches": (
        'if n:\n            self._c = torch.empty((), device="cuda")\n        else:\n            self._c = torch.empty(())',
        "",
        "self._c",
    ),
    "annotated": ("self._c: torch.Tensor = torch.empty(())", "", "self._c"),
    "local-first": ("c = torch.empty(())\n        self._c = c", "", "self._c"),
}


@pytest.mark.parametrize(("write", "helper", "place"), HELPERS.values(), ids=HELPERS)
def test_wherever_the_tensor_is_made(write: str, helper: str, place: str) -> None:
    code = changed(
        CLASS,
        ('self._c = torch.empty((), dtype=dtype, device="cuda")', write),
        ("    def forward(", helper + "    def forward("),
    )
    linted = lint(code + REGISTRATION)
    assert set(linted.codes()) == set(CODES)
    assert place in found(linted, "CAR102")


def test_a_helper_function_of_another_module() -> None:
    code = changed(CLASS, ('torch.empty((), dtype=dtype, device="cuda")', "stand_in(dtype)"))
    code = "from kit.ops.helpers import stand_in\n\n\n" + code
    helpers = "import torch\n\n\ndef stand_in(dtype):\n    return torch.empty((), dtype=dtype)\n"
    linted = lint(code + REGISTRATION, **{"kit/ops/helpers.py": helpers})
    assert set(linted.codes()) == set(CODES)


def test_a_tensor_made_for_every_call() -> None:
    code = changed(
        CLASS,
        ('        self._c = torch.empty((), dtype=dtype, device="cuda")\n', ""),
        ("wrapped(self._c, ", "wrapped(torch.empty((), device='cuda'), "),
    )
    linted = lint(code + REGISTRATION)
    assert sorted(linted.codes()) == CODES
    assert found(linted, "CAR102") == ["torch.empty((), device='cuda')"]


def test_a_base_class_makes_it_and_subclasses_share_the_finding() -> None:
    base = changed(CLASS, ("ExampleFwdOp", "Synthesised"), ('    _op_name = "example"\n', ""))
    code = base + '\n\nclass ExampleFwdOp(Synthesised):\n    _op_name = "example"\n' + REGISTRATION
    linted = lint(code)
    assert sorted(linted.codes()) == CODES
    assert {item.ops for item in linted.diagnostics} == {("ExampleFwdOp",)}


REGISTRATIONS = {
    "loop": changed(
        REGISTRATION,
        ("_register(ExampleFwdOp, fake=", "for _cls in [ExampleFwdOp]:\n    _register(_cls, fake="),
    ),
    "setattr": changed(REGISTRATION, ("op_cls._wrapped = _wrapped", 'setattr(op_cls, "_wrapped", _wrapped)')),
    "imported-name": changed(
        "from torch.library import custom_op\n" + REGISTRATION, ("@torch.library.custom_op", "@custom_op")
    ),
    "by-call": """
def _example(like, n, key):
    return like.new_zeros((n,))

ExampleFwdOp._wrapped = torch.library.custom_op("top::elementwise_example", _example, mutates_args=())
""",
    "module-level": """
@torch.library.custom_op("top::elementwise_example", mutates_args=())
def _example(like: torch.Tensor, n: int, key: int) -> torch.Tensor:
    del like
    return make(n)

@torch.library.register_fake("top::elementwise_example")
def _(like, n, key):
    return torch.empty((n,), dtype=like.dtype, device=like.device)

ExampleFwdOp._wrapped = _example
""",
    "two-kernels": """
@torch.library.custom_op("top::elementwise_example", mutates_args=())
def _example(like: torch.Tensor, n: int, key: int) -> torch.Tensor:
    return make(n)

@_example.register_kernel("cpu")
def _(like, n, key):
    return make_slowly(n)

ExampleFwdOp._wrapped = staticmethod(_example)
""",
}


@pytest.mark.parametrize("registration", REGISTRATIONS.values(), ids=REGISTRATIONS)
def test_however_the_custom_op_is_registered(registration: str) -> None:
    linted = lint(CLASS + registration)
    assert sorted(linted.codes()) == CODES


def test_an_op_of_torch_library_by_schema() -> None:
    code = changed(CLASS, ("wrapped(self._c,", "torch.ops.top.example(self._c,")) + textwrap.dedent("""
        lib = torch.library.Library("top", "DEF")
        lib.define("example(Tensor like, int n, int key) -> Tensor")

        def _example(like, n, key):
            return make(n)

        lib.impl("example", _example, "CUDA")
    """)
    assert sorted(lint(code).codes()) == CODES
    mutated = lint(code.replace("Tensor like, int", "Tensor(a!) like, int"))
    assert not {"CAR102", "CAR104"} & set(mutated.codes())


# What looks like a carrier


CLEAN_CLASSES = {
    "kernel-reads-it": changed(CLASS, ("(self.n)\n", "(self.n, self._c)\n")),
    "method-reads-it": changed(CLASS, ("return self._eager()", "return self._eager() * self._c")),
    "returned": changed(CLASS, ("        return self._eager()", "        return self._c")),
    "counter": changed(CLASS, ("        wrapped = ", "        self._c += 1\n        wrapped = ")),
    "compared": changed(CLASS, ("if wrapped is not None:", "if wrapped is not None and self._c > 0:")),
    "item": changed(CLASS, ("self._key)\n        return", "self._key)\n        self._c.item()\n        return")),
    "metadata": changed(CLASS, ("self._key = id(self)", "self._key = self._c.device")),
    "also-a-buffer": changed(CLASS, ("self._key = id", 'self.register_buffer("_c", self._c)\n        self._key = id')),
    "by-getattr": changed(CLASS, ("return self._eager()", 'return getattr(self, "_c")')),
    "in-a-tuple": changed(CLASS, ("wrapped(self._c, ", "wrapped(*(self._c,), ")),
    "written-otherwise": changed(CLASS, ("self._key = id", "self._c = kernel_map.scale\n        self._key = id")),
    "autograd": changed(CLASS, ("torch.empty((), dtype=dtype", "torch.empty((), requires_grad=True, dtype=dtype")),
    "one-element": changed(CLASS, ("torch.empty((), ", "torch.empty((1,), ")),
    "parameter": changed(CLASS, ('torch.empty((), dtype=dtype, device="cuda")', "torch.nn.Parameter(torch.empty(()))")),
    "from-a-list": changed(CLASS, ('torch.empty((), dtype=dtype, device="cuda")', "torch.tensor(n)")),
    "numpy": changed(CLASS, ('torch.empty((), dtype=dtype, device="cuda")', "np.empty(())")),
}


@pytest.mark.parametrize("code", CLEAN_CLASSES.values(), ids=CLEAN_CLASSES)
def test_a_scalar_that_is_used_is_no_carrier(code: str) -> None:
    linted = lint(code + REGISTRATION)
    assert not {"CAR102", "CAR104"} & set(linted.codes())


BODY = "        return REGISTRY[key]._eager()\n"
CLEAN_REGISTRATIONS = {
    "item": changed(REGISTRATION, (BODY, "        return REGISTRY[key]._eager() * like.item()\n")),
    "arithmetic": changed(REGISTRATION, (BODY, "        return REGISTRY[key]._eager() * like\n")),
    "handed-on": changed(REGISTRATION, (BODY, "        return REGISTRY[key]._eager(like)\n")),
    "written": changed(REGISTRATION, (BODY, "        like[...] = 0\n" + BODY)),
    "closure": changed(REGISTRATION, (BODY, "        return run(lambda: like)\n")),
    "locals": changed(REGISTRATION, (BODY, "        return run(**locals())\n")),
    "mutated": changed(REGISTRATION, ("mutates_args=()", 'mutates_args=("like",)')),
    "mutation-unknown": changed(REGISTRATION, ("mutates_args=()", 'mutates_args="unknown"')),
    "stub": changed(REGISTRATION, (BODY, "        raise NotImplementedError\n")),
    "autograd": changed(REGISTRATION, ("    op_cls._w", "    _wrapped.register_autograd(backward)\n    op_cls._w")),
    "unknown-kernel": changed(
        REGISTRATION, ("    op_cls._w", '    _wrapped.register_kernel("cpu")(other)\n    op_cls._w')
    ),
    "second-kernel-reads": changed(
        REGISTRATION,
        (
            "    op_cls._w",
            '    @_wrapped.register_kernel("cpu")\n    def _(a, n, key):\n        return a + n\n\n    op_cls._w',
        ),
    ),
    "variadic": changed(REGISTRATION, ("_wrapped(like: torch.Tensor, n", "_wrapped(*like: torch.Tensor, n")),
    "not-a-custom-op": changed(REGISTRATION, ("@torch.library.custom_op", "@kit.ops.custom_op")),
    "not-registered": "",
    "somebody-elses": changed(REGISTRATION, ("op_cls._wrapped = _wrapped", "op_cls._wrapped = wrap(_wrapped)")),
    "written-twice": REGISTRATION + "\nExampleFwdOp._wrapped = load()\n",
}


@pytest.mark.parametrize("registration", CLEAN_REGISTRATIONS.values(), ids=CLEAN_REGISTRATIONS)
def test_an_op_that_may_read_it_or_is_not_known(registration: str) -> None:
    linted = lint(CLASS + registration)
    assert not {"CAR102", "CAR104"} & set(linted.codes())


def test_a_kernel_that_reads_the_attribute_from_another_module() -> None:
    kernel = "class ExampleKernel:\n    def __call__(self, op):\n        return op._c + 1\n"
    linted = lint(CLASS + REGISTRATION, **{"kit/kernels/example.py": kernel})
    assert not {"CAR102", "CAR104"} & set(linted.codes())


def test_another_class_with_the_same_attribute_does_not_matter() -> None:
    other = "\n\nclass Other:\n    def __init__(self):\n        self._c = 3\n\n    def use(self):\n        return self._c + 1\n"
    assert sorted(lint(CLASS + other + REGISTRATION).codes()) == CODES


def test_one_caller_with_a_real_tensor_keeps_the_parameter() -> None:
    second = changed(CLASS, ("ExampleFwdOp", "SecondOp"), ('"example"\n    _', '"second"\n    _'), (
        'self._c = torch.empty((), dtype=dtype, device="cuda")', "self._c = dtype.table"
    ))  # fmt: skip
    linted = lint(CLASS + "\n\n" + second + REGISTRATION + "_register(SecondOp, fake=None)\n")
    assert "CAR102" in linted.codes()
    assert "CAR104" not in linted.codes()


# What looks like a carrier in a manifest

PLAIN = """\
class ExampleFwdOp(Op):
    def __init__(self, n: int, *, kernel_map=None):
        self.n = n

    def forward({params}) -> torch.Tensor:
        return self.kernel_map["example"](self.n)
"""

CLEAN_ENTRIES = {
    "forward-takes-it": (ENTRY, "self, like"),
    "forward-takes-it-by-another-name": (ENTRY, "self, template"),
    "forward-takes-anything": (ENTRY, "self, *tensors"),
    "forward-takes-any-keyword": (ENTRY, "self, **tensors"),
    "not-scalar": (changed(ENTRY, ('shape: "[]"', 'shape: "[n]"')), "self"),
    "no-shape": (changed(ENTRY, (', shape: "[]"', "")).replace("like_shape: []", "like_shape: [4]"), "self"),
    "optional": (changed(ENTRY, ('shape: "[]"', 'shape: "[]", optional: true')), "self"),
    "mutated": (changed(ENTRY, ('shape: "[]"', 'shape: "[]", mutated: true')), "self"),
    "used-by-a-rule": (changed(ENTRY, ('"n > 0"', '"n > like.max"')), "self"),
    "used-by-the-roofline": (changed(ENTRY, ('flops: "n"', 'flops: "n * like.size"')), "self"),
    "used-by-a-static-dim": (changed(ENTRY, ("  params:", '  static_dims: {k: "like.item()"}\n  params:')), "self"),
    "lends-nothing": (changed(ENTRY, ("same_as(like)", "float32")), "self"),
    "spec-only": (ENTRY + "status: spec-only\n", "self"),
}


@pytest.mark.parametrize(("entry", "params"), CLEAN_ENTRIES.values(), ids=CLEAN_ENTRIES)
def test_an_input_that_is_no_carrier(entry: str, params: str) -> None:
    assert lint(PLAIN.format(params=params), entry).codes() == []


def test_a_planned_op_that_takes_its_dtype_when_it_is_constructed() -> None:
    """It has no use for a tensor that lends one, so a carrier that was dropped does not come back unseen."""
    code = changed(PLAIN.format(params="self"), ("n: int, *,", "n: int, dtype: torch.dtype, *,"))
    linted = lint(code, ENTRY + "status: spec-only\n")
    assert [(item.code, item.severity.value) for item in linted.diagnostics] == [
        ("CAR101", "error"),
        ("CAR103", "error"),
    ]
    ahead = changed(ENTRY, ("n: {type: int}", "n: {type: int}\n    m: {type: int}"))
    assert lint(code, ahead + "status: spec-only\n").codes() == []


def test_an_input_that_the_constructor_takes_is_no_carrier() -> None:
    code = changed(PLAIN.format(params="self"), ("n: int, *,", "n: int, like, *,"))
    assert lint(code).codes() == []


SCALARS = {
    "shape": ENTRY,
    "rule": changed(ENTRY, (', shape: "[]"', ""), ('["n > 0"]', '["n > 0", "like.shape == ()"]')),
    "ndim": changed(ENTRY, (', shape: "[]"', ""), ('["n > 0"]', '["n > 0", "like.ndim == 0"]')),
    "rows": changed(ENTRY, (', shape: "[]"', "")),
    "flow-list": changed(ENTRY, ('shape: "[]"', "shape: []")),
    "combos": changed(ENTRY, ("  params:", "  dtype_combos: [{like: float16}]\n  params:")),
    "promoted": changed(ENTRY, ("same_as(like)", "promote_int_to_float(like)")),
}


@pytest.mark.parametrize("entry", SCALARS.values(), ids=SCALARS)
def test_however_the_input_is_said_to_be_a_scalar(entry: str) -> None:
    linted = lint(PLAIN.format(params="self"), entry)
    assert linted.codes() == ["CAR101", "CAR103"]
    assert linted.diagnostics[0].related[0].message == "`forward()` takes no argument"


def test_a_carrier_beside_real_inputs() -> None:
    entry = changed(ENTRY, ("  inputs:\n", '  inputs:\n    x: {dtype: "int32", shape: "[n]"}\n'))
    linted = lint(PLAIN.format(params="self, x"), entry)
    assert found(linted, "CAR101") == ["like"]
    assert linted.diagnostics[0].related[0].message == "`forward()` takes `x`"


def test_only_as_many_inputs_as_the_class_makes_carriers() -> None:
    """On an entry that may run ahead of the code, the class accounts for one input, and that is the one which lends."""
    entry = changed(ENTRY, ("  inputs:\n", '  inputs:\n    ahead: {dtype: "int32", shape: "[]"}\n'))
    linted = lint(CLASS + REGISTRATION, entry + "status: spec-only\n")
    assert found(linted, "CAR101") == ["like"]


MALFORMED = {
    "signature": "signature: [1, 2]\n",
    "inputs": "signature:\n  inputs: [like]\n",
    "tensor": "signature:\n  inputs: {like: 3}\n",
    "keys": "signature:\n  inputs: {1: {dtype: x, shape: '[]'}, null: {}, [a]: {}}\n",
    "shape": "signature:\n  inputs: {like: {dtype: [1], shape: {a: b}}}\n",
    "rules": changed(ENTRY, ('["n > 0"]', "{a: [1]}")),
    "rows": "workloads: {like_shape: []}\n",
    "row": "workloads: [3, {like_shape: {}}, null]\n",
    "roofline": "roofline: [[[like]]]\n",
}


@pytest.mark.parametrize("entry", MALFORMED.values(), ids=MALFORMED)
def test_malformed_entries_do_not_raise(entry: str) -> None:
    assert "OPS900" not in lint(CLASS + REGISTRATION, entry).codes()
