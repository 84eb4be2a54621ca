"""The types of PyTorch's C++ spelt in one way, so that those that are written by hand can be compared.

Namespaces go, as do typedefs (``at::IntArrayRef`` is ``ArrayRef<int64_t>``), the older ``c10::optional``, and the ``const`` of
what is passed by value. A type with a name that is not known has no spelling: it may be a typedef or a macro of the tree.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

MAX_LENGTH = 1_000
"""Maximum length of a parsed type, in characters."""

_TOKEN = re.compile(r"[A-Za-z_]\w*|::|\d+|&&|[<>,&*]|\[\[[^\]]*\]\]|//[^\n]*|/\*[\s\S]*?\*/|\s+|.")

_NAMESPACES = frozenset({"at", "c10", "torch", "std", "aten", "stable", "headeronly"})

_ALIASES = {
    "DimnameList": "ArrayRef<Dimname>",
    "IntArrayRef": "ArrayRef<int64_t>",
    "IntList": "ArrayRef<int64_t>",
    "IntHeaderOnlyArrayRef": "ArrayRef<int64_t>",
    "ITensorListRef": "IListRef<Tensor>",
    "OptionalIntArrayRef": "optional<ArrayRef<int64_t>>",
    "OptionalSymIntArrayRef": "optional<ArrayRef<SymInt>>",
    "SymIntArrayRef": "ArrayRef<SymInt>",
    "TensorList": "ArrayRef<Tensor>",
    "int16_t": "short",
    "int32_t": "int",
    "long": "int64_t",
    "size_t": "uint64_t",
    "uint32_t": "unsigned",
}
"""Typedefs; some are classes of their own in some versions of PyTorch, and were typedefs in others."""

_KNOWN = frozenset(
    {"void", "bool", "char", "short", "int", "float", "double", "string", "string_view", "unsigned"}
    | {f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    | {"ArrayRef", "IListRef", "List", "array", "optional", "pair", "tuple", "vector", "intrusive_ptr"}
    | {"Device", "DeviceIndex", "DimVector", "Dimname", "Generator", "Layout", "MemoryFormat", "OptionalTensorRef"}
    | {"QScheme", "Quantizer", "Scalar", "ScalarType", "Storage", "Stream", "SymBool", "SymFloat", "SymInt", "Tensor"}
    | {"Dict", "DispatchKeySet", "IValue", "SmallVector", "TensorOptions", "complex", "unordered_map"}
)


class _UnknownError(Exception):
    """Something in a type is not known."""


_FORMER = {
    "ArrayRef<Tensor>": "const IListRef<Tensor>&",
    "Scalar": "const Scalar&",
    "optional<Scalar>": "const optional<Scalar>&",
    "optional<Tensor>": "const optional<Tensor>&",
    "optional<string>": "optional<string_view>",
    "string": "string_view",
}
"""Parameters that older releases wrote for the same types of a schema."""


def spelling(written: str, *, any_version: bool = False) -> str | None:
    """Return a type in its canonical spelling, or None if a part of it is unknown, or it is longer than :data:`MAX_LENGTH`.

    With ``any_version`` the types of parameters that releases of PyTorch write for one type of a schema are spelt alike.
    """
    found = _spelling(written) if len(written) <= MAX_LENGTH else None
    return _FORMER.get(found, found) if any_version and found is not None else found


@lru_cache(maxsize=4096)
def _spelling(written: str) -> str | None:
    pieces = (token for token in _TOKEN.findall(written) if not token.isspace())
    tokens = [token for token in pieces if not token.startswith(("//", "/*", "[["))]
    reader = _Reader(tokens)
    try:
        found = reader.type(outermost=True)
    except _UnknownError:
        return None
    return found if reader.at == len(tokens) else None


class _Reader(msgspec.Struct):
    tokens: list[str]
    at: int = 0

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self, token: str) -> bool:
        found = self._peek() == token
        self.at += found
        return found

    def type(self, *, outermost: bool = False) -> str:
        const = self._take("const")
        name = self._name()
        const |= self._take("const")
        marks = ""
        while self._peek() in ("&", "&&", "*"):
            marks += self._peek()
            self.at += 1
        return f"{'const ' if const and (marks or not outermost) else ''}{name}{marks}"

    def _name(self) -> str:
        self._take("::")
        name = self._word()
        while name in _NAMESPACES and self._take("::"):
            name = self._word()
        if name == "OptionalArrayRef":
            return f"optional<ArrayRef{self._arguments()}>"
        if name == "HeaderOnlyArrayRef":
            return f"ArrayRef{self._arguments()}"
        if name == "long" and self._take("long"):
            return "long long"
        if name == "unsigned":
            self._take("int")
        if name in _ALIASES:
            return _ALIASES[name]
        if name not in _KNOWN:
            raise _UnknownError
        return name + self._arguments()

    def _word(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def _arguments(self) -> str:
        if not self._take("<"):
            return ""
        found = [self._argument()]
        while self._take(","):
            found.append(self._argument())
        if not self._take(">"):
            raise _UnknownError
        return f"<{','.join(found)}>"

    def _argument(self) -> str:
        return self._word() if self._peek().isdigit() else self.type()
