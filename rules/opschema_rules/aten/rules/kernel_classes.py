"""The class of a backend's kernels: whether it is where torchgen declares it, and how much of it is written."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, some
from opschema_rules.aten.kernels import BackendKernels, UncheckedKernels
from opschema_rules.aten.model import REFERENCE, BackendFile

_SOME = 4
"""Operators that a message names."""


@rule("ATN706", "kernels-unwritten", severity="info", needs=(CPP, REFERENCE))
def kernels_unwritten(kernels: BackendKernels) -> Iterator[Diagnostic]:
    """Most kernels of a backend are not defined in the tree.

    Either they are still to be written, or they are generated or in another tree. The rule ATN701 reports each missing kernel
    once at least half of them are there. `opschema stubs` writes the declarations.

    Bad:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported: [relu, square, add.Tensor]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    at::Tensor XLANativeFunctions::relu(const at::Tensor& self) { return self; }
    }
    ```

    Good:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported: [relu, square]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    at::Tensor XLANativeFunctions::relu(const at::Tensor& self) { return self; }
    at::Tensor XLANativeFunctions::square(const at::Tensor& self) { return self; }
    }
    ```
    """
    missing = kernels.unwritten
    if missing:
        every = sum(not item.generated for item in kernels.asked)
        names = some([f"`{item.item.name}`" for item in missing], _SOME)
        message = (
            f"{every - len(missing)} of {every} kernels of `{kernels.class_name}` are defined in this tree;"
            f" {names} {'is' if len(missing) == 1 else 'are'} not"
        )
        related = tuple(method.related(f"`{method.name}` is defined here") for _, method in kernels.paired[:1])
        yield Diagnostic(message, _lists(kernels.backend), related)


@rule("ATN707", "kernel-namespace", needs=(CPP, REFERENCE))
def kernel_namespace(unchecked: UncheckedKernels) -> Iterator[Diagnostic]:
    """The kernels are defined in another namespace than `cpp_namespace` says.

    torchgen declares the class of the kernels in the namespace `cpp_namespace`, so that definitions in another one do not
    compile. The rule fires where the class defines at least half of the kernels there.

    Bad:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xlaa
    supported: [relu]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    at::Tensor XLANativeFunctions::relu(const at::Tensor& self) { return self; }
    }
    ```

    Good (a namespace that encloses it is not compared):

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported: [relu]
    ```

    ```cpp kernels.cpp
    namespace vendor { namespace torch_xla {
    at::Tensor XLANativeFunctions::relu(const at::Tensor& self) { return self; }
    } }
    ```
    """
    moved, node = unchecked.moved, unchecked.backend.get("cpp_namespace")
    if moved is None or node is None or not _is_meant(unchecked):
        return
    namespace = unchecked.backend.text("cpp_namespace")
    of = f"{unchecked.kernels_in(moved)} of {count(len(unchecked.asked), 'kernel')}"
    message = f"`cpp_namespace` is `{namespace}`, and {of} are defined in `{moved.name}`"
    yield Diagnostic(message, unchecked.backend.at(node), (Related(moved.place, "the first of them"),))


def _is_meant(unchecked: UncheckedKernels) -> bool:
    return unchecked.moved is not None and 2 * unchecked.kernels_in(unchecked.moved) >= len(unchecked.asked)


@rule("ATN708", "kernels-unchecked", severity="info", needs=(CPP, REFERENCE))
def kernels_unchecked(unchecked: UncheckedKernels) -> Iterator[Diagnostic]:
    """No class in the tree has the name that a backend's kernels are looked for by, so that none of them is checked.

    The class is `class_name`, or the backend's name and `NativeFunctions`. If a class of another name defines kernels of
    these operators, the message names it.

    Bad:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported: [relu, square]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    at::Tensor AtenXlaType::relu(const at::Tensor& self) { return self; }
    at::Tensor AtenXlaType::square(const at::Tensor& self) { return self; }
    }
    ```

    Good:

    ```yaml backend.yaml
    backend: XLA
    cpp_namespace: torch_xla
    class_name: AtenXlaType
    supported: [relu, square]
    ```

    ```cpp kernels.cpp
    namespace torch_xla {
    at::Tensor AtenXlaType::relu(const at::Tensor& self) { return self; }
    at::Tensor AtenXlaType::square(const at::Tensor& self) { return self; }
    }
    ```
    """
    if not unchecked.asked or _is_meant(unchecked) or _is_misnamed(unchecked.backend):
        return
    found = unchecked.moved or unchecked.alike
    number = f"{count(len(unchecked.asked), 'kernel')} {'is' if len(unchecked.asked) == 1 else 'are'}"
    message = f"{number} not checked: no C++ file defines methods of `{_expected(unchecked)}`"
    related: tuple[Related, ...] = ()
    if found is not None:
        message += f"; `{found.name}` defines {unchecked.kernels_in(found)} of them"
        if unchecked.alike is not None:
            message += f": if it is meant, write `class_name: {found.name.rpartition('::')[2]}`"
        related = (Related(found.place, "the first of them"),)
    yield Diagnostic(message, _lists(unchecked.backend), related)


def _is_misnamed(backend: BackendFile) -> bool:
    """Whether the class is named after a nonexistent dispatch key, which another rule reports."""
    return backend.get("class_name") is None and backend.name not in backend.torchgen.vocabulary.dispatch_keys


def _expected(unchecked: UncheckedKernels) -> str:
    namespace = unchecked.backend.text("cpp_namespace")
    return f"{namespace}::{unchecked.class_name}" if namespace else unchecked.class_name


def _lists(backend: BackendFile) -> Place:
    """The key of the first list of operators that need kernels."""
    key = next(filter(None, map(backend.key, ("supported", "autograd", "full_codegen"))), None)
    return backend.at(key if key is not None else backend.node.items[0])
