"""The macros visible in the C++ files of a tree: their own, those of the build, and those of other files."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from opschema_cli.requirements import Version
from opschema_cli.source.expansion import ExpansionError, expand
from opschema_cli.source.preprocessor import Macro, read_directives, unambiguous
from opschema_cli.source.text import Span
from opschema_rules.torchlib.cpp_build import EXTENSION_NAME, Build
from opschema_rules.torchlib.type_lists import type_lists

# vLLM's header has these, and who follows it, as kernel-builder does; they let the preprocessor replace the namespace.
EXPANDING = {
    f"{name}_EXPAND": Macro(f"{name}_EXPAND", parameters, f"{name}({', '.join(parameters)})", Span(0, 0))
    for stable in ("", "STABLE_")
    for word, parameters in (
        ("TORCH_LIBRARY", ("NAME", "MODULE")),
        ("TORCH_LIBRARY_FRAGMENT", ("NAME", "MODULE")),
        ("TORCH_LIBRARY_IMPL", ("NAME", "DEVICE", "MODULE")),
    )
    for name in (stable + word,)
}

_DEVICES = ("CPU", "CUDA", "MTIA", "MAIA", "XPU", "MPS")
_AUTOCAST = """
#define KERNEL1(DEVICE, OP, POLICY) m.impl(TORCH_SELECTIVE_NAME("aten::" #OP), at::autocast::POLICY);
#define KERNEL2(DEVICE, OP, OVERLOAD, POLICY) m.impl(TORCH_SELECTIVE_NAME("aten::" #OP "." #OVERLOAD), at::autocast::POLICY);
#define OPSCHEMA_KERNEL(DEVICE, _0, _1, _2, N, ...) KERNEL ## N
#define KERNEL(DEVICE, ...) OPSCHEMA_KERNEL(DEVICE, __VA_ARGS__, 2, 1, 0)(DEVICE, __VA_ARGS__)
#define KERNEL_DIFFERENT_REDISPATCH_SIGNATURE(DEVICE, FUNCTION, NAME, SIGNATURE, OTHER, POLICY) \
  m.impl(TORCH_SELECTIVE_NAME("aten::" NAME), at::autocast::POLICY);
"""
_OF_DEVICE = """
#define KERNEL_{word}(...) KERNEL({key}, __VA_ARGS__)
#define KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_{word}(...) KERNEL_DIFFERENT_REDISPATCH_SIGNATURE({key}, __VA_ARGS__)
"""


@cache
def _autocast() -> dict[str, Macro]:
    """Macros of ``ATen/autocast_mode.h`` in torch 2.13, with the policy in the place of the kernel that it makes."""
    words = (("PRIVATEUSEONE", "PrivateUse1"), *((name, name) for name in _DEVICES))
    text = _AUTOCAST + "".join(_OF_DEVICE.format(word=word, key=key) for word, key in words)
    return {macro.name: macro for macro in read_directives(text).macros}


def _is_shared(path: str, macro: Macro) -> bool:
    """Whether other files may see a macro; the namespace that a source file sets for itself is private."""
    return macro.name != EXTENSION_NAME or path.endswith((".h", ".hpp", ".cuh"))


USES = re.compile(r"(?<![A-Za-z0-9])TORCH_LIBRARY|\.\s*(?:impl|def)\s*\(|RegisterOperators")
"""Text that registers, in the body of a macro."""

CAPITALS = re.compile(r"\bTORCH_EXTENSION_NAME\b|\b(?!TORCH_|AT_|C10_)[A-Z][A-Z0-9_]{2,}\b")
"""Names that may be macros."""


class FileMacros:
    """The macros of some files, those of ``others`` that define macros alone, and those of a release of torch."""

    def __init__(
        self, own: Mapping[str, Sequence[Macro]], others: Iterable[Macro], build: Build, torch: Version
    ) -> None:
        self.own = own
        self.build = build
        macros = [*others, *(macro for path, items in own.items() for macro in items if _is_shared(path, macro))]
        self.shared = {**EXPANDING, **type_lists(torch), **_autocast(), **unambiguous(macros)}
        self.defined = {macro.name for macro in macros}
        self._known: dict[tuple[str, bool], ChainMap[str, Macro]] = {}

    def of(self, path: str, *, built: bool = False) -> ChainMap[str, Macro]:
        """Return the macros visible in a file: its own, with ``built`` the build's, and those whose name the tree defines once."""
        found = self._known.get((path, built))
        if found is None:
            given = self.build.macros(path) if built else {}
            found = self._known[path, built] = ChainMap({**given, **unambiguous(self.own[path])}, self.shared)
        return found

    def may_register(self, path: str, name: str) -> bool:
        """Whether a file has a macro of that name which registers."""
        return any(macro.name == name and USES.search(macro.body) for macro in self.own.get(path, ()))

    def expanded(self, path: str, text: str, at: int = -1) -> str | None:
        """Return a text of a file with its macros expanded, or None if that is too much. ``at`` is its place, if it has one.

        The build is read only where a name in capitals may be one of its macros.
        """
        here = {macro.name: macro for macro in self.own.get(path, ()) if macro.holds_at(at)}
        try:
            found = expand(text, self.of(path).new_child(here))
            return (
                expand(text, self.of(path, built=True).new_child(here)) if CAPITALS.search(f"{text} {found}") else found
            )
        except ExpansionError:
            return None
