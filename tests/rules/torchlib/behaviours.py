"""What is registered for operators, and how they are called, by hand: one slip each, or none, as tables of what differs."""

from __future__ import annotations

from tests.rules.torchlib.case_collector import CaseCollector, op
from tests.rules.torchlib.oracle import Probe

BACKWARDS = (
    ("x: Tensor, a: int = 1", "ctx, g", "g, None"),
    ("x: Tensor, a: int = 1", "ctx, g", "g"),
    ("x: Tensor, a: int = 1", "ctx, g", "g, None, None"),
    ("x: Tensor, a: int = 1", "ctx, g", "[g, None]"),
    ("x: Tensor, a: int = 1", "ctx, g, h=None", "g, None"),
    ("x: Tensor, a: int = 1", "ctx, *gs", "gs[0], None"),
    ("x: Tensor, a: int = 1", "ctx, g, h", "g, None"),
    ("x: Tensor, a: int = 1", "g", "g, None"),
    ("x: Tensor, a: int = 1", "ctx, *, g", "g, None"),
    ("x: Tensor, a: int = 1", "c, grad", "grad, None"),
    ("x: Tensor, a: int = 1", "ctx, g", "g, g"),
    ("x: Tensor", "ctx, g", "g"),
    ("x: Tensor", "ctx, g", "(g,)"),
    ("x: Tensor, *, a: int = 1", "ctx, g", "g"),
    ("x: Tensor, *, a: int = 1", "ctx, g", "g, None"),
    ("x: Tensor, a: float", "ctx, g", "g"),
    ("x: Tensor, a: float", "ctx, g", "g, None"),
)
PLAIN, KEYWORD = "x: Tensor, a: int = 1", "x: Tensor, *, a: int = 1"
SETUPS = (
    (PLAIN, "ctx, inputs, output", "x, a = inputs"),
    (PLAIN, "ctx, inputs, output", "(x,) = inputs"),
    (PLAIN, "ctx, inputs, output", "x, *_ = inputs"),
    (PLAIN, "ctx, inputs, outputs", "pass"),
    (PLAIN, "ctx, input, output", "pass"),
    (PLAIN, "_, inputs, output", "pass"),
    (PLAIN, "output, ctx, inputs", "pass"),
    (PLAIN, "ctx, **rest", "pass"),
    (PLAIN, "*rest", "pass"),
    (PLAIN, "ctx, inputs", "pass"),
    (PLAIN, "ctx, inputs, output, /", "pass"),
    (PLAIN, "*, ctx, inputs, output", "pass"),
    (PLAIN, "ctx, inputs, output, more", "pass"),
    (PLAIN, "ctx, inputs, output, more=1", "pass"),
    (PLAIN, "ctx, inputs, keyword_only_inputs, output", "pass"),
    (KEYWORD, "ctx, inputs, keyword_only_inputs, output", "(x,) = inputs"),
    (KEYWORD, "ctx, inputs, output", "pass"),
    (KEYWORD, "ctx, inputs, keyword_only_inputs, output", "x, a = inputs"),
    (KEYWORD, "ctx, inputs, kwargs, output", "pass"),
)
MIXED = "x: Tensor, a: float = 2.0, *, b: int = 1"
SAVED = (
    *(
        "x, a",
        "x, None",
        "inputs",
        "*inputs",
        "[x]",
        "(x, x)",
        "x.shape",
        "x.dtype",
        "1",
        "'a'",
        "output",
        "*(x, a)",
        "*[x]",
    ),
    *(
        "inputs[0]",
        "inputs[1]",
        "keyword_only_inputs['b']",
        "keyword_only_inputs",
        "torch.tensor(a)",
        "f'{a}'",
        "x * a",
    ),
    *("x.shape[0:0]", "[item for item in inputs]", "x[0]", "inputs[0].detach()"),
)
SAVED_RESULTS = (
    (" -> Tuple[Tensor, Tensor]", "x.clone(), x + 1", "output"),
    (" -> Tuple[Tensor, Tensor]", "x.clone(), x + 1", "*output"),
    (" -> Tuple[Tensor, int]", "x.clone(), 3", "*output"),
    (" -> List[Tensor]", "[x.clone()]", "output"),
)
SAVING = (
    *("a = torch.tensor(inputs[1])\n    SAVE(a)", "a = inputs[1]\n    SAVE(a)", "SAVE(inputs[1])\n    SAVE(inputs[0])"),
    *(
        "a = inputs[1]\n    if a is not None:\n        a = x = inputs[0]\n    SAVE(a)",
        "inputs = inputs[:1]\n    SAVE(*inputs)",
    ),
    *("x, a = inputs\n    if a > 5:\n        SAVE(a)", "x, a = inputs\n    for a in [x]:\n        pass\n    SAVE(a)"),
    *("x, a = inputs\n    a = None\n    SAVE(x, a)", "b, c = inputs\n    SAVE(b)", "x, ctx.a = inputs\n    SAVE(x)"),
)
DEFINED = """torch.library.define("NS::f", "(Tensor x, int a=1) -> Tensor")


@torch.library.impl("NS::f", "cpu")
def kernel(x, a=1):
    return x.clone()
"""


