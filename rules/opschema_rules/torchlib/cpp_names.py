"""Names of operators in C++ calls."""

from __future__ import annotations

from opschema_rules.torchlib.cpp_facts import CppLibrary


def words_of(library: CppLibrary) -> frozenset[str]:
    """Names of the operators that a block's calls name; other calls are gaps of their own."""
    texts = (call.arguments[0].literal for call in library.calls if call.arguments)
    return frozenset(word(text.value) for text in texts if text is not None)


def all_words_of(library: CppLibrary) -> frozenset[str] | None:
    """Return all words of a block whose calls all name their operator; None for any other."""
    firsts = [call.arguments[0] if call.arguments and not call.text else None for call in library.calls]
    known = all(item is not None and item.literal is not None and not item.partial for item in firsts)
    return words_of(library) if known and not library.broken else None


def word(name: str) -> str:
    """An operator's name without its namespace, overload and schema."""
    return name.partition("(")[0].strip().rpartition("::")[2].partition(".")[0]


def qualified(namespace: str | None, name: str) -> str | None:
    """Return the name with its namespace; None if that is not known."""
    if "::" in name:
        return name
    return f"{namespace}::{name}" if namespace is not None and namespace != "_" else None
