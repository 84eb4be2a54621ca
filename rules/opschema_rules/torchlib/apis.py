"""The registering functions and methods of torch: the arguments of each, as declared in torch 2.13 and earlier."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from opschema_rules.torchlib.model import Role

DefinitionApi = Literal["custom_op", "triton_op", "define"]


class Api(msgspec.Struct, frozen=True):
    """One registering function or method.

    ``params`` are its parameters in order, keyword-only ones last; ``op``, ``function`` and ``keys`` name those that take
    the operator, the function that is registered and the dispatch keys or devices, empty when there is none. Without its
    function it is a decorator, unless ``at_once``: then torch refuses the call. ``device_types`` says that ``keys`` are devices.
    ``default_keys`` are those of a call that gives none, if torch documents them.
    """

    name: str
    params: tuple[str, ...]
    role: Role | None = None
    defines: DefinitionApi | None = None
    op: str = ""
    function: str = ""
    keys: str = ""
    at_once: bool = False
    default_keys: frozenset[str] = frozenset()


_LEGACY_DEVICES = frozenset({"cpu", "cuda"})
_OP = ("name", "fn", "mutates_args", "device_types", "schema", "tags")

FUNCTIONS: dict[str, Api] = {
    api.name: api
    for api in (
        Api("custom_op", _OP, None, "custom_op", "name", "fn", "device_types"),
        Api("triton_op", _OP, None, "triton_op", "name", "fn"),
        Api("define", ("qualname", "schema", "lib", "tags"), None, "define", "qualname"),
        Api("impl", ("qualname", "types", "func", "lib"), "kernel", None, "qualname", "func", "types"),
        Api("register_kernel", ("op", "device_types", "func", "lib"), "kernel", None, "op", "func", "device_types"),
        Api("register_fake", ("op", "func", "lib"), "fake", None, "op", "func"),
        Api("impl_abstract", ("qualname", "func", "lib"), "fake", None, "qualname", "func"),
        Api("register_autograd", ("op", "backward", "setup_context", "lib"), "autograd", None, "op", "backward", at_once=True),
        Api("register_vmap", ("op", "func", "lib"), "vmap", None, "op", "func"),
        Api("register_torch_dispatch", ("op", "torch_dispatch_class", "func", "lib"), "torch_dispatch", None, "op", "func"),
        Api("register_autocast", ("op", "device_type", "cast_inputs", "lib"), "autocast", None, "op", "", "device_type"),
        Api("_register_effectful_op", ("op", "effect", "lib"), "effect", None, "op"),
    )
}  # fmt: skip
"""Functions of ``torch.library``."""

LIBRARY_FUNCTIONS: dict[str, Api] = {
    "define": Api("define", ("lib", "schema", "alias_analysis"), None, "define", "schema"),
    "impl": Api("impl", ("lib", "name", "dispatch_key", "func"), "kernel", None, "name", "func", "dispatch_key"),
}
"""The same functions with a library as the first argument."""

LIBRARY: dict[str, Api] = {
    api.name: api
    for api in (
        Api("define", ("schema", "alias_analysis", "tags"), None, "define", "schema"),
        Api("impl", ("op_name", "fn", "dispatch_key"), "kernel", None, "op_name", "fn", "dispatch_key", at_once=True),
        Api("_register_fake", ("op_name", "fn"), "fake", None, "op_name", "fn", at_once=True),
        Api("_impl_with_aoti_compile", ("op_name", "dispatch_key"), "kernel", None, "op_name", "", "dispatch_key"),
        Api(
            "_register_torch_dispatch_rule", ("op_name", "torch_dispatch_class", "fn"), "torch_dispatch", None,
            "op_name", "fn", at_once=True,
        ),
        Api("_register_effectful_op", ("op_name", "effect"), "effect", None, "op_name"),
    )
}  # fmt: skip
"""Methods of a ``Library``."""

HANDLE: dict[str, Api] = {
    api.name: api
    for api in (
        Api("register_kernel", ("device_types", "fn"), "kernel", None, "", "fn", "device_types"),
        Api("register_fake", ("fn",), "fake", None, "", "fn", at_once=True),
        Api("register_autograd", ("backward", "setup_context"), "autograd", None, "", "backward", at_once=True),
        Api("register_vmap", ("func",), "vmap", None, "", "func"),
        Api("register_torch_dispatch", ("torch_dispatch_class", "fn"), "torch_dispatch", None, "", "fn"),
        Api("register_autocast", ("device_type", "cast_inputs"), "autocast", None, "", "", "device_type"),
        Api("register_effect", ("effect",), "effect"),
        # Of `torch._custom_op.impl.custom_op`:
        Api("impl", ("device_types", "f"), "kernel", None, "", "f", "device_types", default_keys=_LEGACY_DEVICES),
        Api("impl_factory", ("f",), "kernel", None, "", "f"),
        Api("impl_abstract", ("f",), "fake", None, "", "f"),
        Api("impl_save_for_backward", ("f",), "other", None, "", "f"),
        Api("impl_backward", ("f",), "other", None, "", "f"),
    )
}
"""Methods of the result of ``custom_op``."""

LEGACY: dict[str, Api] = {
    api.name: api
    for api in (
        Api("custom_op", ("qualname", "manual_schema", "func"), None, "custom_op", "qualname", "func"),
        Api(
            "impl", ("qualname", "device_types", "func"), "kernel", None, "qualname", "func", "device_types",
            default_keys=_LEGACY_DEVICES,
        ),
        Api("impl_abstract", ("qualname", "func"), "fake", None, "qualname", "func"),
        Api("impl_save_for_backward", ("qualname", "func"), "other", None, "qualname", "func"),
        Api("impl_backward", ("qualname", "output_differentiability", "func"), "other", None, "qualname", "func"),
    )
}  # fmt: skip
"""Functions of ``torch._custom_ops`` and ``torch._custom_op.impl``, before ``torch.library.custom_op``."""

OF_FUNCTION_OR_SCHEMA = Api(
    "custom_op", ("qualname", "func_or_schema"), None, "custom_op", "qualname", "func_or_schema"
)
"""``torch._custom_ops.custom_op`` of a function, or a decorator without one."""

OF_SCHEMA = Api("custom_op", ("qualname", "func_or_schema"), None, "define", "qualname")
"""The same function with a schema: it defines the operator immediately, and is not a decorator."""

DIRECT = Api(
    "direct_register_custom_op",
    ("op_name", "op_func", "mutates_args", "fake_impl", "target_lib", "dispatch_key", "tags"),
    None, "define", "op_name", "op_func", "dispatch_key",
)  # fmt: skip
"""vLLM's helper, where it is imported from outside the tree: https://github.com/vllm-project/vllm/blob/main/vllm/utils/torch_utils.py."""