def _backward(gives: str, given: str = "ctx, g") -> str:
    return f"\n\ndef backward({given}):\n    return {gives}\n\n\n"


def autograd(collector: CaseCollector) -> None:
    """Backward and setup_context against the operator."""
    register = "f.register_autograd(backward)\n"
    for parameters, given, gives in BACKWARDS:
        calls = ("f(x, 2.0)",) if "float" in parameters else ("f(x)", "f(x, a=3)")
        tried = ["f(x)"] if parameters == "x: Tensor" else calls
        text = op(parameters) + _backward(gives, given) + register
        collector.add(f"backward {given} {gives} of {parameters}", text, *(Probe("backward", call) for call in tried))
    for parameters, given, body in SETUPS:
        setup = f"def setup({given}):\n    {body}\n\n\nf.register_autograd(backward, setup_context=setup)\n"
        text = op(parameters) + _backward("g" if parameters == KEYWORD else "g, None") + setup
        collector.add(f"setup {given} {body}", text, Probe("backward", "f(x)"), Probe("backward", "f(x, a=3)"))
    _saved(collector)
    plain, both = _backward("g") + register, _backward("g", "ctx, g, h") + register
    two = op("x: Tensor", " -> Tuple[Tensor, Tensor]", "return x.clone(), x + 1")
    collector.add("backward one of two", two + plain, Probe("backward", "f(x)"))
    collector.add("backward two", two + both, Probe("backward", "f(x)"))
    number = op("x: Tensor", " -> Tuple[Tensor, int]", "return x.clone(), 3")
    collector.add("backward one of a number", number + plain, Probe("backward", "f(x)"))
    collector.add("backward of a number", number + both, Probe("backward", "f(x)"))
    many = op("x: Tensor", " -> List[Tensor]", "return [x.clone(), x + 1]")
    collector.add("backward of a list", many + _backward("g[0]") + register, Probe("backward", "f(x)"))
    collector.add("backward of a list apart", many + both, Probe("backward", "f(x)"))
    given = op("x: Tensor, xs: List[Tensor]", body="return x + xs[0]")
    for gives in ("g, [g]", "g, g", "g, None", "g, [None]", "g, []"):
        collector.add(
            f"backward to a list {gives}", given + _backward(gives) + register, Probe("backward", "f(x, [y])")
        )
    collector.add("no autograd", op("x: Tensor"), Probe("backward", "f(x)"))
    collector.add("backward of writes", op("x: Tensor", mutates='("x",)') + plain)
    collector.add("backward of nothing", op("x: Tensor", " -> None", "pass") + plain)
    collector.add("backward positional", op("x: Tensor") + plain.replace("(backward)", "(backward, backward)"))
    collector.add("backward keyword", op("x: Tensor") + plain.replace("(backward)", "(backward=backward)"))
    for gives in ("g, None", "g"):
        text = DEFINED + _backward(gives) + 'torch.library.register_autograd("NS::f", backward)\n'
        calls = ("torch.ops.NS.f(x)", "torch.ops.NS.f(x, 2)")
        collector.add(f"backward of a definition {gives}", text, *(Probe("backward", call) for call in calls))


