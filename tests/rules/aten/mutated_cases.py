"""Changes by hand, for what random ones rarely meet: the relations of entries, rare fields, and YAML's darker corners."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tests.rules.aten.mutations import Change, Mutant, mutate
from tests.rules.aten.oracle import BACKEND, DERIVATIVES, NATIVE, TAGS
from tests.rules.aten.plots import plot

XLA = """\
backend: XLA
cpp_namespace: torch_xla
full_codegen:
  - acos
  - asin
ir_gen:
  - zeros
supported:
  - add.Tensor
  - expand
  - zeros
symint:
  - expand
autograd:
  - mean
"""
"""The backend's file of the cases; it is about the families below."""

XLA_FAMILIES = ("acos", "asin", "add", "expand", "zeros", "mean")


class Case(NamedTuple):
    """``old`` becomes ``new`` in a file of a plot: once, where it first stands behind the plot's neighbours, or everywhere,
    in the derivatives as well.
    """

    families: tuple[str, ...]
    path: str
    old: str
    new: str
    everywhere: bool = False

    def mutant(self) -> Mutant:
        """The changed tree."""
        files = plot(self.families)
        if self.path == BACKEND:
            files[BACKEND] = XLA
        behind = len(plot(())[self.path]) if self.path in (NATIVE, DERIVATIVES) else 0
        places = [
            match.start() for match in re.finditer(re.escape(self.old), files[self.path]) if match.start() >= behind
        ]
        if self.path == NATIVE and not self.everywhere:
            del files[DERIVATIVES]
        if self.everywhere:
            files[DERIVATIVES] = files[DERIVATIVES].replace(self.old, self.new)
        kind = f"case {', '.join(self.families)}: {self.old.strip()[:60]!r} -> {self.new.strip()[:60]!r}"
        changes = [Change(at, at + len(self.old), self.new) for at in places]
        return mutate(files, self.path, kind, changes if self.everywhere else changes[:1])


def _one_of(path: str, families: str, pairs: tuple[tuple[str, str], ...]) -> Iterator[Case]:
    """Each change in the first family that has what it changes."""
    behind = len(plot(())[path])
    for old, new in pairs:
        yield Case(next((name,) for name in families.split() if old in plot([name])[path][behind:]), path, old, new)


def _native(families: str, *pairs: tuple[str, str]) -> Iterator[Case]:
    yield from _one_of(NATIVE, families, pairs)


def _derivatives(families: str, *pairs: tuple[str, str]) -> Iterator[Case]:
    yield from _one_of(DERIVATIVES, families, pairs)


def _everywhere(family: str, *pairs: tuple[str, str]) -> Iterator[Case]:
    for old, new in pairs:
        yield Case((family,), NATIVE, old, new, everywhere=True)


def _natives(families: str, *pairs: tuple[str, str]) -> Iterator[Case]:
    """Changes in a tree of all the families."""
    for old, new in pairs:
        yield Case(tuple(families.split()), NATIVE, old, new)


def _backend(*pairs: tuple[str, str]) -> Iterator[Case]:
    for old, new in pairs:
        yield Case(XLA_FAMILIES, BACKEND, old, new)


def _tags(*pairs: tuple[str, str]) -> Iterator[Case]:
    for old, new in pairs:
        yield Case(("square",), TAGS, old, new)


_KERNEL_SIZE = "  - kernel_size -> int kH, int kW"