_MODULES = ("torch.library.", "torch._library.", "torch._library.custom_ops.", "torch._library.triton.")
_LEGACY_MODULES = {
    "torch._custom_ops.": {**LEGACY, "custom_op": OF_FUNCTION_OR_SCHEMA},
    "torch._custom_op.impl.": LEGACY,
}

SCOPED = "torch.library._scoped_library"
LIBRARIES = frozenset({"torch.library.Library", SCOPED})
INFER = frozenset({"torch.library.infer_schema", "torch._library.infer_schema.infer_schema",
"torch._custom_op.impl.infer_schema"})  # fmt: skip
TRANSPARENT = frozenset(
    {f"torch.{name}" for name in ("no_grad", "inference_mode", "enable_grad", "compiler.disable", "_dynamo.disable")}
    | {"torch.compiler.allow_in_graph", "torch._dynamo.allow_in_graph", "torch.jit.ignore", "torch.jit.unused"}
    | {"torch._disable_dynamo", "torch.cuda.nvtx.range", "torch.autograd.profiler.record_function"}
)  # fmt: skip
"""Decorators, called or not, under which a function's signature is still seen."""

WORDS = frozenset({*FUNCTIONS, *LIBRARY, *HANDLE, *LEGACY, DIRECT.name, "_scoped_library"})
"""The last words of all of these."""

STRONG = WORDS - {"impl", "define"}
"""Names that mean nothing else, in any file."""


_USES = [
    re.compile(r"torch(?<!\wtorch)[\s\\]*\.[\s\\]*(?:_?library|_custom_op)"),
    re.compile(r"Library(?<!\wLibrary)[\s\\]*\("),
]
"""Each begins with a constant, for which a text is searched the fastest."""


def mentions_library(text: str) -> bool:
    """Whether a text may use a ``Library``: elsewhere, ``x.impl(...)`` is not torch's."""
    near = "library" in text or "_custom_op" in text
    return "Library(" in text or (near and any(pattern.search(text) for pattern in _USES))


def api_of(name: str) -> Api | None:
    """The registering function of that full name."""
    if name.rpartition(".")[2] == DIRECT.name:
        return DIRECT
    for module in _MODULES:
        if name.startswith(module) and "." not in name[len(module) :]:
            return FUNCTIONS.get(name[len(module) :])
    for module, functions in _LEGACY_MODULES.items():
        if name.startswith(module):
            return functions.get(name[len(module) :])
    return None


def is_legacy(name: str) -> bool:
    """Whether a registering function predates ``torch.library.custom_op``."""
    return name.startswith(tuple(_LEGACY_MODULES))
