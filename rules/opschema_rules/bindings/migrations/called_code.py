"""The code that bound functions run: their bodies, and those of the functions and macros of the tree that they call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

import msgspec

from opschema_cli.cpp_definitions import CppDefinitions
from opschema_cli.cpp_units import MACROS, Declared
from opschema_cli.file_kinds import is_cpp
from opschema_cli.project import Project
from opschema_cli.source.cpp_namespaces import may_mean
from opschema_cli.source.cpp_text import only_code

MAX_DEPTH = 12
"""Maximum length of a chain of calls to follow."""

_LONGEST = 100_000
"""Maximum number of characters of a body."""

_ANGLES = "<[^<>()]{0,200}>"
for _ in range(3):
    _ANGLES = f"<(?:[^<>()]|{_ANGLES}){{0,200}}>"

_CALL = re.compile(rf"(?<![\w.>])((?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)\s*(?:{_ANGLES}\s*)?\(")
_TYPED = re.compile(rf"([A-Za-z_][\w:]*)(?:{_ANGLES})?\s+\Z")
"""The type before a name, in a declaration of a variable or function."""

_NO_TYPE = frozenset(
    {"return", "else", "throw", "case", "co_return", "new", "delete", "do", "goto", "and", "or", "not"}
)
_KNOWN = re.compile(
    r"(?:at|torch|std|c10)::(?!autograd).*|if|for|while|switch|return|sizeof|alignof|decltype|catch|noexcept|static_assert|defined"
    r"|\w+_cast|u?int\d*_t|size_t|int|long|unsigned|float|double|bool|char|void|auto|dim3|operator|throw|assert|f?printf"
    r"|mem(?:cpy|set|move)|malloc|free|f?(?:abs|min|max)f?|(?:ceil|floor|sqrt|exp|log|pow|round)f?"
    r"|Slice|Scalar|TensorOptions|TensorList|(?:Int)?ArrayRef|(?:TORCH|C10|AT)_\w+|CHECK(?:_(?:EQ|NE|GE|GT|LE|LT))?|NULL"
)
"""Functions, macros, types and words whose code is not that of the tree. What macros of torch run is in their arguments."""

_APPLY = re.compile(r"(\w+)\s*(?:<[^<>()]*>)?\s*::\s*apply\s*\(")


class CalledCode(msgspec.Struct, frozen=True):
    """The code that a function may run: its own body is the first of ``bodies``, and the others are by the name of the function
    or macro, which may have several.

    ``lost`` are the functions that it calls and that the tree does not define, and the methods that are none of a tensor or
    container; ``differentiates`` is an autograd function of C++ that it applies, empty if there is none.
    """

    bodies: tuple[tuple[str, ...], ...]
    lost: tuple[str, ...] = ()
    differentiates: str = ""

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join(text for texts in self.bodies for text in texts)


class CallSearch(msgspec.Struct, dict=True):
    """Finds the code that functions of a tree run."""

    project: Project

    def body(self, declared: Declared) -> str:
        """Return the body of a definition, without comments and literals; empty if it has none."""
        code = self._code_of(declared.path)
        return _braced(code, code.find("{", declared.function.span.end))

    def code(self, body: str) -> CalledCode:
        """Return all the code that a body may run."""
        self.learn([body])
        found: dict[str, tuple[str, ...]] = {"": (body,)}
        lost: list[str] = []
        waiting = [body]
        while waiting:
            for name in called_names(waiting.pop()):
                texts = self._known.get(name, ())
                if name not in found and texts:
                    found[name] = texts
                    waiting += texts
                elif not texts and name not in lost:
                    lost.append(name)
        lost += sorted({name for texts in found.values() for text in texts for name in _unknown_methods(text)})
        applied = {match[1] for texts in found.values() for text in texts for match in _APPLY.finditer(text)}
        return CalledCode(tuple(found.values()), tuple(lost), min(applied & self._autograd, default=""))

    def learn(self, bodies: Iterable[str]) -> None:
        """Find the functions and macros that some bodies call, and what these call."""
        waiting = list(bodies)
        for _ in range(MAX_DEPTH):
            names = {name for body in waiting for name in called_names(body)} - self._known.keys()
            if not names:
                return
            search = CppDefinitions(self.project, frozenset(name.rpartition("::")[2] for name in names))
            waiting = []
            for name in sorted(names):
                plain = name.rpartition("::")[2]
                qualifier = name.rpartition("::")[0]
                defined = [
                    item
                    for item in search.functions.get(plain, ())
                    if item.function.defined and may_mean(qualifier, item.function.owner)
                ]
                texts = [*filter(None, map(self.body, defined)), *self._macros.get(name, ())]
                self._known[name] = tuple(dict.fromkeys(texts))
                waiting += self._known[name]

    @cached_property
    def _known(self) -> dict[str, tuple[str, ...]]:
        """The bodies of functions and macros, by name; none for one that the tree does not define."""
        return {}

    @cached_property
    def _codes(self) -> dict[str, str]:
        return {}

    def _code_of(self, path: str) -> str:
        if path not in self._codes:
            source = self.project.source(path)
            self._codes[path] = only_code(source.text) if source is not None else ""
        return self._codes[path]

    @cached_property
    def _paths(self) -> list[str]:
        return [path for path in self.project.workspace.files if is_cpp(path)]

    @cached_property
    def _macros(self) -> dict[str, list[str]]:
        """The bodies of the macros with parameters, by name."""
        found: dict[str, list[str]] = {}
        for macro in (item for items in self.project.readings(MACROS, self._paths).values() for item in items):
            if macro.parameters is not None:
                found.setdefault(macro.name, []).append(only_code(macro.body))
        return found

    @cached_property
    def _autograd(self) -> frozenset[str]:
        """The autograd functions that the tree's C++ defines."""
        data = (self.project.workspace.peek(path) for path in self._paths)
        return frozenset(name.decode() for text in data for name in _AUTOGRAD.findall(text))