@cache
def cases() -> tuple[Case, ...]:
    """The changes."""
    return (
        # precomputed
        *_native(
            "avg_pool2d",
            (_KERNEL_SIZE, "  - 1"),
            (_KERNEL_SIZE, "  - int kH"),
            (_KERNEL_SIZE, "  - kernel_size -> int kH, int kH"),
            (_KERNEL_SIZE, "  - nothing -> int kH"),
            (_KERNEL_SIZE, "  - kernel_size -> int KH"),
            (_KERNEL_SIZE, "  - kernel_size"),
            (_KERNEL_SIZE, "  - kernel_size -> "),
            (_KERNEL_SIZE, "  - kernel_size -> int"),
            (_KERNEL_SIZE, "  - kernel_size -> intkH"),
            (_KERNEL_SIZE, "  - kernel_size->int kH, int kW"),
            (_KERNEL_SIZE, "  - kernel_size -> int kH,int kW"),
            (_KERNEL_SIZE, "  - kernel_size -> int kH, int kW, "),
            (_KERNEL_SIZE, "  - kernel_size ->  int kH, int kW"),
            (_KERNEL_SIZE, "  - kernel_size -> Tensr kH"),
            (_KERNEL_SIZE, "  - kernel_size -> int kernel_size"),
            (_KERNEL_SIZE, "  - kernel_size -> int dH"),
            (_KERNEL_SIZE, "  - kernel_size -> int self"),
            (_KERNEL_SIZE, "  - kernel_size -> int KERNEL"),
            (_KERNEL_SIZE, "  - kernel_size -> int kH -> int kW"),
            (_KERNEL_SIZE, "  - kernel_size -> int kH=1"),
            (_KERNEL_SIZE, "  - kernel_size -> int? kH"),
            (_KERNEL_SIZE, "  - Kernel_size -> int kH"),
            (_KERNEL_SIZE, "  - KERNEL_SIZE -> int kH"),
            (_KERNEL_SIZE, "  - self -> Tensor other"),
            (_KERNEL_SIZE, "  - kernel_size -> Tensor other"),
            (_KERNEL_SIZE, "  - [a]"),
            (_KERNEL_SIZE, "  -"),
            (_KERNEL_SIZE, "  - kernel_size: int kH"),
            (_KERNEL_SIZE, "  - kernel_size -> int kH, int kW\n  - kernel_size -> int a"),
            ("  - padding -> int padH, int padW", "  - int padH, int padW"),
            ("  - padding -> int padH, int padW", "  - INT padH"),
            ("  - padding -> int padH, int padW", "  - int PADH"),
            ("  - padding -> int padH, int padW", "  - int padH, int padH"),
            ("  - padding -> int padH, int padW", "  - int dH"),
            ("  - padding -> int padH, int padW", "  - padH"),
            ("  precomputed:\n" + _KERNEL_SIZE, "  precomputed: x\n  y:\n" + _KERNEL_SIZE),
            (_KERNEL_SIZE + "\n  - stride -> int dH, int dW\n  - padding -> int padH, int padW\n", ""),
            (_KERNEL_SIZE + "\n  - stride -> int dH, int dW\n  - padding -> int padH, int padW\n", "    a: int b\n"),
            (_KERNEL_SIZE + "\n  - stride -> int dH, int dW\n  - padding -> int padH, int padW\n", "    []\n"),
            ("  structured: True\n", "  structured: False\n"),
        ),
        # ufunc_inner_loop
        *_native(
            "add",
            ("    Generic: add (AllAndComplex, BFloat16, Half, ComplexHalf)", "    Generic: add [Bool]"),
            ("    Generic: add (AllAndComplex, BFloat16, Half, ComplexHalf)", "    Generic: add Bool"),
            ("    Generic: add (AllAndComplex, BFloat16, Half, ComplexHalf)", "    Generic: add (Bool"),
            ("    Generic: add (AllAndComplex, BFloat16, Half, ComplexHalf)", "    Generic: add Bool)"),
            ("    Generic: add (AllAndComplex, BFloat16, Half, ComplexHalf)", "    Generic: add ()"),
            ("    Generic: add (AllAndComplex, BFloat16, Half, ComplexHalf)", "    Generic: add (Bool,Half)"),
            ("    Generic: add (AllAndComplex, BFloat16, Half, ComplexHalf)", "    Generic: add (Bool, Bool)"),
            ("    Generic: add (AllAndComplex, BFloat16, Half, ComplexHalf)", "    Generic: add (bool)"),
            ("    Generic: add (AllAndComplex, BFloat16, Half, ComplexHalf)", "    Generic: add (Bool) more"),
            ("    Generic: add (AllAndComplex, BFloat16, Half, ComplexHalf)", "    Generic: 3"),
            ("    Generic: add (AllAndComplex, BFloat16, Half, ComplexHalf)", "    3: add (Bool)"),
            ("    Generic: add (AllAndComplex, BFloat16, Half, ComplexHalf)", "    generic: add (Bool)"),
            ("    Generic: add (AllAndComplex, BFloat16, Half, ComplexHalf)\n", ""),
            ("    ScalarOnly: add (Bool)\n", ""),
            ("    ScalarOnly: add (Bool)", "    ScalarOnly: add (Half)"),
            ("    ScalarOnly: add (Bool)", "    CPUVector: add (Bool)"),
            ("    ScalarOnly: add (Bool)", "    CUDAFunctorOnSelf: add (Bool)"),
            ("    MPS: add_out_mps", "    CPU: add_out"),
            ("    MPS: add_out_mps", "    CUDA: add_out"),
            ("  structured: True\n", ""),
            ("  ufunc_inner_loop:\n", "  ufunc_inner_loop: add (Bool)\n  tag:\n"),
            ("*, Scalar alpha=1, Tensor(a!) out", "*, Scalar[] alpha=1, Tensor(a!) out"),
        ),
        # groups
        *_natives(
            "acos asin",
            ("variants: function, method\n  structured_delegate: acos.out", "structured_delegate: asin.out"),
            ("tags: [core, pointwise]\n\n- func: acos_", "tags: core\n\n- func: other_"),
            ("- func: acos_(", "- func: acos_.x("),
            ("- func: acos_(", "- func: custom::acos_("),
            ("- func: acos(", "- func: custom::acos("),
            ("- func: acos.out(", "- func: custom::acos.out("),
            ("- func: acos.out(", "- func: acos.Out("),
            ("- func: acos.out(", "- func: asin.out("),
            ("- func: acos.out(", "- func: acos("),
            ("- func: acos(", "- func: arccos("),
            ("- func: acos(Tensor self)", "- func: acos(Tensor input)"),
            ("- func: acos.out(Tensor self,", "- func: acos.out(Tensor? self,"),
            ("- func: acos.out(Tensor self,", "- func: acos.out(Tensor self, int x,"),
            ("  structured: True\n", ""),
            ("  structured: True\n", "  structured: False\n"),
            ("  structured: True\n", "  structured: True\n  structured_delegate: acos.out\n"),
            ("  structured: True\n", "  structured: True\n  device_guard: False\n"),
            ("  structured: True\n", "  structured: True\n  manual_kernel_registration: True\n"),
            ("  structured: True\n", "  structured: True\n  autogen: acos.x\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CompositeImplicitAutograd: acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CompositeExplicitAutograd: acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CompositeImplicitAutogradNestedTensor: acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU: other::acos_out\n    CUDA: acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU: other::native::acos_out\n    CUDA: acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU: acos_out\n    CUDA: at::native::acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU: acos_out\n    SparseCPU: x::native::acos_out\n"),
            ("  structured_inherits: TensorIteratorBase\n", "  structured_inherits: at::TensorIteratorBase\n"),
            ("  structured_delegate: acos.out\n  tags: [core", "  structured_delegate: asin.out\n  tags: [core"),
            ("  structured_delegate: acos.out\n  tags: [core", "  structured_delegate: relu\n  tags: [core"),
            ("  structured_delegate: acos.out\n  tags: [core", "  structured_delegate: acos_\n  tags: [core"),
            ("  structured_delegate: acos.out\n  tags: [core", "  structured_delegate: acos.uot\n  tags: [core"),
            ("  structured_delegate: acos.out\n  tags: [core", "  structured_delegate: at::acos.out\n  tags: [core"),
            ("  structured_delegate: acos.out\n  tags: [core", "  structured_delegate: acos.out.out\n  tags: [core"),
            ("  structured_delegate: acos.out\n  tags: [core", "  structured_delegate: \n  tags: [core"),
            ("  structured_delegate: acos.out\n  tags: [core", "  tags: [core"),
            (
                "  structured_delegate: acos.out\n  tags: [core",
                "  structured_delegate: acos.out\n  dispatch: {CPU: x}\n  tags: [core",
            ),
            (
                "  structured_delegate: acos.out\n  tags: [core",
                "  structured_delegate: acos.out\n  dispatch: {SparseCPU: x}\n  tags: [core",
            ),
            (
                "  structured_delegate: acos.out\n  tags: [core",
                "  structured_delegate: acos.out\n  dispatch: {CompositeImplicitAutograd: x}\n  tags: [core",
            ),
            (
                "  structured_delegate: acos.out\n  tags: [core",
                "  structured_delegate: acos.out\n  autogen: acos.out\n  tags: [core",
            ),
            (
                "  structured_delegate: acos.out\n  tags: [core",
                "  structured_delegate: acos.out\n  device_guard: False\n  tags: [core",
            ),
        ),
        *_native(
            "square",
            ("  tags: pointwise\n", "  dispatch:\n    CompositeImplicitAutograd: square\n  tags: pointwise\n"),
            ("  tags: pointwise\n", "  dispatch:\n    CompositeImplicitAutograd: square_\n  tags: pointwise\n"),
            ("  tags: pointwise\n", "  dispatch:\n    CompositeExplicitAutograd: square\n  tags: pointwise\n"),
            ("  tags: pointwise\n", "  dispatch:\n    CPU: square\n  tags: pointwise\n"),
            ("  tags: pointwise\n", "  dispatch:\n  tags: pointwise\n"),
            ("  tags: pointwise\n", "  dispatch: {}\n  tags: pointwise\n"),
            ("  tags: pointwise\n", "  manual_kernel_registration: True\n  tags: pointwise\n"),
            ("  tags: pointwise\n", "  manual_kernel_registration: True\n  dispatch: {}\n  tags: pointwise\n"),
            ("  tags: pointwise\n", "  tags: [pointwise, inplace_view]\n"),
            ("  tags: pointwise\n", "  tags: generated\n"),
            ("  tags: pointwise\n", "  autogen: square.out\n  tags: pointwise\n"),
            ("  tags: pointwise\n", "  __line__: 3\n  tags: pointwise\n"),
            ("  tags: pointwise\n", "  dispatch: {__line__: x}\n  tags: pointwise\n"),
            ("  tags: pointwise\n", "  dispatch: {CPU: x, __line__: x}\n  tags: pointwise\n"),
            ("  tags: pointwise\n", "  python_module: nn\n  tags: pointwise\n"),
            ("- func: square.out(Tensor self, *, Tensor(a!) out)", "- func: square.out(Tensor self, Tensor(a!) out)"),
            ("- func: square.out(", "- func: square.functional("),
            ("- func: square(Tensor self)", "- func: square.functional(Tensor(a!) self)"),
            ("- func: square_(", "- func: square_.functional("),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self) -> Tensor(a)"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor(a) self, Tensor(a) other) -> Tensor(a)"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor(a!) self, Tensor(a!) other) -> ()"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor(a!) self) -> Tensor(a!)"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, Tensor(a!) other) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, *, Tensor(a!) other) -> Tensor(a!)"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, int(a!) x) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self) -> int(a)"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor(a -> b) self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor(a|b -> c|d) self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor(a|b) self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor(b|a) self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor(a|a) self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor(a! -> a) self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor(* -> a) self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, *) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(*, Tensor self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self) -> (Tensor)"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, bool[] x) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, bool[2] x=1) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, int[2] x=[0,1]) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, int[2] x=[0, 1]) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, int[] x=1) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, int[] x=abc) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, int x=abc) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, int x=1.5) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, bool x=1) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, str x=abc) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", '- func: square(Tensor self, str x="abc") -> Tensor'),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, str x='a, b') -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, str x='a) -> b') -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, Tensor x=1) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, int x=None) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, int x=1, int y) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, Tensor self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self) -> Tensor self"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self) -> Tensor[2]"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self) -> Tensor?"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self) -> Tensor?[]"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self) -> Tensor(a!)[]"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, Dimname[]? names=None) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, Generator generator) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self, Generator? gen) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square_out(Tensor self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: __square__(Tensor self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: __isquare__(Tensor self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square__(Tensor self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: new_square(Tensor self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square_like(Tensor self) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(int n) -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square() -> Tensor"),
            ("- func: square(Tensor self) -> Tensor", "- func: square(Tensor self) -> ()"),
            (
                "- func: square(Tensor self) -> Tensor",
                "- func: square(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                "bool? pin_memory=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                "bool? pin_memory=None) -> Tensor",
            ),
            (
                "- func: square(Tensor self) -> Tensor",
                "- func: square(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                "bool? pin_memory=None) -> Tensor",
            ),
            (
                "- func: square_(Tensor(a!) self)",
                "- func: square_(Tensor(a!) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                "bool? pin_memory=None)",
            ),
            ("- func: square_(Tensor(a!) self)", "- func: square_(Tensor(a!) self, *, Tensor(b!) out)"),
            ("- func: square_(Tensor(a!) self)", "- func: square_(Tensor(a!) self, Tensor(b!) other)"),
            ("- func: square_(Tensor(a!) self)", "- func: square_(Tensor(a! -> *) self)"),
            ("- func: square_(Tensor(a!) self)", "- func: square_(int x, Tensor(a!) self)"),
            ("- func: square_(Tensor(a!) self)", "- func: square_(Tensor(a!) input)"),
            ("- func: square.out(Tensor self,", "- func: square.out(Tensor self, *, Tensor(b!) _scratch_x,"),
            ("Tensor(a!) out)", "Tensor(a!) _scratch_out)"),
            ("Tensor(a!) out)", "Tensor(a!) out, Tensor(b!) _scratch_x)"),
            ("Tensor(a!) out)", "Tensor(a!) out, Tensor(b!) more)"),
            ("Tensor(a!) out)", "Tensor(a!)? out)"),
            ("Tensor(a!) out)", "Tensor(a!) out=None)"),
            ("Tensor(a!) out) -> Tensor(a!)", "Tensor(a!)[] out) -> Tensor(a!)[]"),
            ("Tensor(a!) out) -> Tensor(a!)", "Tensor(a!)[] out) -> ()"),
        ),
        # what torchgen refuses only in a group that is right otherwise
        *_everywhere(
            "add", ("Scalar alpha", "Scalar beta"), ("Scalar alpha", "Scalar[] alpha"), ("Scalar alpha", "int[] alpha")
        ),
        *_everywhere(
            "add",
            ("Scalar alpha", "Generator? alpha"),
            ("Scalar alpha", "bool requires_grad"),
            ("Scalar alpha", "str alpha"),
        ),
        *_everywhere(
            "acos", ("Tensor self", "Tensor input"), ("Tensor self", "Tensor result"), ("Tensor self", "Tensor lambda")
        ),
        *_everywhere(
            "acos", ("acos", "acos_functional"), ("acos", "1acos"), ("acos", "randcos"), ("acos", "custom::acos")
        ),
        *_everywhere(
            "acos", ("Tensor(a!) out", "Tensor(a!) x"), ("(a!)", "(b!)"), ("Tensor", "Tensor[]"), ("Tensor", "Tensor?")
        ),
        *_everywhere(
            "avg_pool2d",
            ("int[2] padding=0", "int[2] padding=[0,0]"),
            ("kernel_size", "grad_input_mask"),
            ("bool ceil_mode", "bool[] ceil_mode"),
        ),
        *_everywhere("linalg_qr", ("Tensor Q", "Tensor A"), (" Q", " self"), (" Q", ""), ("Q, ", "Q,  ")),
        *_everywhere(
            "diagonal",
            ("int offset", "Generator? offset"),
            ("int offset", "bool[] offset"),
            ("int dim1", "SymInt dim1"),
        ),
        *_everywhere(
            "zeros",
            ("bool? pin_memory", "bool? pinned"),
            ("Layout? layout", "Tensor? layout"),
            ("SymInt[] size", "int[] size"),
        ),
        *_everywhere(
            "native_batch_norm_legit",
            ("Tensor(a!) running_mean", "Tensor running_mean"),
            ("(b!)", "(a!)"),
            ("(d!)", "(b!)"),
        ),
        *_native(
            "native_batch_norm_legit t expand diagonal acos square unbind",
            ("  autogen: _native_batch_norm_legit_functional\n", ""),
            ("  autogen: _native_batch_norm_legit_functional\n", "  autogen: _native_batch_norm_legit.functional\n"),
            ("- func: _native_batch_norm_legit(", "- func: custom::_native_batch_norm_legit("),
            ("- func: _native_batch_norm_legit(", "- func: _native_batch_norm_legit.functional("),
            ("- func: square_(Tensor(a!) self)", "- func: square_(Tensor(a!) self, Tensor(b -> *) x)"),
            ("- func: square_(", "- func: square_functional_("),
            ("- func: square(", "- func: __square_functional__("),
            ("- func: square_(", "- func: square.x(Tensor input) -> Tensor\n- func: square_("),
            ("- func: square(Tensor self)", "- func: square(Tensor self, bool? requires_grad=None)"),
            (
                "Tensor(a!) out) -> Tensor(a!)\n  tags: pointwise",
                "Tensor(a!) out, Tensor(b!)[] x) -> ()\n  tags: pointwise",
            ),
            ("- func: t(Tensor(a) self) -> Tensor(a)", "- func: t(Tensor(a) self) -> (Tensor(a), Tensor)"),
            ("- func: t(Tensor(a) self) -> Tensor(a)", "- func: t(Tensor(a) self) -> Tensor(a)?"),
            (
                "    CompositeExplicitAutogradNonFunctional: expand_copy_symint\n",
                "    CompositeExplicitAutogradNonFunctional: expand_copy\n",
            ),
            (
                "    CompositeExplicitAutogradNonFunctional: t_copy\n",
                "    CompositeExplicitAutogradNonFunctional: copy\n",
            ),
            ("    CompositeExplicitAutograd: t_\n", "    CompositeImplicitAutograd: t_inplace\n"),
            (
                "- func: acos_(Tensor(a!) self) -> Tensor(a!)\n  device_check: NoCheck   # TensorIterator\n"
                "  variants: function, method\n  structured_delegate: acos.out\n",
                "- func: acos_(Tensor(a!) self) -> Tensor(a!)\n",
            ),
        ),
        *_derivatives(
            "linalg_qr acos add bernoulli",
            ("(grad_Q, grad_R, Q, R, mode)", "(grad_Q, grads[1], Q, R, mode)"),
            ("(grad_Q, grad_R, Q, R, mode)", "(grad_Q, grad, Q, R, mode)"),
            ("(grad_Q, grad_R, Q, R, mode)", "(grad_Q, grad_S, Q, R, mode)"),
            ("(grad_Q, grad_R, Q, R, mode)", "(grads[0], grads[1], Q, R, mode)"),
            ("(grad_Q, grad_R, Q, R, mode)", "(grads[0], grads[2], Q, R, mode)"),
            ("  Q, R: linalg_qr_jvp(A_t, Q, R, mode)\n", "  Q: linalg_qr_jvp(A_t, Q, R, mode)\n"),
            ("  Q, R: linalg_qr_jvp(A_t, Q, R, mode)\n", "  Q, R: linalg_qr_jvp(A, Q, R, mode)\n"),
            ("  Q, R: linalg_qr_jvp(A_t, Q, R, mode)\n", "  Q, R: auto_linear\n"),
            ("  Q, R: linalg_qr_jvp(A_t, Q, R, mode)\n", "  Q, S: linalg_qr_jvp(A_t, Q, R, mode)\n"),
            ("  self: zeros_like(grad)\n  p:", "  self: grad * self.sym_strides()[0]\n  p:"),
            ("  result: self_t.zero_()\n", "  result: self_t.zero_()\n  result0: self_t\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: wrap_opt_if(self)\n"),
            ("  other: handle_r_to_c(other.scalar_type()", "  alpha: handle_r_to_c(other.scalar_type()"),
            ("  other: handle_r_to_c(other.scalar_type()", "  self: handle_r_to_c(other.scalar_type()"),
        ),
        # what torchgen is blind to
        *_native(
            "acos bernoulli square cummax_helper",
            ("  structured_inherits: TensorIteratorBase\n", "  structured_inherits: two words\n"),
            ("  autogen: bernoulli.float_out\n", "  autogen: bernoulli.float_out, bernoulli.float_out\n"),
            (
                "- func: square_(",
                "- func: square(Tensor self, int x) -> Tensor\n  dispatch: {CPU: x}\n- func: square_(",
            ),
            ("indices, int dim) -> ()", "indices, int dim, DimVector x) -> ()"),
            ("indices, int dim) -> ()", "indices, int dim;) -> ()"),
            ("indices, int dim) -> ()", "indices, int dim, int dim) -> ()"),
            ("indices, int dim) -> ()", "indices, int 1dim) -> ()"),
            ("indices, int dim) -> ()", "indices, int dim =1) -> ()"),
            ("- func: square(Tensor self)", "- func: square(Tensor self, int 1a)"),
            ("- func: square(Tensor self)", "- func: square(Tensor self, int x =1)"),
        ),
        *_derivatives(
            "erfinv floor mm",
            ("- name: erfinv(Tensor self) -> Tensor\n", "- name: relu(Tensor self) -> Tensor\n"),
            ("- name: floor(Tensor self) -> Tensor\n  self: zeros_like(grad)\n  result: auto_element_wise\n", ""),
            ("- name: floor(Tensor self) -> Tensor\n", "- name: _foreach_floor_(Tensor(a!)[] self) -> ()\n"),
            (
                "- name: floor(Tensor self) -> Tensor\n",
                "- name: floor.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n",
            ),
            ("- name: _foreach_mm(", "- name: _foreach_mn("),
        ),
        *_derivatives(
            "acos fractional_max_pool3d add",
            ("  result: auto_element_wise\n", "  result: auto_linear\n  output_differentiability: ['True']\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: auto_linear\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: ' '\n"),
            (
                "  self: fractional_max_pool3d_backward(grad, self",
                "  self: fractional_max_pool3d_backward(grads[1], self",
            ),
            ("  other: handle_r_to_c(other.scalar_type()", "  other: handle_r_to_c(grad_input_mask[0]"),
        ),
        *_natives(
            "acos",
            (
                "    CPU, CUDA, MPS: acos_out\n",
                "    CPU: acos_out\n  tags: pointwise\n- func: acos.x(Tensor self) -> Tensor\n",
            ),
        ),
        # views
        *_native(
            "t expand unbind",
            ("- func: t_copy(", "- func: t_clone("),
            ("- func: t_copy(", "- func: t_scatter("),
            ("- func: t_copy(Tensor self)", "- func: t_copy(Tensor self, int x)"),
            ("- func: t_(Tensor(a!) self)", "- func: t_(Tensor(a!) self, int x)"),
            ("  tags: inplace_view\n", ""),
            ("  tags: inplace_view\n", "  tags: view_copy\n"),
            ("  tags: view_copy\n", ""),
            ("    CompositeExplicitAutograd: t\n", "    CompositeImplicitAutograd: t\n"),
            ("    CompositeExplicitAutograd: t\n", "    CompositeImplicitAutograd: t_impl\n"),
            (
                "    CompositeExplicitAutograd: t\n",
                "    CompositeExplicitAutograd: t\n    CompositeImplicitAutogradNestedTensor: u\n",
            ),
            ("    CompositeExplicitAutograd: t\n", "    CompositeExplicitAutograd: custom::t\n"),
            ("    CompositeExplicitAutogradNonFunctional: t_copy\n", "    CompositeExplicitAutograd: t_copy\n"),
            ("  autogen: t_copy.out\n", ""),
            ("  autogen: t_copy.out\n", "  autogen: t.out\n"),
            ("  autogen: t_copy.out\n", "  autogen: t_copy.out, t_copy.x\n"),
            ("- func: t(Tensor(a) self) -> Tensor(a)", "- func: t(Tensor self) -> Tensor"),
            ("- func: t(Tensor(a) self) -> Tensor(a)", "- func: t(Tensor(a) self) -> Tensor"),
            ("- func: t(Tensor(a) self) -> Tensor(a)", "- func: t(Tensor self) -> Tensor(a)"),
            ("- func: t(Tensor(a) self) -> Tensor(a)", "- func: t(Tensor(a) self) -> Tensor(b)"),
            ("- func: t(Tensor(a) self) -> Tensor(a)", "- func: t(Tensor(a -> *) self) -> Tensor(a)"),
            ("- func: t(Tensor(a) self) -> Tensor(a)", "- func: custom::t(Tensor(a) self) -> Tensor(a)"),
            ("- func: unbind_copy.int(", "- func: unbind_copy("),
            ("*, Tensor(a!)[] out) -> ()", "*, Tensor(a!)[] out) -> Tensor(a!)[]"),
            ("*, Tensor(a!)[] out) -> ()", "*, Tensor(a!)[] out) -> Tensor[]"),
            (
                "- func: unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
                "- func: unbind.int(Tensor(a) self, int dim=0) -> Tensor(a)[]",
            ),
            (
                "- func: unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
                "- func: unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor[]",
            ),
            (
                "- func: unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
                "- func: unbind.int(Tensor(a->*) self, int dim=0) -> Tensor(a)[]",
            ),
            (
                "- func: unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
                "- func: unbind.int(Tensor(a  -> *) self, int dim=0) -> Tensor(a)[]",
            ),
        ),
        # what torchgen generates
        *_native(
            "bernoulli zeros resize lift cummax_helper sym_constrain_range unsafe_split",
            (
                "  autogen: bernoulli.Tensor, bernoulli.Tensor_out\n",
                "  autogen: bernoulli.Tensor_out, bernoulli.Tensor\n",
            ),
            (
                "  autogen: bernoulli.Tensor, bernoulli.Tensor_out\n",
                "  autogen: bernoulli.Tensor,bernoulli.Tensor_out\n",
            ),
            ("  autogen: bernoulli.Tensor, bernoulli.Tensor_out\n", "  autogen: bernoulli.Tensor\n"),
            ("  autogen: bernoulli.Tensor, bernoulli.Tensor_out\n", "  autogen: bernoulli.Tensor_out\n"),
            (
                "  autogen: bernoulli.Tensor, bernoulli.Tensor_out\n",
                "  autogen: [bernoulli.Tensor, bernoulli.Tensor_out]\n",
            ),
            (
                "  autogen: bernoulli.Tensor, bernoulli.Tensor_out\n",
                "  autogen: bernoulli.Tensor, bernoulli.Tensor_out, bernoulli.x\n",
            ),
            ("  autogen: bernoulli.Tensor, bernoulli.Tensor_out\n", ""),
            ("  autogen: bernoulli.float_out\n", "  autogen: bernoulli.float_out, bernoulli.float\n"),
            ("  autogen: lift.out\n", ""),
            ("  autogen: lift.out\n", "  autogen: lift_out\n"),
            ("  autogen: lift.out\n", "  autogen: lift.Out\n"),
            ("  autogen: lift.out\n", "  autogen: lift.out.out\n"),
            ("  autogen: lift.out\n", "  autogen: aten::lift.out\n"),
            ("  autogen: lift.out\n", "  autogen: left.out\n"),
            ("  autogen: lift.out\n", "  autogen: lift.about\n"),
            ("- func: lift(Tensor self) -> Tensor", "- func: lift(Tensor self) -> int"),
            ("- func: lift(Tensor self) -> Tensor", "- func: custom::lift(Tensor self) -> Tensor"),
            ("- func: _cummax_helper(", "- func: _cummax_halper("),
            ("- func: sym_constrain_range(", "- func: sym_constrain_rnage("),
            ("  autogen: unsafe_split.Tensor_out\n", "  autogen: unsafe_split.out\n"),
            ("- func: zeros(SymInt[] size, *,", "- func: zeros(SymInt[] sizes, *,"),
            ("- func: zeros(SymInt[] size, *,", "- func: zeros(SymInt[] size,"),
            (
                "Device? device=None, bool? pin_memory=None) -> Tensor",
                "bool? pin_memory=None, Device? device=None) -> Tensor",
            ),
            ("Device? device=None, bool? pin_memory=None) -> Tensor", "Device? device=None) -> Tensor"),
            (
                "Device? device=None, bool? pin_memory=None) -> Tensor",
                "Device? device=None, bool pin_memory=False) -> Tensor",
            ),
            (
                "Device? device=None, bool? pin_memory=None) -> Tensor",
                "Device? device=None, bool? pin_memory=None, int x=1) -> Tensor",
            ),
            ("  dispatch:\n    CompositeExplicitAutograd: zeros_symint\n", ""),
            ("    CompositeExplicitAutograd: zeros_symint\n", "    CompositeImplicitAutograd: zeros\n"),
            ("    CompositeExplicitAutograd: zeros_out\n", ""),
        ),
        # YAML
        *_native(
            "acos square",
            ("- func: acos(Tensor self) -> Tensor\n", '- func: "acos(Tensor self) -> Tensor"\n'),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: 'acos(Tensor self) -> Tensor '\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: |\n    acos(Tensor self) -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: |-\n    acos(Tensor self) -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: acos(Tensor self)\n    -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", '- func: "acos(Tensor se\\x6cf) -> Tensor"\n'),
            ("- func: acos(Tensor self) -> Tensor\n", '- func: "acos(Tensr self) \\\n    -> Tensor"\n'),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: &f acos(Tensor self) -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: !!str acos(Tensor self) -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- !!map\n  func: acos(Tensor self) -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- ? func\n  : acos(Tensor self) -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func:\tacos(Tensor self) -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: acos(Tensor\u00a0self) -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: acos(Tensor self) -> Tensor # c\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: acos(Tensor self) -> Tensor#c\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: \u0430cos(Tensor self) -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: aten::acos(Tensor self) -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: at::acos(Tensor self) -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: ::acos(Tensor self) -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: acos(Tensor self) -> Tensor\r\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- 'func': acos(Tensor self) -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- FUNC: acos(Tensor self) -> Tensor\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "-\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func:\n"),
            (
                "- func: acos(Tensor self) -> Tensor\n",
                "- func: acos(Tensor self) -> Tensor\n  func: acos(Tensor self) -> Tensor\n",
            ),
            (
                "- func: acos(Tensor self) -> Tensor\n",
                "- func: acos(Tensor self) -> Tensor\n  'func': acos(Tensor self) -> Tensor\n",
            ),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: acos(Tensor self) -> Tensor\n  1: 2\n  1.0: 3\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: acos(Tensor self) -> Tensor\n  true: 2\n  yes: 3\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: acos(Tensor self) -> Tensor\n  [a, b]: 2\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: acos(Tensor self) -> Tensor\n  {a: b}: 2\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: acos(Tensor self) -> Tensor\n  <<: {tags: core}\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: acos(Tensor self) -> Tensor\n  <<: 1\n"),
            ("- func: acos(Tensor self) -> Tensor\n", "- func: acos(Tensor self) -> Tensor\n  =: 1\n"),
            ("  tags: [core, pointwise]\n", "  tags: &t [core, pointwise]\n"),
            ("  tags: [core, pointwise]\n", "  tags: *t\n"),
            ("  tags: [core, pointwise]\n", "  tags: &t [core, *t]\n"),
            ("  tags: [core, pointwise]\n", "  tags: !!set {core, pointwise}\n"),
            ("  tags: [core, pointwise]\n", "  tags: {core: , pointwise: }\n"),
            ("  tags: [core, pointwise]\n", "  tags: [core, !!str pointwise]\n"),
            ("  tags: [core, pointwise]\n", "  tags: [core, pointwise, ]\n"),
            ("  tags: [core, pointwise]\n", "  tags: [core,, pointwise]\n"),
            ("  tags: [core, pointwise]\n", "  tags: [core, pointwise\n"),
            ("  tags: [core, pointwise]\n", "  tags: core pointwise\n"),
            ("  tags: [core, pointwise]\n", "  tags:\n  - core\n  - pointwise\n  - core\n"),
            ("  tags: [core, pointwise]\n", "  tags: [[core], pointwise]\n"),
            ("  tags: [core, pointwise]\n", "  tags: [{core: 1}, pointwise]\n"),
            ("  tags: [core, pointwise]\n", "  tags: [core, no]\n"),
            ("  tags: [core, pointwise]\n", "  tags: [core, 'pointwise ']\n"),
            ("  variants: function, method\n", "  variants: function , method\n"),
            ("  variants: function, method\n", "  variants: 'function,  method'\n"),
            ("  variants: function, method\n", '  variants: "function,\\tmethod"\n'),
            ("  variants: function, method\n", "  variants: function,\n    method\n"),
            ("  variants: function, method\n", "  variants: &v function, method\n"),
            ("  variants: function, method\n", "  variants: off\n"),
            ("  variants: function, method\n", "  variants:\n"),
            ("  variants: function, method\n", "  variants: function, method\n  variants: method\n"),
            ("  variants: function, method\n", "    variants: function, method\n"),
            ("  variants: function, method\n", "\tvariants: function, method\n"),
            ("  variants: function, method\n", " variants: function, method\n"),
            ("  variants: function, method\n", "variants: function, method\n"),
            ("  variants: function, method\n", "  variants: function, method\n...\n"),
            ("  variants: function, method\n", "  variants: function, method\n---\n"),
            ("  variants: function, method\n", "  variants: function, method\n  " + "x" * 1025 + ": 1\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    <<: {CPU: x}\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    ? [CPU, CUDA]\n    : acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    on: acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU, CUDA, MPS: on\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU, CUDA, MPS: &k acos_out\n    Meta: *k\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU,CUDA,MPS: acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU CUDA: acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU, CUDA, MPS : acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU, CUDA, CPU: acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU: acos_out\n    CPU: acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU: acos_out\n    CPU, CUDA: acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU: acos_out\n    CUDA:\n      MPS: x\n"),
            (
                "    CPU, CUDA, MPS: acos_out\n",
                "    ",
            ),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU: ''\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU: 'acos out'\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU: acos-out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU: acos_out()\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU: a::b::c::d::acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU: a:::acos_out\n"),
            ("    CPU, CUDA, MPS: acos_out\n", "    CPU: acos_out::\n"),
        ),
        # derivatives
        *_derivatives(
            "acos add bernoulli mean fractional_max_pool3d unbind t",
            ("  result: auto_element_wise\n", "  result0: auto_element_wise\n"),
            ("  result: auto_element_wise\n", "  result1: auto_element_wise\n"),
            ("  result: auto_element_wise\n", "  reslut: auto_element_wise\n"),
            ("  result: auto_element_wise\n", "  result: auto_elementwise\n"),
            ("  result: auto_element_wise\n", "  result: auto_linear\n  output_differentiability: [False]\n"),
            ("  result: auto_element_wise\n", "  result: auto_linear\n  output_differentiability: [True, False]\n"),
            ("  result: auto_element_wise\n", "  result: auto_linear\n  output_differentiability: ['a', 'b']\n"),
            ("  result: auto_element_wise\n", "  result: auto_linear\n  output_differentiability: []\n"),
            ("  result: auto_element_wise\n", "  result: self * 2\n"),
            ("  result: auto_element_wise\n", "  result: self_p * self_t + self\n"),
            ("  result: auto_element_wise\n", "  result:\n"),
            ("  result: auto_element_wise\n", "  result: 3\n"),
            ("  result: auto_element_wise\n", "  result: [auto_linear]\n"),
            ("  result: auto_element_wise\n", "  result: auto_element_wise\n  self: grad\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", ""),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: non_differentiable\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: non_differentiable\n  'self ': grad\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self, self: grad\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self, nothing: grad\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  slef: grad\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: grads[0]\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: grads[1]\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: grads\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: grad * grads[0]\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: grad * self.sizes()\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: grad * self.size(0)\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: grad * self.size(dim)\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: grad * self.strides()\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: grad * result.sym_strides()\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: grad * (self\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: self\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: true\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: 2001-01-01\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: !!timestamp 2001-01-01\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  2001-01-01: grad\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self: '2001-01-01'\n"),
            ("- name: acos(Tensor self) -> Tensor\n", "- name: 2001-01-01\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  self:\n    a: b\n"),
            ("  self: grad * -((-self * self + 1).rsqrt()).conj()\n", "  3: grad\n"),
            ("- name: acos(Tensor self) -> Tensor\n", "- name: acos_(Tensor(a!) self) -> Tensor(a!)\n"),
            (
                "- name: acos(Tensor self) -> Tensor\n",
                "- name: acos.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n",
            ),
            ("- name: acos(Tensor self) -> Tensor\n", "- name: acos\n"),
            ("- name: acos(Tensor self) -> Tensor\n", "- name: 3\n"),
            ("- name: acos(Tensor self) -> Tensor\n", "- name:\n"),
            ("- name: acos(Tensor self) -> Tensor\n", "- nmae: acos(Tensor self) -> Tensor\n"),
            ("- name: acos(Tensor self) -> Tensor\n", "- name: aten::acos(Tensor self) -> Tensor\n"),
            ("- name: acos(Tensor self) -> Tensor\n", "- name: 'acos(Tensor self) -> Tensor '\n"),
            ("- name: acos(Tensor self) -> Tensor\n", "- name: acos(Tensor self)-> Tensor\n"),
            ("- name: acos(Tensor self) -> Tensor\n", "- name: acos(Tensor self) -> Tensor out\n"),
            ("- name: acos(Tensor self) -> Tensor\n", "- name: relu(Tensor self) -> Tensor\n"),
            ("- name: acos(Tensor self) -> Tensor\n", "- name: acos(Tensor self) -> Tensor\n  dispatch: {}\n"),
            (
                "- name: acos(Tensor self) -> Tensor\n",
                "- name: acos(Tensor self) -> Tensor\n  dispatch: {Default: {self: grad}}\n",
            ),
            ("- name: acos(Tensor self) -> Tensor\n", "- name: acos(Tensor self) -> Tensor\n  dispatch:\n"),
            ("  output_differentiability: [True, False]\n", "  output_differentiability: [True]\n"),
            ("  output_differentiability: [True, False]\n", "  output_differentiability: [False, True]\n"),
            ("  output_differentiability: [True, False]\n", "  output_differentiability: [False, False]\n"),
            ("  output_differentiability: [True, False]\n", "  output_differentiability: [True, False, False]\n"),
            ("  output_differentiability: [True, False]\n", "  output_differentiability: True, False\n"),
            ("  output_differentiability: [True, False]\n", "  output_differentiability: True\n"),
            ("  output_differentiability: [True, False]\n", "  output_differentiability: ['True', 'False']\n"),
            ("  output_differentiability: [True, False]\n", "  output_differentiability: ['x']\n"),
            ("  output_differentiability: [True, False]\n", "  output_differentiability: [True, maybe]\n"),
            ("  output_differentiability: [True, False]\n", "  output_differentiability: [1, 0]\n"),
            ("  output_differentiability: [True, False]\n", "  output_differentiabilty: [True, False]\n"),
            ("  result0: gather(", "  result0, result1: gather("),
            ("  result0: gather(", "  result2: gather("),
            ("  result0: gather(", "  result: gather("),
            ("  result0: gather(", "  output: gather("),
            ("    AutogradNestedTensor:\n", "    AutogradNestedTensr:\n"),
            ("    AutogradNestedTensor:\n", "    NestedTensorCPU:\n"),
            ("    AutogradNestedTensor:\n", "    Default:\n"),
            ("    AutogradNestedTensor:\n", "    AutogradCUDA:\n"),
            ("    Default:\n", "    default:\n"),
            ("    Default:\n", "    AutogradCPU:\n"),
            (
                "    Default:\n      self: grad.expand_symint(self.sym_sizes()) / self.sym_numel()\n      result: auto_linear\n",
                "",
            ),
            ("  dispatch:\n", "  dispatch:\n    CPU: {self: grad}\n"),
            ("  dispatch:\n", "  self: grad\n  dispatch:\n"),
            ("  dispatch:\n", "  Dispatch:\n"),
            ("  p: zeros_like(p)\n", "  p: zeros_like(p).sym_strides()\n"),
            ("  p: zeros_like(p)\n", "  p: not_differentiable\n"),
            ("  p: zeros_like(p)\n", ""),
            ("  result: self_t.zero_()\n", "  result: auto_element_wise\n"),
            ("  result: self_t.zero_()\n", "  result: self_p\n"),
            ("  result: self_t.zero_()\n", "  result: self_p * self_t\n"),
            ("  result: self_t.zero_()\n", "  result: auto_linear\n"),
            ("  result: self_t.zero_()\n", "  result: original_self_t\n"),
            ("  result: self_t.zero_()\n", "  result: p\n"),
            ("  result: self_t.zero_()\n", "  self: grad.sym_strides()\n"),
        ),
        # tags
        *_tags(
            ("- tag: core\n", "- tag: Core\n"),
            ("- tag: core\n", "- tag: 'core '\n"),
            ("- tag: core\n", "- tag: two words\n"),
            ("- tag: core\n", "- tag: 1\n"),
            ("- tag: core\n", "- tag:\n"),
            ("- tag: core\n", "- tag: [core]\n"),
            ("- tag: core\n", "- tags: core\n"),
            ("- tag: core\n", "- tag: core\n  more: x\n"),
            ("- tag: core\n", "- tag: core\n  desc: x\n"),
            ("- tag: core\n", "- tag: core\n  desc: x\n- tag: core\n"),
            ("- tag: core\n", "- tag: class\n"),
            ("- tag: core\n", "- tag: 1x\n"),
            ("- tag: core\n", "- tag: a-b\n"),
            ("- tag: core\n", "- tag: é\n"),
            ("- tag: core\n", "- core\n- tag: core\n"),
            ("- tag: core\n", "- [core]\n- tag: core\n"),
            ("- tag: core\n", "- \n- tag: core\n"),
            ("- tag: core\n", "- tag: other\n  desc: ''\n- tag: core\n"),
            ("- tag: core\n", "- tag: other\n  desc: ' '\n- tag: core\n"),
            ("- tag: core\n", "- tag: other\n  desc:\n- tag: core\n"),
            ("- tag: core\n", "- tag: other\n  desc: 3\n- tag: core\n"),
            ("- tag: core\n", "- tag: other\n- tag: core\n"),
            ("- tag: pt2_compliant_tag\n", "- tag: pt2_compliant\n"),
            ("- tag: generated\n", "- tag: generatd\n"),
            ("- tag: pointwise\n", "- tag: pointvise\n"),
        ),
        # a backend
        *_backend(
            ("backend: XLA\n", ""),
            ("backend: XLA\n", "backend:\n"),
            ("backend: XLA\n", "backend: xla\n"),
            ("backend: XLA\n", "backend: XLAA\n"),
            ("backend: XLA\n", "backend: [XLA]\n"),
            ("backend: XLA\n", "backend: 3\n"),
            ("backend: XLA\n", "backend: CPU\n"),
            ("backend: XLA\n", "backend: Meta\n"),
            ("backend: XLA\n", "backend: Vulkan\n"),
            ("backend: XLA\n", "backend: SparseCPU\n"),
            ("backend: XLA\n", "backend: QuantizedCPU\n"),
            ("backend: XLA\n", "backend: HIP\n"),
            ("backend: XLA\n", "backend: PrivateUse1\n"),
            ("backend: XLA\n", "backend: XLA\nbackend: XLA\n"),
            ("cpp_namespace: torch_xla\n", ""),
            ("cpp_namespace: torch_xla\n", "cpp_namespace:\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: a::b::c\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: a::b\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: 3\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: [a]\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: ''\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: ::a\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: a.b\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: torch_xla\nclass_name: 3\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: torch_xla\nclass_name: ''\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: torch_xla\nclass_name: two words\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: torch_xla\nclass_name: a::B\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: torch_xla\nclass_name: [A]\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: torch_xla\nclass_name: B\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: torch_xla\nextra_headers: [a.h]\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: torch_xla\nuse_out_as_primary: frue\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: torch_xla\ndevice_guard: 1\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: torch_xla\ndevice_guard: yes\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: torch_xla\nnon_native: 3\n"),
            ("cpp_namespace: torch_xla\n", "cpp_namespace: torch_xla\nnon_native:\n- func: f(Tensor x) -> Tensor\n"),
            ("supported:\n", "Supported:\n"),
            ("supported:\n", "suported:\n"),
            ("supported:\n", "supported: x\nunsupported:\n"),
            ("  - add.Tensor\n", "  - add.Tensr\n"),
            ("  - add.Tensor\n", "  - add\n"),
            ("  - add.Tensor\n", "  - add.\n"),
            ("  - add.Tensor\n", "  - .Tensor\n"),
            ("  - add.Tensor\n", "  - add_out\n"),
            ("  - add.Tensor\n", "  - add.Tensor.out\n"),
            ("  - add.Tensor\n", "  - aten::add.Tensor\n"),
            ("  - add.Tensor\n", "  - add.Tensor(Tensor self)\n"),
            ("  - add.Tensor\n", "  - 'add.Tensor '\n"),
            ("  - add.Tensor\n", "  - add.Tensor:\n"),
            ("  - add.Tensor\n", "  - add.Tensor: {structured: true}\n"),
            ("  - add.Tensor\n", "  - func: add.Tensor\n"),
            ("  - add.Tensor\n", "  - [add.Tensor]\n"),
            ("  - add.Tensor\n", "  - 3\n"),
            ("  - add.Tensor\n", "  - true\n"),
            ("  - add.Tensor\n", "  -\n"),
            ("  - add.Tensor\n", "  - add.Tensor\n  - add.Tensor\n"),
            ("  - add.Tensor\n", "  - add.Tensor\n  - add_.Tensor\n  - add.out\n"),
            ("  - add.Tensor\n", "  - add.Tensor\n  - acos\n"),
            ("  - add.Tensor\n", "  - add.Tensor\n  - mean\n"),
            ("  - add.Tensor\n", "  - add.Tensor\n  - mean.dtype_out\n"),
            ("  - add.Tensor\n", "  - add.Tensor\n  - asin_\n"),
            ("  - add.Tensor\n", "  - add.Tensor\n  - relu.out\n"),
            ("  - add.Tensor\n", "  - add.Tensor\n  - add.Scalar_out\n"),
            ("  - add.Tensor\n", "  - &a add.Tensor\n  - *a\n"),
            ("symint:\n  - expand\n", "symint:\n  - add.Tensor\n"),
            ("symint:\n  - expand\n", "symint:\n  - expnad\n"),
            ("symint:\n  - expand\n", "symint:\n  - expand_copy\n"),
            ("symint:\n  - expand\n", "symint:\n  - expand copy\n"),
            ("symint:\n  - expand\n", "symint:\n  - expand\nnon_native:\n  - expand\n"),
            ("symint:\n  - expand\n", "symint:\n  - expand\n  - expand\n"),
            ("symint:\n  - expand\n", "symint:\n  - mean\n"),
            ("symint:\n  - expand\n", "symint:\n  - [expand]\n"),
            ("symint:\n  - expand\n", "symint:\n  - {expand: 1}\n"),
            ("symint:\n  - expand\n", "symint: expand\n"),
            ("symint:\n  - expand\n", "symint:\n"),
            ("symint:\n  - expand\n", "symint: 3\n"),
            ("full_codegen:\n  - acos\n", "full_codegen:\n  - acso\n"),
            ("full_codegen:\n  - acos\n  - asin\n", "full_codegen:\n"),
            ("full_codegen:\n  - acos\n  - asin\n", "full_codegen: acos\n"),
            ("full_codegen:\n  - acos\n  - asin\n", "full_codegen: {acos: 1}\n"),
            ("full_codegen:\n  - acos\n  - asin\n", "full_codegen: 3\n"),
            ("full_codegen:\n  - acos\n  - asin\n", "full_codegen: [acos, asin, zeros]\n"),
            ("ir_gen:\n  - zeros\n", "ir_gen:\n  - zeors\n"),
            ("ir_gen:\n  - zeros\n", "ir_gen: 3\n"),
            ("ir_gen:\n  - zeros\n", "ir_gen:\n  - 3\n"),
            ("autograd:\n  - mean\n", "autograd:\n"),
            ("autograd:\n  - mean\n", "autograd: mean\n"),
            ("autograd:\n  - mean\n", "autograd:\n  - maen\n"),
            ("autograd:\n  - mean\n", "autograd:\n  - add_.Tensor\n"),
            ("autograd:\n  - mean\n", "autograd:\n  - add.Tensor\n"),
            ("autograd:\n  - mean\n", "autograd:\n  - mean\n  - mean\n"),
            ("autograd:\n  - mean\n", "autograd: {}\n"),
        ),
    )
