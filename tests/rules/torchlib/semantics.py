"""What torch 2.13 does with what is registered, said in words, each with the probe that shows it.

A probe is run below :data:`PRELUDE`, in a namespace of its own for which ``NS`` stands. The rules of the pack rest on these.
"""

from __future__ import annotations

from tests.rules.torchlib.oracle import Case

PRELUDE = '''\
import torch
from torch import Tensor
from torch.library import custom_op, define, impl, register_autograd, register_fake, register_vmap
from torch._subclasses.fake_tensor import FakeTensorMode

x, seen = torch.ones(2, 3), []
mode = FakeTensorMode()
fake = mode.from_tensor(x)
grad = torch.ones(2, 3, requires_grad=True)


def spy(*args, **kwargs):
    """A fake or kernel that keeps what it gets behind ``x``."""
    seen.append((args[1:], kwargs))
    return args[0].new_empty(args[0].shape)


def gets(op, *args, **kwargs):
    """The arguments that the spy receives from a call."""
    seen.clear()
    op(*args, **kwargs)
    return seen[0]


def says(call):
    """The words of the error that a call raises; empty when it raises none."""
    try:
        call()
    except Exception as error:
        return str(error) or type(error).__name__
    return ""


def spied(schema):
    """An operator of which spies are the fake and the kernel."""
    define("NS::f", schema)
    register_fake("NS::f", spy)
    impl("NS::f", "cpu", spy)
    return torch.ops.NS.f


def plain(**options):
    """A decorator: a custom op."""
    return custom_op("NS::f", **{"mutates_args": (), **options})


'''