_AUTOGRAD = re.compile(rb"\b(?:class|struct)\s+(\w+)[^;{}]{0,200}\bautograd::Function\b")


def _braced(code: str, opening: int) -> str:
    """Return the text from an opening brace to the closing one; empty if it is not closed."""
    depth = 0
    for match in re.finditer(r"[{}]", code[opening : opening + _LONGEST]) if opening >= 0 else ():
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return code[opening : opening + match.end()]
    return ""


def called_names(body: str) -> Iterator[str]:
    """Yield the functions, macros and constructors that a body calls by name, without those of PyTorch and of the language."""
    for match in _CALL.finditer(body):
        typed = _TYPED.search(body, max(0, match.start() - 200), match.start())
        is_declared = typed is not None and typed[1] not in _NO_TYPE
        name = typed[1] if typed is not None and is_declared else match[1]
        if not _KNOWN.fullmatch(name) and not (is_declared and name in _TYPES):
            yield name


def _unknown_methods(text: str) -> Iterator[str]:
    """Yield the methods that code calls and that are none of a tensor or container: what they do is not known."""
    return (name for name in _METHOD.findall(text) if not _METHODS.fullmatch(name) and name not in tensor_methods())


@lru_cache(maxsize=1)
def tensor_methods() -> frozenset[str]:
    """The names of PyTorch's operators, many of which are methods of a tensor."""
    # Not at the top: only this needs the tables of the other pack.
    from opschema_rules.aten.torchgen_table import ever_operators

    return frozenset(name.partition(".")[0] for name in ever_operators())


_METHOD = re.compile(r"(?:\.|->)\s*(?:template\s+)?([A-Za-z_]\w*)\s*(?:<[^<>()]*>\s*)?\(")
_METHODS = re.compile(
    # of tensors, beside the operators
    r"is_\w+|(?:sym_)?(?:sizes?|strides?|numel)|dim|ndimension|nbytes|itemsize|element_size|dtype|scalar_type|device|options|layout"
    r"|defined|requires_grad|set_requires_grad|get_device|device_type|type|toType|cpu|cuda|hip|xpu|mps|\w*data_ptr"
    r"|(?:packed_)?accessor\d*|name|memory_format|pinned_memory"
    # of containers, optional values and strings
    r"|c?r?begin|c?r?end|(?:push|emplace|pop)_(?:back|front)|insert|emplace|erase|find|count|at|front|back|data|empty|clear|reserve"
    r"|resize|capacity|vec|slice|value|value_or|has_value|reset|get|c_str|str|length|substr|append"
)
"""Methods of tensors that are no operators, and of the containers and options that are used beside them."""

_TYPES = frozenset({"Tensor", "vector", "string", "tuple", "IntArrayRef", "TensorOptions"})
"""Types of torch and the standard library, as written after `using`."""