def partials(collector: CaseCollector) -> None:
    """Kernels and fakes made by `functools.partial`."""
    for parameters, gives, schema, bound, calls in PARTIALS:
        define = f'torch.library.define("NS::f", "{schema}")\n\n\ndef under({parameters}):\n    return {gives}\n\n\n'
        made = f"functools.partial(under, {bound})" if bound else "functools.partial(functools.partial(under), s=2.0)"
        text = f'import functools\n\n{define}torch.library.impl("NS::f", "cpu", {made})\n'
        collector.add(f"kernel partial {bound} of {parameters}", text, *(f"torch.ops.NS.f({call})" for call in calls))
        whole = "import functools\n\n" + define + 'torch.library.impl("NS::f", "cpu", lambda x, *r, **k: x * 1)\n'
        text = f'{whole}torch.library.register_fake("NS::f", {made})\n'
        tried = [Probe("fake", f"torch.ops.NS.f({call})") for call in calls]
        collector.add(f"fake partial {bound} of {parameters}", text, *tried)


def _saved(collector: CaseCollector) -> None:
    """Values that `setup_context` saves."""
    bodies = [(f"x, a = inputs\n    SAVE({values})", values) for values in SAVED] + [(body, body) for body in SAVING]
    for body, title in bodies:
        collector.add(f"save {title}", _saving(op(MIXED), body, "g, None"), Probe("backward", "f(x)"))
    perhaps = _saving(op("x: Tensor, a: Optional[float] = None"), "SAVE(*inputs)", "g[0], None", keywords="")
    collector.add("save an optional", perhaps, Probe("backward", "f(x)"), Probe("backward", "f(x, 1.0)"))
    for returns, value, saved in SAVED_RESULTS:
        made = op("x: Tensor", returns, f"return {value}")
        text = _saving(made, f"SAVE({saved})", "g[0][0] if isinstance(g[0], list) else g[0]", keywords="")
        collector.add(f"save {saved}{returns}", text, Probe("backward", "f(x)"))


def _saving(made: str, body: str, gives: str, keywords: str = ", keyword_only_inputs") -> str:
    body = body.replace("SAVE", "ctx.save_for_backward")
    setup = f"def setup(ctx, inputs, output{keywords}):\n    {body}\n\n\n"
    return (
        made
        + _backward(gives, "ctx, *g" if not keywords else "ctx, g")
        + setup
        + "f.register_autograd(backward, setup_context=setup)\n"
    )


