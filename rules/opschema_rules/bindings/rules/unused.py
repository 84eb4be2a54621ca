"""Bound functions that nothing uses."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic
from opschema_cli.lint.rule import rule
from opschema_rules.bindings.load import Tree
from opschema_rules.bindings.unused import unused_bindings


@rule("BND306", "uncalled-function", severity="info", stage="preview", needs=(CPP,))
def uncalled_function(tree: Tree) -> Iterator[Diagnostic]:
    """A bound function that nothing outside the C++ code mentions.

    Its callers may have been removed. Only modules with other functions that Python calls are checked. A mention in a stub, a test,
    a notebook or a document counts as a use. Code outside the tree may call the function, so the finding is only information, and
    the rule runs only with `--preview` or if you select it.

    Bad:

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x; }
    at::Tensor shift(const at::Tensor& x) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("scale", &scale);
      m.def("shift", &shift);
    }
    ```

    ```python
    import _C


    def scale(x):
        return _C.scale(x, 2.0)
    ```

    Good (a name in a string, which `getattr` may get):

    ```cpp
    #include <torch/extension.h>

    at::Tensor scale(const at::Tensor& x, double factor) { return x; }
    at::Tensor shift(const at::Tensor& x) { return x; }

    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
      m.def("scale", &scale);
      m.def("shift", &shift);
    }
    ```

    ```python
    import _C

    KERNELS = {name: getattr(_C, name) for name in ("scale", "shift")}


    def scale(x):
        return _C.scale(x, 2.0)
    ```
    """
    for binding in unused_bindings(tree):
        message = f"`{binding.name}` is bound, but nothing outside the C++ code mentions it"
        yield Diagnostic(message, binding.place, ops=(binding.qualified,))
