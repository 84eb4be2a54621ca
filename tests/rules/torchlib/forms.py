"""The ways in which one registers an operator and its fake, each with fakes that are right and such that are not.

``$fake`` stands for the parameters of the fake, ``$empty`` for what it returns, ``$op`` for the operator's name.
"""

from __future__ import annotations

from string import Template

from tests.rules.torchlib.case_collector import CaseCollector, op
from tests.rules.torchlib.oracle import Probe

#: The operator's function, and the body that goes with it.
PARAMETERS = "x: Tensor, a: int, b: int = 1, *, k: int = 1"
MADE = "x.new_zeros((x.shape[0], a, b, k))"

FAKES = (
    ("right", "x, a, b=1, *, k=1"),
    ("loose", "x, a, b=1, k=1"),
    ("renamed", "x, n, b=1, *, k=1"),
    ("reordered", "x, b, a=1, *, k=1"),
    ("no default", "x, a, b, *, k=1"),
    ("other default", "x, a, b=2, *, k=1"),
    ("lacks b", "x, a, *, k=1"),
    ("lacks k", "x, a, b=1"),
    ("extra", "x, a, b=1, c=2, *, k=1"),
    ("extra required", "x, a, b=1, *, k=1, c"),
)

IMPORTED = """from torch.library import custom_op, register_fake as fake_of


@custom_op("$op", mutates_args=())
def f($parameters) -> Tensor:
    return $made


@fake_of("$op")
def _($fake):
    return $empty
"""

MODULE_ALIAS = """import torch.library as tl

NAME = "$op"


@tl.custom_op(NAME, mutates_args=())
def f($parameters) -> Tensor:
    return $made


@tl.register_fake(NAME)
def _($fake):
    return $empty
"""

FUNCTION_GIVEN = """def kernel($parameters) -> Tensor:
    return $made


def fake($fake):
    return $empty


f = torch.library.custom_op("$op", kernel, mutates_args=())
f.register_fake(fake)
"""

FACTORY = """def make(name):
    @torch.library.custom_op(name, mutates_args=())
    def op($parameters) -> Tensor:
        return $made

    @op.register_fake
    def _($fake):
        return $empty

    return op


f = make("$op")
"""

LOOP = """SPACE = "$space"
OPS = {}
for kind in ("forward", "backward"):

    @torch.library.custom_op(f"{SPACE}::f_{kind}", mutates_args=())
    def run($parameters) -> Tensor:
        return $made

    @run.register_fake
    def _($fake):
        return $empty

    OPS[kind] = run

f = OPS["backward"]
"""

HELPER = """library = torch.library.Library("$space", "FRAGMENT")


def direct_register(op_name, op_func, mutates_args=None, fake_impl=None, target_lib=None, dispatch_key="CPU"):
    schema = torch.library.infer_schema(op_func, mutates_args=mutates_args or [])
    used = target_lib or library
    used.define(op_name + schema)
    used.impl(op_name, op_func, dispatch_key=dispatch_key)
    if fake_impl is not None:
        used._register_fake(op_name, fake_impl)


def kernel($parameters) -> Tensor:
    return $made


def fake($fake):
    return $empty


direct_register(op_name="f", op_func=kernel, fake_impl=fake)
f = torch.ops.$space.f
"""

LAMBDA = """@torch.library.custom_op("$op", mutates_args=())
def f($parameters) -> Tensor:
    return $made


f.register_fake(lambda $fake: $empty)
"""

STATIC_METHOD = """class Kernels:
    @staticmethod
    def fake($fake):
        return $empty


@torch.library.custom_op("$op", mutates_args=())
def f($parameters) -> Tensor:
    return $made


f.register_fake(Kernels.fake)
"""

CONDITION = """@torch.library.custom_op("$op", mutates_args=())
def f($parameters) -> Tensor:
    return $made


if hasattr(torch.library, "register_fake"):
    register = torch.library.register_fake
else:
    register = torch.library.impl_abstract


@register("$op")
def _($fake):
    return $empty
"""

OVERLOAD = """torch.library.define("$op", "(Tensor x, int a, int b=1, *, int k=1) -> Tensor")


@torch.library.impl("$op", ("cpu", "cuda"))
def kernel(x, a, b=1, *, k=1):
    return $made


f = torch.ops.$space.f.default


@torch.library.register_fake(f)
def _($fake):
    return $empty
"""

REDEFINED = """def fake(x):
    return torch.empty_like(x)


def fake($fake):
    return $empty


@torch.library.custom_op("$op", mutates_args=())
def f($parameters) -> Tensor:
    return $made


f.register_fake(fake)


def fake(x, a, b, c, d):
    return torch.empty_like(x)
"""

NAMESAKES = """def first():
    @torch.library.custom_op("${op}_first", mutates_args=())
    def op(x: Tensor) -> Tensor:
        return x.clone()

    @op.register_fake
    def fake(x):
        return torch.empty_like(x)

    return op


def second():
    @torch.library.custom_op("$op", mutates_args=())
    def op($parameters) -> Tensor:
        return $made

    @op.register_fake
    def fake($fake):
        return $empty

    return op


g, f = first(), second()
"""

FORMS = {
    "imported": IMPORTED,
    "module alias": MODULE_ALIAS,
    "function given": FUNCTION_GIVEN,
    "factory": FACTORY,
    "loop": LOOP,
    "helper": HELPER,
    "lambda": LAMBDA,
    "static method": STATIC_METHOD,
    "condition": CONDITION,
    "overload": OVERLOAD,
    "redefined": REDEFINED,
    "namesakes": NAMESAKES,
}