PARTIALS = (
    ("x, s", "x * s", "(Tensor x, float s) -> Tensor", "s=2.0", ("x, 2.0",)),
    ("x, s", "x * s", "(Tensor x, float s=2.0) -> Tensor", "s=2.0", ("x", "x, 3.0")),
    ("x, s", "x * s", "(Tensor x) -> Tensor", "s=2.0", ("x",)),
    ("s, x", "x * s", "(Tensor x) -> Tensor", "2.0", ("x",)),
    ("s, x", "x * s", "(Tensor x, float s) -> Tensor", "2.0", ("x, 2.0",)),
    ("x, *, s", "x * s", "(Tensor x, *, float s=1.0) -> Tensor", "s=2.0", ("x", "x, s=3.0")),
    ("x, s, t=1.0", "x * s * t", "(Tensor x, float t) -> Tensor", "s=2.0", ("x, 3.0",)),
    ("x, t, s", "x * s * t", "(Tensor x, float t) -> Tensor", "s=2.0", ("x, 3.0",)),
    ("x, *rest, s", "x * s", "(Tensor x, float t) -> Tensor", "s=2.0", ("x, 3.0",)),
    ("x, s=1.0, *rest", "x * s", "(Tensor x, float t) -> Tensor", "s=2.0", ("x, 3.0",)),
    ("x, **rest", "x.clone()", "(Tensor x) -> Tensor", "s=2.0", ("x",)),
    ("*rest", "rest[1].clone()", "(Tensor x) -> Tensor", "2.0", ("x",)),
    ("s, t, x", "x * s * t", "(Tensor x) -> Tensor", "2.0, t=1.0", ("x",)),
    ("x, s", "x * s", "(Tensor x, float t) -> Tensor", "", ("x, 2.0",)),
)
ALIKE = "torch.empty_like(x)"
FAKE_RESULTS = (
    ("Tensor", "x.clone()", "x.new_empty(x.shape)"),
    ("Tensor", "x.clone()", f"({ALIKE}, {ALIKE})"),
    ("Tensor", "x.clone()", "None"),
    ("Tensor", "x.clone()", ALIKE),
    ("Tensor", "x.clone()", "x"),
    ("Tensor", "x.clone()", "1"),
    ("Tuple[Tensor, Tensor]", "x.clone(), x + 1", ALIKE),
    ("Tuple[Tensor, Tensor]", "x.clone(), x + 1", f"{ALIKE}, {ALIKE}"),
    ("Tuple[Tensor, Tensor]", "x.clone(), x + 1", f"[{ALIKE}, {ALIKE}]"),
    ("Tuple[Tensor, Tensor]", "x.clone(), x + 1", f"{ALIKE}, {ALIKE}, {ALIKE}"),
    ("Tuple[Tensor, Tensor]", "x.clone(), x + 1", f"{ALIKE}, None"),
    ("List[Tensor]", "[x.clone(), x + 1]", f"[{ALIKE}, {ALIKE}]"),
    ("List[Tensor]", "[x.clone(), x + 1]", f"{ALIKE}, {ALIKE}"),
    ("List[Tensor]", "[x.clone()]", ALIKE),
    ("int", "2", "2"),
    ("tuple[Tensor]", "(x.clone(),)", f"({ALIKE},)"),
    ("tuple[Tensor]", "(x.clone(),)", ALIKE),
)
REAL_RESULTS = (
    ("Tensor", "x.clone(), x + 1"),
    ("Tensor", "None"),
    ("Tensor", "2"),
    ("Tuple[Tensor, Tensor]", "x.clone()"),
    ("Tuple[Tensor, Tensor]", "x.clone(), x + 1, x + 2"),
    ("Tuple[Tensor, Tensor]", "[x.clone(), x + 1]"),
    ("List[Tensor]", "x.clone()"),
    ("List[Tensor]", "(x.clone(), x + 1)"),
    ("None", "x.clone()"),
    ("None", "None"),
    ("int", "1.5"),
    ("float", "2"),
    ("tuple[Tensor]", "x.clone()"),
)
SWALLOWED = """\n
@f.register_fake
def fake(*inputs):
    return inputs[0].new_empty(torch.broadcast_shapes(*(item.shape for item in inputs)))
"""
RESULTS = (
    "x", "x.view(-1)", "x.contiguous()", "x.to(torch.float32)", "x.clone()", "x[0]", "x.t()", "x + 1", "x.detach()",
    "torch.abs(x)", "x.reshape(-1)", "x.add_(1).clone()", "torch.add(x, 1, out=x.clone())", "x.unsqueeze(0)",
    "x.expand(2, 3)", "x.clone().view(-1)", "x.t().contiguous()", "x.to(torch.float64)", "x.sum()", "torch.relu_(x.clone())",
)  # fmt: skip
WRITES = (
    "x.add_(1)", "x[0] = 7", "x += 1", "x.copy_(x + 1)", "torch.add(x, 1, out=x)", "x.fill_(9)", "x.view(-1)[0] = 7",
    "torch.relu_(x.sub_(9))",
)  # fmt: skip


