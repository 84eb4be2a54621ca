"""Kernels that are registered for operators of torch itself: their names, and the C++ types of those in C++."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, listed
from opschema_cli.schema.cpp_spelling import spelling
from opschema_cli.source.preprocessor import Condition
from opschema_cli.source.resolution import Unresolved
from opschema_rules.torchlib.cpp_signature import CppSignature
from opschema_rules.torchlib.model import AtenKernel
from opschema_rules.torchlib.rules.cpp_kernels import mismatch_place, mismatch_words, refused_types, registered

if TYPE_CHECKING:
    from opschema_rules.aten.known import AtenOperator


@rule("REG504", "aten-operator", needs=(CPP,))
def aten_operator(kernel: AtenKernel) -> Iterator[Diagnostic]:
    """A kernel for an operator that torch does not have.

    `m.impl` in a block of the namespace `aten`, and `impl` of a Python library, take any name without an error, as the operator
    could be defined later. The kernel is never called then. Overloads are part of the name: `add.Tensor` is the operator of
    `x + y`, `add` is not. Rows of tables of Python kernels count as registrations; see [REG509](REG509.md).

    Operators are those of the tree's own `native_functions.yaml`, or of an installed torch ([PyTorch's
    schemas](../pytorch-schemas.md)). What the preprocessor keeps for some releases of torch only (`#if TORCH_VERSION_MINOR < 5`) is
    not checked. A name that lacks its overload, or is a letter or a trailing underscore off a known one, is an error whichever
    torch that is. Other names and unknown overloads, which a release may have that opschema does not know (`_cat` was an operator
    beside `cat` before 2.0), are warnings, unless the tree pins that version of torch. If it pins one that is older than all that
    opschema knows, only names that are certainly misspelt are reported.

    Bad:

    ```cpp kit/backend.cpp
    #include <torch/library.h>

    at::Tensor add(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) { return self; }

    TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("add.Tensr", TORCH_FN(add)); }
    ```

    Good:

    ```cpp kit/backend.cpp
    #include <torch/library.h>

    at::Tensor add(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) { return self; }

    TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("add.Tensor", TORCH_FN(add)); }
    ```
    """
    known = kernel.tree.aten
    if kernel.registration.conditional or _of_some_releases(kernel.conditions) or known.has(kernel.name):
        return
    near = known.candidates(kernel.name)
    meant = f"; did you mean {listed(near[:3], 'or')}?" if near else ""
    slip = any(_is_misspelt(kernel.name, item) for item in near)
    yield Diagnostic(
        f"{known.origin} has no operator `{kernel.title}`, so that this kernel is never called{meant}",
        kernel.registration.place,
        ops=(kernel.title,),
        severity=Severity.ERROR if slip or known.certain else Severity.WARNING,
    )


def _base(name: str) -> str:
    return name.partition(".")[0].strip("_").removesuffix("_out")


def _is_misspelt(name: str, known: str) -> bool:
    """Whether a name is clearly a misspelling of a known one, with its overload."""
    base, overload, other, meant = _base(name), name.partition(".")[2], _base(known), known.partition(".")[2]
    if name.startswith("_") != known.startswith("_"):  # `_cat` was an operator, beside `cat`
        return False
    if base != other:
        return _is_slip(base, other)
    return not overload or (bool(meant) and _is_slip(overload, meant))


def _is_slip(one: str, other: str) -> bool:
    """Whether two names are equal except for one letter, or two swapped ones."""
    same = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    if same is None:
        return abs(len(one) - len(other)) <= 1
    left, right = one[same:], other[same:]
    swapped = left[1:2] + left[:1] + left[2:]
    return right in (swapped, left[1:]) or right[1:] in (left, left[1:])


@rule("REG505", "aten-kernel-signature", needs=(CPP,))
def aten_kernel_signature(kernel: AtenKernel) -> Iterator[Diagnostic]:
    """A C++ kernel that torch refuses for an operator of its own.

    Torch compares a kernel with the schema of its operator (see `cpp-kernel-signature`), and its C++ type with that of torch's own
    kernels, which must be exactly the same: `const at::Tensor&` where the operator only reads a tensor, `at::Tensor&` where it
    writes it, `const std::optional<at::Tensor>&`, `const at::Scalar&`, `at::IntArrayRef`. A kernel of an operator with `SymInt`
    arguments takes integers in the place of all of them, or of none.

    A difference from the schema is a warning if the tree may be for another release of torch that accepts the kernel, or for one
    that opschema does not know. What the preprocessor keeps for some releases only (`#if TORCH_VERSION_MINOR < 5`) is not compared.
    Nothing is compared if the tree pins a torch that is older than all that opschema knows.

    Bad:

    ```yaml aten/src/ATen/native/native_functions.yaml
    - func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      dispatch:
        CPU: add
    ```

    ```cpp kit/backend.cpp
    #include <torch/library.h>

    at::Tensor add(at::Tensor self, at::Tensor other, const at::Scalar& alpha) { return self; }

    TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("add.Tensor", TORCH_FN(add)); }
    ```

    Bad (an argument is missing):

    ```yaml aten/src/ATen/native/native_functions.yaml
    - func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: add
    ```

    ```cpp kit/backend.cpp
    #include <torch/library.h>

    at::Tensor& add_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) { return out; }

    TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("add.out", TORCH_FN(add_out)); }
    ```

    Good:

    ```yaml aten/src/ATen/native/native_functions.yaml
    - func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: add
    ```

    ```cpp kit/backend.cpp
    #include <torch/library.h>

    at::Tensor& add_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) { return out; }

    TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("add.out", TORCH_FN(add_out)); }
    ```
    """
    kernels = kernel.registration.kernels
    if kernels is None or isinstance(kernels, Unresolved):
        return
    operator = kernel.tree.aten.operator(kernel.name)
    for signature in kernels:
        if not _of_some_releases((*kernel.conditions, *signature.conditions)):
            yield from _compared(kernel, signature, operator)


_RELEASE = re.compile(r"(?i)\b\w*torch\w*(?:version|major|minor|\d)")
_ANY_RELEASE = re.compile(r"TORCH_VERSION_MAJOR\s*(?:>=\s*[0-2]|==\s*2|>\s*[01])")


def _of_some_releases(conditions: Iterable[Condition]) -> bool:
    """Whether the preprocessor may keep something for some releases of torch only, by a macro for its version."""
    others = (item.text for item in conditions if not (item.holds and _ANY_RELEASE.fullmatch(item.text)))
    return any(map(_RELEASE.search, others))


def _compared(kernel: AtenKernel, signature: CppSignature, operator: AtenOperator | None) -> Iterator[Diagnostic]:
    if not signature.stable:
        refused = list(refused_types(kernel.title, kernel.registration, signature))
        yield from refused
        if refused:
            return
    if operator is None:
        return
    found = signature.mismatches(operator.schema)
    severity = Severity.ERROR if found and _is_refused_by_all(kernel, signature) else Severity.WARNING
    for item in found:
        message = mismatch_words(kernel.title, operator.schema, signature, item)
        yield _refused(kernel, operator, signature, message, mismatch_place(signature, item), severity)
    if not found and not signature.stable:
        yield from _inexact(kernel, operator, signature)


def _is_refused_by_all(kernel: AtenKernel, signature: CppSignature) -> bool:
    """Whether a kernel differs from the operator's schema in each release of torch that the tree may be for."""
    tree = kernel.tree
    if tree.release_doubt or tree.aten.may_be_others:
        return False
    return all(map(signature.mismatches, tree.aten.schemas(kernel.name)))