#: What looks wrong, and is right.
RIGHT = {
    "wrapped": """def leading(fn):
    def call(x, *rest, **named):
        return fn(x, (*rest, 1)[1])

    return call


@torch.library.custom_op("$op", mutates_args=())
def f(x: Tensor, a: int, b: int = 1) -> Tensor:
    return x.new_zeros((x.shape[0], b))


@f.register_fake
@leading
def _(x, rows):
    return x.new_empty((x.shape[0], rows))
""",
    "partial": """import functools


def fake(extra, x, a, b=1):
    return x.new_empty((x.shape[0], b))


@torch.library.custom_op("$op", mutates_args=())
def f(x: Tensor, a: int, b: int = 1) -> Tensor:
    return x.new_zeros((x.shape[0], b))


f.register_fake(functools.partial(fake, 3))
""",
    "method": """class Kernels:
    def fake(self, x, a, b=1):
        return x.new_empty((x.shape[0], b))


@torch.library.custom_op("$op", mutates_args=())
def f(x: Tensor, a: int, b: int = 1) -> Tensor:
    return x.new_zeros((x.shape[0], b))


f.register_fake(Kernels().fake)
""",
    "callable": """class Fake:
    def __call__(self, x, a, b=1):
        return x.new_empty((x.shape[0], b))


@torch.library.custom_op("$op", mutates_args=())
def f(x: Tensor, a: int, b: int = 1) -> Tensor:
    return x.new_zeros((x.shape[0], b))


f.register_fake(Fake())
""",
    "replaced": """@torch.library.custom_op("$op", mutates_args=())
def f(x: Tensor, a: int, b: int = 1) -> Tensor:
    return x.new_zeros((x.shape[0], b))


@f.register_fake
def _(x, a):
    return x


@f.register_fake
def _(x, a, b=1):
    return x.new_empty((x.shape[0], b))
""",
    "keyset": """library = torch.library.Library("$space", "FRAGMENT")
library.define("f(Tensor x, int a, int b=1) -> Tensor")


def kernel(keyset, x, a, b=1):
    return x.new_zeros((x.shape[0], b))


library.impl("f", kernel, "CPU", with_keyset=True)
library.impl("f", lambda x, a, b=1: x.new_empty((x.shape[0], b)), "Meta")
f = torch.ops.$space.f
""",
}


_FUNCTION = "def g(x):\n    return torch.empty_like(x)\n"
_BACKWARD = "def g(ctx, grad):\n    return grad\n"
_BATCHED = "def g(info, in_dims, x):\n    return x.clone(), in_dims[0]\n"

#: Registering calls without their function, as decorators: what they are used on, and what for.
WITHOUT_FUNCTION = {
    "f.register_fake()": _FUNCTION,
    "f.register_fake": _FUNCTION,
    'f.register_kernel("cuda")': _FUNCTION,
    "f.register_autograd()": _BACKWARD,
    "f.register_autograd(setup_context=None)": _BACKWARD,
    "f.register_autograd": _BACKWARD,
    "f.register_vmap()": _BATCHED,
    "f.register_vmap": _BATCHED,
    'torch.library.register_fake("NS::f")': _FUNCTION,
    'torch.library.register_kernel("NS::f", "cuda")': _FUNCTION,
    'torch.library.register_autograd("NS::f")': _BACKWARD,
    'torch.library.register_autograd("NS::f", setup_context=None)': _BACKWARD,
    'torch.library.register_vmap("NS::f")': _BATCHED,
    'torch.library.impl("NS::h", "cpu")': _FUNCTION,
    'torch.library.impl(library, "h", "CPU")': _FUNCTION,
    'library.impl("h")': _FUNCTION,
    'library.impl("h", dispatch_key="CPU")': _FUNCTION,
    'library._register_fake("h")': _FUNCTION,
}

_BEFORE = f"""{op("x: Tensor")}

library = torch.library.Library("NS", "FRAGMENT")
library.define("h(Tensor x) -> Tensor")


"""


def add_forms(collector: CaseCollector) -> None:
    """All of this module."""
    for call, function in WITHOUT_FUNCTION.items():
        collector.add(f"decorator {call}", f"{_BEFORE}@{call}\n{function}", "f(x)")
        collector.add(f"called {call}", f"{_BEFORE}{function}\n\n{call}(g)", "f(x)")
    for form, text in FORMS.items():
        for title, fake in FAKES:
            body = Template(text).substitute(
                fake=fake, parameters=PARAMETERS, made=MADE, empty=_empty(fake), op="NS::f", space="NS"
            )
            probes = [Probe("real", call) for call in _CALLS] + [Probe("fake", call) for call in _CALLS]
            collector.add(f"{form}: {title}", body, *probes)
    for title, text in RIGHT.items():
        calls = ("f(x, 2)", "f(x, 2, 3)", "f(x, a=1, b=1)")
        collector.add(
            f"right: {title}",
            Template(text).substitute(op="NS::f", space="NS"),
            *(Probe("fake", call) for call in calls),
        )


_CALLS = ("f(x, 2)", "f(x, 2, 3)", "f(x, 1, b=1, k=1)", "f(x, 2, k=3)", "f(x, k=4, b=5, a=6)")


def _empty(fake: str) -> str:
    """The fake's body: what it lacks counts with its default."""
    taken = {part.split("=")[0].strip() for part in fake.split(",")}
    sizes = [name if name in taken else {"a": "n", "b": "1", "k": "1"}[name] for name in "abk"]
    return f"x.new_empty((x.shape[0], {', '.join(sizes)}))"