def results(collector: CaseCollector) -> None:
    """The results of fakes and kernels, and the inputs that they write."""
    for returns, real, fake in FAKE_RESULTS:
        text = op("x: Tensor", f" -> {returns}", f"return {real}")
        text += f"\n\n@f.register_fake\ndef fake(x):\n    return {fake}\n"
        collector.add(f"fake of {returns} gives {fake}", text, "f(x)", Probe("fake", "f(x)"))
    for returns, result in REAL_RESULTS:
        shape = (2, 3) if returns == "Tensor" else None
        text = op("x: Tensor", f" -> {returns}", f"return {result}")
        collector.add(f"result {result} as {returns}", text, Probe("real", "f(x)", shape))
    for more in ("", ", a: int = 1"):
        text = op(f"x: Tensor, w: Tensor{more}", body="return x + w") + SWALLOWED
        collector.add(f"swallowed{more}", text, Probe("fake", "f(x, y, 2)" if more else "f(x, y)"))
    for result in RESULTS:
        collector.add(f"result {result}", op("x: Tensor", body=f"return {result}"), "f(x)")
        kernel = DEFINED.replace(", int a=1", "").replace("x, a=1", "x").replace("x.clone()", result)
        collector.add(f"kernel result {result}", kernel, "torch.ops.NS.f(x)")
    two = " -> Tuple[Tensor, Tensor]"
    collector.add("two of one", op("x: Tensor", two, "y = x.clone()\n    return y, y"), "f(x)")
    collector.add("in a tuple", op("x: Tensor", two, "return x.clone(), x"), "f(x)")
    collector.add("in a list", op("x: Tensor", " -> List[Tensor]", "return [x]"), "f(x)")
    collector.add("of a list", op("xs: List[Tensor]", body="return xs[0]"), "f([x])")
    collector.add("written and returned", op("x: Tensor", body="x.add_(1)\n    return x", mutates='("x",)'), "f(x)")
    for write in WRITES:
        collector.add(f"writes undeclared {write}", op("x: Tensor", body=f"{write}\n    return x.clone()"), "f(x)")
    collector.add("writes its own", op("x: Tensor", body="x = x.clone()\n    x.add_(1)\n    return x"), "f(x)")
    collector.add("writes a part of its own", op("x: Tensor", body="y = x + 1\n    y[0] = 1\n    return y"), "f(x)")
    no_fakes(collector)


def no_fakes(collector: CaseCollector) -> None:
    """Fakes that are missing, and such that are not needed."""
    fake = Probe("fake", "f(x)")
    collector.add("no fake", op("x: Tensor"), "f(x)", fake)
    writes = "x.add_(1)"
    collector.add("no fake needed", op("x: Tensor", " -> None", writes, mutates='("x",)'), "f(x)", fake)
    returns = op("x: Tensor", body=f"{writes}\n    return x.clone()", mutates='("x",)')
    collector.add("no fake but written", returns, "f(x)", fake)
    collector.add("no fake, nothing", op("x: Tensor", " -> None", "pass"), "f(x)", fake)
    collector.add("no fake of a kernel", DEFINED, Probe("fake", "torch.ops.NS.f(x)"))
    collector.add("no fake of a default", DEFINED.replace('"cpu"', '"default"'), Probe("fake", "torch.ops.NS.f(x)"))
    triton = '@torch.library.triton_op("NS::f", mutates_args=())\ndef f(x: Tensor, a: int = 1) -> Tensor:\n'
    triton += "    return x.new_zeros(a)\n"
    collector.add("triton_op", triton, "f(x)", fake, Probe("fake", "f(x, 3)"))
    collector.add("triton_op no type", triton.replace("x: Tensor", "x"))
    collector.add("triton_op device", triton.replace("mutates_args=()", 'mutates_args=(), device_types="cuda"'))