#: What holds, and the probe for it.
HOLDS: tuple[tuple[str, str], ...] = (
    (
        "arguments at the end that equal the schema's defaults are not passed, even where the caller writes them",
        """f = spied("(Tensor x, int a=1, float b=0.5) -> Tensor")
assert gets(f, fake, 1, 0.5) == gets(f, x, 1, 0.5) == gets(f, fake, b=0.5) == ((), {})
assert gets(f, fake, 3) == gets(f, fake, 3, 0.5) == gets(f, fake, a=3) == ((3,), {})
assert gets(f, fake, b=2.0) == gets(f, x, b=2.0) == ((1, 2.0), {})""",
    ),
    (
        "arguments before `*` are passed by position however they are written, those after it by name, left out at their defaults",
        """f = spied("(Tensor x, int a=1, *, int k=4, bool m=False) -> Tensor")
assert gets(f, x=fake, a=2) == ((2,), {})
assert gets(f, fake, k=4, m=True) == ((), {"m": True})
assert gets(f, fake, a=1, k=5, m=False) == ((), {"k": 5})""",
    ),
    (
        "what equals a default is left out across types: True for 1, a tuple for a list",
        """f = spied("(Tensor x, int a=1, int[] s=[1, 2]) -> Tensor")
assert gets(f, fake, True, (1, 2)) == ((), {})
assert gets(f, fake, True, [2]) == ((1, [2]), {})""",
    ),
    (
        "names before `*` do not matter in a fake or a kernel, the order does",
        """@plain()
def f(x: Tensor, a: int, b: int) -> Tensor: return x.new_zeros(a, b)
f.register_fake(lambda t, m, n: t.new_empty(m, n))
assert f(fake, 2, 5).shape == (2, 5)
f.register_fake(lambda x, b, a: x.new_empty(a, b))
assert f(fake, 2, 5).shape == (5, 2)""",
    ),
    (
        "a fake's or kernel's own default counts where the schema's was meant",
        """@plain(device_types="cuda")
def f(x: Tensor, a: int = 1) -> Tensor: return x.new_zeros(a)
f.register_fake(lambda x, a=7: x.new_empty(a))
f.register_kernel("cpu", lambda x, a=7: x.new_empty(a))
assert f(fake).shape == f(x).shape == f(fake, 1).shape == f(x, 1).shape == (7,)""",
    ),
    (
        "a fake without a default that the schema has fails on the default call only",
        """@plain()
def f(x: Tensor, a: int = 1) -> Tensor: return x.new_zeros(a)
f.register_fake(lambda x, a: x.new_empty(a))
assert "missing 1 required positional argument" in says(lambda: f(fake))
assert f(fake, 2).shape == (2,)""",
    ),
    (
        "a fake that lacks a parameter fails as soon as its argument differs from the default",
        """@plain()
def f(x: Tensor, a: int = 1, *, k: int = 1) -> Tensor: return x.new_zeros(a, k)
f.register_fake(lambda x: x.new_empty(1, 1))
assert f(fake, 1, k=1).shape == (1, 1)
assert "positional arguments but 2 were given" in says(lambda: f(fake, 2)) or "takes 1 positional" in says(lambda: f(fake, 2))
assert "unexpected keyword argument 'k'" in says(lambda: f(fake, k=2))""",
    ),
    (
        "a keyword-only argument may be taken by a plain parameter of its name",
        """@plain()
def f(x: Tensor, a: int, *, k: int = 1, m: int = 1) -> Tensor: return x.new_zeros(a, k, m)
f.register_fake(lambda x, a, m=1, k=1: x.new_empty(a, k, m))
assert f(fake, 2, k=3, m=4).shape == (2, 3, 4)""",
    ),
    (
        "with schema= nothing of the function's signature is read",
        """@plain(schema="(Tensor x, int a, int b) -> Tensor")
def f(x, b, a): return x.new_zeros(a, b)
assert f(x, a=2, b=5).shape == (5, 2)""",
    ),
    (
        "mutates_args as a text of one letter passes against a schema, else only as a sequence",
        """@plain(schema="(Tensor(a!) x) -> ()", mutates_args="x")
def f(x): x.add_(1)
assert "suggests that the op mutates" in says(
    lambda: custom_op("NS::g", f._init_fn, mutates_args="xs", schema="(Tensor(a!) xs) -> ()")
)
def g(x: Tensor) -> None: x.add_(1)
assert "mutates_args must either" in says(lambda: custom_op("NS::h", g, mutates_args="x"))""",
    ),
    (
        "a default that its type does not admit is taken, and fails once a later argument is passed",
        """@plain()
def f(x: Tensor, a: int = None, b: int = 1) -> Tensor: return x.clone()
f.register_fake(lambda x, a=None, b=1: x.new_empty(2, 3))
assert f(fake).shape == f(x).shape == (2, 3)
for tensor in (x, fake):
    assert "instead found type 'NoneType'" in says(lambda: f(tensor, b=2))""",
    ),
    (
        "a string annotation is evaluated once, in the globals: not inside typing's generics, in those of Python",
        """def f(x: "Tensor", a: list["int"]) -> "Tensor": return x.clone()
assert torch.library.infer_schema(f, mutates_args=()) == "(Tensor x, SymInt[] a) -> Tensor"
from typing import List
def g(x: List["Tensor"]) -> Tensor: return x[0].clone()
def h(x: "'Tensor'") -> Tensor: return x.clone()
for fn in (g, h):
    assert "unsupported type" in says(lambda: torch.library.infer_schema(fn, mutates_args=()))""",
    ),
    (
        "a second custom_op of a name replaces the first, a second definition of any other way is refused",
        """@plain()
def f(x: Tensor) -> Tensor: return x.clone()
f.register_fake(spy)
@plain()
def g(x: Tensor) -> Tensor: return x + 1
assert torch.equal(f(x), x + 1) and "no fake impl" in says(lambda: f(fake))
assert "multiple times" in says(lambda: define("NS::f", "(Tensor x) -> Tensor"))""",
    ),
    (
        "the last fake holds, of a custom op and of a definition, where a Meta kernel stands, too",
        """f = spied("(Tensor x) -> Tensor")
impl("NS::f", "Meta", lambda x: x.new_empty(1))
assert f(fake).shape == (2, 3)
register_fake("NS::f", lambda x: x.new_empty(5))
assert f(fake).shape == (5,)
assert "already has a fake impl" in says(lambda: register_fake("NS::f", spy, allow_override=False))""",
    ),
    (
        "a fake for an operator that composes others, or that is not there yet, is refused; a kernel may come first",
        """define("NS::f", "(Tensor x) -> Tensor")
impl("NS::f", "CompositeImplicitAutograd", lambda x: x.clone())
assert "CompositeImplicitAutograd" in says(lambda: register_fake("NS::f", spy))
assert "does not exist" in says(lambda: register_fake("NS::g", spy))
impl("NS::g", "cpu", spy)
define("NS::g", "(Tensor x) -> Tensor")
assert torch.ops.NS.g(x).shape == (2, 3)""",
    ),
    (
        "an operator that writes and returns nothing needs no fake; one that neither writes nor returns does",
        """@plain(mutates_args=("x",))
def f(x: Tensor) -> None: x.add_(1)
assert f(fake) is None
@custom_op("NS::g", mutates_args=())
def g(x: Tensor) -> None: pass
assert "no fake impl" in says(lambda: g(fake))""",
    ),
    (
        "a definition with a kernel for all devices needs no fake; a Meta kernel is none for a custom op",
        """define("NS::f", "(Tensor x) -> Tensor")
impl("NS::f", "default", lambda x: x.clone())
assert torch.ops.NS.f(fake).shape == (2, 3)
@custom_op("NS::g", mutates_args=())
def g(x: Tensor) -> Tensor: return x.clone()
impl("NS::g", "Meta", spy)
assert "no fake impl" in says(lambda: g(fake))""",
    ),
    (
        "a fake or kernel that returns nothing passes for one that returns a tensor; too few or other values do not",
        """@plain()
def f(x: Tensor, how: int = 0) -> Tensor: return (None, (x + 1, x + 2), 1)[how]
f.register_fake(lambda x, how=0: (None, (x + 1, x + 2), 1)[how])
for tensor in (x, fake):
    assert f(tensor) is None and all("Unable to cast" in says(lambda: f(tensor, how)) for how in (1, 2))
@custom_op("NS::g", mutates_args=())
def g(x: Tensor) -> tuple[Tensor, Tensor]: return x.clone()
@custom_op("NS::h", mutates_args=())
def h(x: Tensor) -> None: return x.clone()
assert "not an instance of 'sequence'" in says(lambda: g(x)) and "to return None" in says(lambda: h(x))""",
    ),
    (
        "a custom op's output may share no storage with an input or another output; of a definition nobody looks",
        """@plain()
def f(x: Tensor, how: int) -> tuple[Tensor, Tensor]:
    new = x.clone()
    return ((x, new), (new, x.view(-1)), (new[0], new[1]), (new, x + 1))[how]
assert all("must not also be an input" in says(lambda: f(x, how)) for how in range(3)) and not says(lambda: f(x, 3))
define("NS::g", "(Tensor x) -> Tensor")
impl("NS::g", "cpu", lambda x: x)
assert torch.ops.NS.g(x) is x""",
    ),
    (
        "an input that is changed though it is not declared is not noticed",
        """@plain()
def f(x: Tensor) -> Tensor: x.add_(1); return x.clone()
assert torch.equal(f(x), torch.full((2, 3), 2.0)) and x[0, 0] == 2
assert "not defined as mutable" in str(torch.library.opcheck(f, (x,), raise_exception=False)["test_schema"])""",
    ),
    (
        "backward gets a gradient an output, a list of tensors being one, a number too",
        """@plain()
def f(x: Tensor) -> tuple[Tensor, list[Tensor], int]: return x + 1, [x + 2, x + 3], 4
f.register_autograd(lambda *given: seen.append(given[1:]) or given[1])
f(grad)[0].sum().backward()
assert [len(given) for given in seen] == [3] and isinstance(seen[0][1], list)""",
    ),
    (
        "backward returns a gradient for each positional argument passed, at least; what is more must be None",
        """@plain()
def f(x: Tensor, a: int = 1, b: int = 2, *, k: int = 1) -> Tensor: return x.clone()
def tried(result, *args, **kwargs):
    f.register_autograd(lambda ctx, g: result)
    return says(lambda: f(grad, *args, **kwargs).sum().backward())
one = torch.ones(2, 3)
for fine in (one, (one,), (one, None), (one, None, None), (one, None, None, None, None)):
    assert not tried(fine), fine
assert not tried((one, None), 5) and not tried((one, None, None), 5, 6, k=3)
assert "(expected 3, got 2)" in tried(one, 5) and "(expected 4, got 3)" in tried((one, None), 5, 6)
assert "different than None" in tried((one, one)) and "different than None" in tried((one, one, None), 5)
assert "got list" in tried([one, None, None])""",
    ),
    (
        "where a list of tensors is taken or given, backward returns just what was passed, a list for a list",
        """@plain()
def f(xs: list[Tensor], a: int = 1) -> Tensor: return xs[0] + xs[1]
def tried(result, *args):
    f.register_autograd(lambda ctx, g: result)
    return says(lambda: f([grad, x], *args).sum().backward())
one = torch.ones(2, 3)
assert not tried(([one, None],)) and not tried(([one, None], None), 5)
for wrong in (([one, None], None), (None,), (one, None), ([one],)):
    assert "same structure" in tried(wrong), wrong""",
    ),
    (
        "setup_context is called by the names ctx, inputs, output, and keyword_only_inputs where there are keyword-only arguments",
        """@plain()
def f(x: Tensor, a: int = 1, *, k: int = 2) -> Tensor: return x.clone()
def setup(output, *, inputs, keyword_only_inputs, ctx): seen.append((inputs[1:], keyword_only_inputs))
f.register_autograd(lambda ctx, g: g, setup_context=setup)
assert gets(f, grad) == ((1,), {"k": 2})
for wrong in (lambda ctx, inputs, output: 0, lambda c, inputs, keyword_only_inputs, output: 0, lambda *args: 0):
    f.register_autograd(lambda ctx, g: g, setup_context=wrong)
    assert "argument" in says(lambda: f(grad))""",
    ),
    (
        "register_autograd is refused for what writes or returns nothing",
        """@plain(mutates_args=("x",))
def f(x: Tensor) -> Tensor: return x.clone()
assert "non-functional" in says(lambda: f.register_autograd(lambda ctx, g: g))
define("NS::g", "(Tensor x) -> ()")
assert "non-functional" in says(lambda: register_autograd("NS::g", lambda ctx, g: g))""",
    ),
    (
        "a vmap rule gets info and in_dims, then what a fake gets; it returns the output and its dimensions",
        """@plain()
def f(x: Tensor, a: int = 1, *, k: int = 1) -> Tensor: return x.clone()
f.register_vmap(lambda info, dims, *args, **kwargs: seen.append((dims, args[1:], kwargs)) or (args[0].clone(), 0))
torch.vmap(f)(x)
torch.vmap(lambda x: f(x, 2, k=3))(x)
assert seen == [((0,), (), {}), ((0, None), (2,), {"k": 3})]
f.register_vmap(lambda info, dims, x: x.clone())
assert "two returns" in says(lambda: torch.vmap(f)(x))""",
    ),
    (
        "a kernel for a device without a tensor argument needs a device argument: positional, and without a default",
        """def f(a: int) -> Tensor: return torch.ones(a)
def g(a: int, *, device: torch.device) -> Tensor: return torch.ones(a)
def h(a: int, device: torch.device = torch.device("cpu")) -> Tensor: return torch.ones(a)
assert "without tensor inputs" in says(lambda: custom_op("NS::f", f, mutates_args=(), device_types="cpu"))
g, h = (custom_op(f"NS::{op.__name__}", op, mutates_args=(), device_types="cpu") for op in (g, h))
assert "out of range" in says(lambda: g(2, device="cpu")) and "out of range" in says(lambda: h(2, "cpu"))""",
    ),
    (
        "numbers and None pass where their types nearly fit",
        """f = spied("(Tensor? t, int a=1, float b=0.5, bool c=False, str s='q', int[] l=[], Tensor? w=None) -> Tensor")
for good in ({"a": True}, {"a": torch.tensor(3)}, {"b": 1}, {"c": 1}, {"c": None}, {"l": (1, 2)}, {"l": range(2)}):
    assert not says(lambda: f(x, **good)), good
for bad in ({"a": 1.5}, {"a": None}, {"a": "1"}, {"b": None}, {"b": "1"}, {"c": "x"}, {"s": 1}, {"l": 1}, {"l": [1.5]}, {"w": 1}):
    assert "Expected a value of type" in says(lambda: f(x, **bad)), bad""",
    ),
    (
        "operators of a Library that nothing holds vanish with it",
        """def load():
    library = torch.library.Library("NS", "FRAGMENT")
    library.define("f(Tensor x) -> Tensor")
load()
assert "no attribute 'f'" in says(lambda: torch.ops.NS.f)""",
    ),
    (
        "an operator tagged as in-place must return its first argument, of a custom op only",
        """@plain(mutates_args=("x",), tags=torch.Tag.inplace)
def f(x: Tensor) -> Tensor: return x.clone()
assert "must return its first argument" in says(lambda: f(x))
define("NS::g", "(Tensor(a!) x) -> Tensor(a!)", tags=torch.Tag.inplace)
impl("NS::g", "cpu", lambda x: x.clone())
assert not says(lambda: torch.ops.NS.g(x))""",
    ),
)


def probes() -> list[Case]:
    """A case a sentence; it has no fault as long as the sentence holds."""
    texts = enumerate(HOLDS)
    return [Case(f"s{place}", said, (PRELUDE + probe).replace("NS", f"s{place}"), ()) for place, (said, probe) in texts]