def _inexact(kernel: AtenKernel, operator: AtenOperator, signature: CppSignature) -> Iterator[Diagnostic]:
    """A C++ type that is taken for the right one of the schema, and is not that of torch's kernels."""
    wanted = operator.symint if signature.takes_symint else operator.plain
    written = [*signature.parameter_types, signature.returns]
    if wanted is None or len(wanted) != len(written):
        return
    any_version = not kernel.tree.aten.certain
    unlike = [
        at for at, pair in enumerate(zip(wanted, written, strict=True)) if _differ(*pair, any_version=any_version)
    ]
    if unlike:
        at = unlike[0]
        takes = at < len(signature.parameters)
        more = f" ({count(len(unlike) - 1, 'more difference')})" if len(unlike) > 1 else ""
        message = (
            f"{signature.shown} {'takes' if takes else 'returns'} `{written[at]}`, torch's own kernels of"
            f" `{kernel.title}` {'take' if takes else 'return'} `{wanted[at]}`{more}"
        )
        place = signature.places[at] if takes else signature.place
        yield _refused(kernel, operator, signature, message, place, Severity.ERROR)


def _differ(wanted: str, written: str, *, any_version: bool) -> bool:
    one, other = spelling(wanted, any_version=any_version), spelling(written, any_version=any_version)
    return one is not None and other is not None and one != other


def _refused(
    kernel: AtenKernel, operator: AtenOperator, signature: CppSignature, message: str, place: Place, severity: Severity
) -> Diagnostic:
    when = "every call fails" if signature.stable else "torch refuses it when the library is loaded"
    sides = (operator.related, registered(kernel.registration, kernel.title))
    return Diagnostic(f"{message}: {when}", place, related=sides, ops=(kernel.title,), severity=severity)