DEVICES = (
    ("a: int", '"cpu"', "f(2)"),
    ("a: int, device: torch.device", '"cpu"', 'f(2, "cpu")'),
    ("a: int, device: Optional[torch.device]", '"cpu"', 'f(2, "cpu")'),
    ("a: int, dev: torch.device", '"cpu"', 'f(2, "cpu")'),
    ("a: int, *, device: torch.device", '"cpu"', 'f(2, device="cpu")'),
    ('a: int, device: torch.device = torch.device("cpu")', '"cpu"', "f(2)"),
    ("a: int", "None", "f(2)"),
    ("x: Tensor, a: int", '"cpu"', "f(x, 2)"),
    ("x: List[Tensor], a: int", '("cpu", "cuda")', "f([x], 2)"),
    ("x: Tensor, a: int", '"gpu"', "f(x, 2)"),
    ("x: Tensor, a: int", '"CPU"', "f(x, 2)"),
    ("x: Tensor, a: int", '"cuda:0"', "f(x, 2)"),
    ("a: int", '("cpu",)', "f(2)"),
)
PARTS = {
    "op": op("x: Tensor") + "\n\n",
    "define": 'torch.library.define("NS::f", "(Tensor x) -> Tensor")\n\n\n',
    "overload": 'torch.library.define("NS::f.int", "(Tensor x, int a) -> Tensor")\n\n\n',
    "fake": '@torch.library.register_fake("NS::f")\ndef fake(x):\n    return torch.empty_like(x)\n\n\n',
    "strict": '@torch.library.register_fake("NS::f", allow_override=False)\ndef fake(x):\n    return x.new_empty(6)\n\n\n',
    "default": '@torch.library.register_fake("NS::f.default")\ndef fake(x):\n    return torch.empty_like(x)\n\n\n',
    "meta": '@torch.library.impl("NS::f", "Meta")\ndef meta(x):\n    return torch.empty_like(x)\n\n\n',
    "composite": '@torch.library.impl("NS::f", "CompositeImplicitAutograd")\ndef composite(x):\n    return x.clone()\n\n\n',
    "kernel": '@torch.library.impl("NS::f", "cpu")\ndef kernel(x):\n    return x.clone()\n\n\n',
    "keyless": 'library = torch.library.Library("NS", "FRAGMENT")\nlibrary.impl("f", lambda x: x.clone())\n',
    "autograd": 'torch.library.register_autograd("NS::f", lambda ctx, g: g)\n',
    "vmap": 'torch.library.register_vmap("NS::f", lambda info, in_dims, x: (x.clone(), 0))\n',
    "function": "def g(x):\n    return x\n\n\n",
    "of_function": "@torch.library.register_fake(g)\ndef fake(x):\n    return x\n",
    "packet": "@torch.library.register_fake(torch.ops.NS.f)\ndef fake(x):\n    return x\n",
    "of_overload": "@torch.library.register_fake(torch.ops.NS.f.default)\ndef fake(x):\n    return x\n",
    "called": "@f.register_fake()\ndef fake(x):\n    return x\n",
    "impl": 'library = torch.library.Library("NS", "IMPL")\nlibrary.define("f(Tensor x) -> Tensor")\n',
    "def_": 'library = torch.library.Library("NS", "DEF")\n',
    "fragment": 'more = torch.library.Library("NS", "FRAGMENT")\nmore.define("f(Tensor x) -> Tensor")\n',
    "prim": 'library = torch.library.Library("prim", "FRAGMENT")\n',
    "kind": 'library = torch.library.Library("NS", "fragment")\n',
    "other": 'library = torch.library.Library("NS", "FRAGMENT")\nlibrary.define("other::f(Tensor x) -> Tensor")\n',
    "key": 'more.impl("f", lambda x: x.clone(), "cpu")\n',
    "vanishing": "def load():\n    library = torch.library.Library('NS', 'FRAGMENT')\n    library.define('f(Tensor x) -> Tensor')\n"
    "    library.impl('f', lambda x: x.clone(), 'CPU')\n\n\nload()\n",
}
ORDERS = {
    "two custom_ops": "{op}{op}", "define twice": "{define}{define}", "define and custom_op": "{define}{op}",
    "custom_op and define": "{op}{define}", "overload": "{define}{overload}", "fake twice": "{op}{fake}{fake}",
    "defined fake twice": "{define}{fake}{fake}", "fake and Meta": "{define}{meta}{fake}", "Meta and fake": "{define}{fake}{meta}",
    "fake override": "{define}{fake}{strict}", "Meta override": "{define}{meta}{strict}", "keyless": "{define}{keyless}",
    "fake of composite": "{define}{composite}{fake}", "fake of keyless": "{define}{keyless}{fake}", "fake of nothing": "{fake}",
    "fake before": "{fake}{define}", "fake of the default": "{define}{default}", "fake before custom_op": "{fake}{op}",
    "autograd of nothing": "{autograd}", "vmap of nothing": "{vmap}", "kernel before": "{kernel}{define}",
    "fake of a function": "{function}{of_function}", "fake of a packet": "{define}{packet}",
    "fake of an overload": "{define}{of_overload}", "called fake": "{op}{called}", "IMPL defines": "{impl}",
    "DEF twice": "{def_}{def_}", "DEF and FRAGMENT": "{def_}{fragment}", "prim": "{prim}", "kind": "{kind}",
    "other namespace": "{other}", "key": "{fragment}{key}", "lone kernel": "{kernel}", "a library that is dropped": "{vanishing}",
}  # fmt: skip
CALLABLE = frozenset(
    {"keyless", "kernel before", "two custom_ops", "fake twice", "lone kernel", "a library that is dropped"}
)


