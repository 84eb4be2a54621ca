"""The words of torchgen, as ``torchgen/model.py`` lists them: dispatch keys, fields, types."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

_DTYPE_CLASSES = "Integral Floating Complex All AllAndComplex FloatingAndComplex"
_MARKS = ("_foreach", "_like", "pytorch/issues/145522")
"""Text in ``model.py`` of releases that check this; see :attr:`Vocabulary.checks`."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Vocabulary(msgspec.Struct, frozen=True):
    """The words of one version of torchgen.

    ``dispatch_keys`` are all that it knows, ``supported`` those that stand in a native_functions.yaml, ``structured`` those
    of them that a structured kernel generates for the operators that delegate to it, ``ufunc`` those that an inner loop
    does. ``fields`` are those of an entry, ``types`` the base types, ``dtype_classes`` the names of sets of
    ``scalar_types``. ``checks`` are words of the checks that not every version makes.
    """

    dispatch_keys: frozenset[str]
    supported: frozenset[str]
    structured: frozenset[str]
    ufunc: frozenset[str]
    ufunc_keys: frozenset[str]
    fields: frozenset[str]
    types: frozenset[str]
    scalar_types: frozenset[str]
    dtype_classes: frozenset[str]
    checks: frozenset[str]

    def completed(self, fallback: Vocabulary) -> Vocabulary:
        """Return the words, with missing lists taken from another vocabulary; of dispatch keys only those that it knows."""
        lent = {
            name: getattr(fallback, name) for name in self.__struct_fields__ if name not in ("dispatch_keys", "checks")
        }
        for name in ("supported", "structured", "ufunc"):
            lent[name] &= self.dispatch_keys
        return replace(self, **{name: words for name, words in lent.items() if not getattr(self, name)})

    @property
    def backends(self) -> frozenset[str]:
        """The backends: those with an ``Autograd`` key."""
        keys = self.dispatch_keys
        return frozenset(key for key in keys if f"Autograd{key}" in keys and key not in ("NestedTensor", "Other"))


_CLASS = re.compile(r"^class (\w+)\(Enum\):[^\n]*\n((?:[ \t]+[^\n]*\n|[ \t]*\n|#[^\n]*\n)*)", re.MULTILINE)
_MEMBER = re.compile(r"^    (\w+) = ", re.MULTILINE)
_SET = r"^{name} = [\[{{]([^\]}}]*)[\]}}]"
_POPPED = re.compile(r"\be\.pop\(\s*[\"'](\w+)[\"']")
_KEY = re.compile(r"\bDispatchKey\.(\w+)")
_COMMENT = re.compile(r"#[^\n]*")


def read_vocabulary(text: str) -> Vocabulary | None:
    """Words that a ``model.py`` lists; None without the enum ``DispatchKey``."""
    enums = {name: frozenset(_MEMBER.findall(body)) for name, body in _CLASS.findall(text)}
    keys = enums.get("DispatchKey", frozenset())
    if not keys:
        return None
    fields = frozenset(_POPPED.findall(text)) - {"__line__"}
    return Vocabulary(
        keys,
        _listed(text, "dispatch_keys"),
        _listed(text, "STRUCTURED_DISPATCH_KEYS"),
        _listed(text, "UFUNC_DISPATCH_KEYS"),
        enums.get("UfuncKey", frozenset()),
        fields if "func" in fields else frozenset(),
        enums.get("BaseTy", frozenset()),
        enums.get("ScalarType", frozenset()),
        _words(_DTYPE_CLASSES),
        frozenset(mark for mark in _MARKS if mark in text),
    )


def _listed(text: str, name: str) -> frozenset[str]:
    found = re.search(_SET.format(name=name), text, re.MULTILINE)
    return frozenset(_KEY.findall(_COMMENT.sub("", found[1]))) if found is not None else frozenset()


def slip(name: str, names: Iterable[str]) -> str | None:
    """Return the only one of ``names`` that ``name`` is a misspelling of: the case, or a letter that is missing, added or
    swapped.
    """
    found = [other for other in names if _is_slip(name.lower(), other.lower())]
    return found[0] if len(found) == 1 else None


def _is_slip(name: str, other: str) -> bool:
    if abs(len(name) - len(other)) > 1:
        return False
    pairs = enumerate(zip(name, other, strict=False))
    same = next((at for at, (left, right) in pairs if left != right), min(len(name), len(other)))
    rest, meant = name[same:], other[same:]
    swapped = rest[1::-1] + rest[2:]
    return rest == meant or rest[1:] == meant or rest == meant[1:] or (len(rest) > 1 and swapped == meant)