def registrations(collector: CaseCollector) -> None:
    """Devices, duplicates, and registrations for what is not there."""
    for parameters, devices, call in DEVICES:
        text = op(parameters, body="return torch.ones(a)", more=f", device_types={devices}")
        collector.add(f"devices {devices} {parameters}", text, call)
    for title, order in ORDERS.items():
        probes = ("torch.ops.NS.f(x)",) if title in CALLABLE else ()
        collector.add(title, order.format(**PARTS), *probes)


CALLED = "x: Tensor, a: int = 1, s: str = 'q', l: Optional[List[int]] = None, b: bool = False, *, k: float = 0.5"
ARGUMENTS = (
    "x", "", "x, 1", "x, 1.5", "x, True", "x, '1'", "x, None", "x, a=2", "x, s=1", "x, s='z'", "x, l=[1]", "x, l=1",
    "x, l=(1, 2)", "x, l=[1.5]", "x, l=None", "x, k=1", "x, k='1'", "x, k=None", "x, 1, 'q', None, True, 0.5",
    "x, 1, 'q', None, True", "x, q=1", "x, 1, a=1", "x=x", "a=1", "[x]", "1", "None, 1", "x, b=1", "x, b='a'", "x, *[1]",
    "x, **{'a': 2}", "x, *[1, 'q', None, True, 0.5]", "x, *(), a=2", "x, torch.tensor(2)", "x, x.shape[0]", "x, x.numel() // 2",
    "x, l=x.shape", "x, l=range(2)", "x, b=x.is_contiguous()", "x + 1, k=float(2)",
)  # fmt: skip


def called(collector: CaseCollector) -> None:
    """Calls of an operator, by torch.ops and by its handle."""
    for number, arguments in enumerate(ARGUMENTS):
        through = ("f", "torch.ops.NS.f", "torch.ops.NS.f.default")[number % 3]
        use = f"\n\ndef use(x):\n    return {through}({arguments})\n"
        collector.add(f"call {arguments}", op(CALLED) + use, "use(x)")
    use = "\n\ndef use(x):\n    return torch.ops.NS.g(x)\n"
    collector.add("call of nothing", op(CALLED) + use, "use(x)")
    collector.add("call of no overload", op(CALLED) + use.replace("NS.g", "NS.f.nope"), "use(x)")


def add_behaviours(collector: CaseCollector) -> None:
    """All of this module."""
    autograd(collector)
    partials(collector)
    results(collector)
    registrations(collector)
    called(collector)
