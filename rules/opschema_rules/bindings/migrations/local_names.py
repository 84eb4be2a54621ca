"""Names that a block of bindings declares itself: a function that needs one of them cannot be moved out of the block."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from opschema_cli.project import Project
from opschema_cli.source import pieces
from opschema_cli.source.cpp_namespaces import is_within
from opschema_cli.source.cpp_text import only_code
from opschema_rules.bindings.facts import Block
from opschema_rules.bindings.functions import function_name
from opschema_rules.bindings.migrations.plain_code import DECLARED, UNPACKED
from opschema_rules.bindings.model import Binding

_TOKEN = re.compile(r"[{};]")
_TEMPLATE = re.compile(r"\btemplate\s*<([^{};]*)\Z")
_TEMPLATE_NAME = re.compile(r"(\w+)\s*(?=[,>=])")
_DECLARATION = re.compile(
    r"\s*(?:(?:for|if|while|switch|catch)\s*\(\s*)?(?:\[\[[^\]]*\]\]\s*|(?:const|constexpr|static|inline|extern|thread_local|typedef"
    rf"|volatile|unsigned|signed|struct|class|enum|union|mutable|typename|register)\s+)*{DECLARED.pattern}"
)
_MORE = re.compile(r"[\s&*]*(\w+)\s*(?:[=({\[]|\Z)")
_POINTER = re.compile(r"[\w\s:<>,&*]*\(\s*\*\s*(?:const\s+)?(\w+)\s*\)\s*\(")
_USING = re.compile(r"\s*using\s+(?:typename\s+)?(?:::\s*)?(?:\w+\s*::\s*)+(\w+)\s*\Z")
_DIRECTIVE = re.compile(r"\s*using\s+namespace\s+([\w:]+)\s*\Z")
_ENUM = re.compile(r"\s*enum\b[^()]*\Z")
_NAME = re.compile(r"[A-Za-z_]\w*")
_BEFORE = 1000
"""Number of characters to search for the head of a template."""

_WORD = re.compile(r"(?<![\w.])(?<!::)(?<!->)[A-Za-z_]\w*")
_EVERYWHERE = re.compile(
    r"at|torch|c10|std|py|pybind11|nb|nanobind|(?:TORCH|AT|C10)_\w+|u?int\d*_t|size_t|int|long|unsigned|signed|short|float|double"
    r"|bool|char|void|auto|const|constexpr|static|typename|template|class|struct|using|namespace|if|else|for|while|do|switch|case"
    r"|default|break|continue|return|throw|try|catch|new|delete|true|false|nullptr|and|or|not|mutable|noexcept|sizeof|decltype"
    r"|static_assert|operator|(?:static|const|reinterpret|dynamic)_cast"
)
"""Words that have the same meaning in every scope."""


class _Scope(msgspec.Struct):
    """The names that a scope declares, and whether it brings those of a namespace."""

    names: list[str] = msgspec.field(default_factory=list)
    brings: bool = False


class _Needed(msgspec.Struct, frozen=True):
    """The names that a function needs: those that its block declares, and those that a using-directive in it may bring."""

    declared: frozenset[str] = frozenset()
    brought: frozenset[str] = frozenset()


class LocalNames:
    """Finds what the functions of a tree's bindings need of their blocks."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._blocks: dict[tuple[str, int], dict[int, _Needed]] = {}

    def first(self, binding: Binding) -> str:
        """Return a name that the function of a binding needs of its block; empty if there is none."""
        block, source = binding.block, self._project.source(binding.path)
        if block is None or source is None:
            return ""
        key = (binding.path, block.span.start)
        if key not in self._blocks:
            self._blocks[key] = dict(_needs(only_code(source.text, directives=False), block))
        needed = self._blocks[key].get(binding.step.value_span.start, _Needed())
        own = function_name(binding).partition("::")[0] if _is_around(binding, block) else ""
        return min(needed.declared, default="") or min(needed.brought - {own}, default="")


def _is_around(binding: Binding, block: Block) -> bool:
    """Whether the name of a function is known in the namespace around a block."""
    name, full = function_name(binding), binding.signature.name if binding.signature is not None else ""
    return full.endswith(name) and is_within(block.namespace, full.removesuffix(name).removesuffix("::"))


def _needs(code: str, block: Block) -> Iterator[tuple[int, _Needed]]:
    """Yield what each function in a block needs of it, by the place of the function."""
    steps = sorted((step.value_span for step in block.steps if step.kind == "def"), reverse=True)
    at = code.find("{", block.span.end) + 1
    scopes = [_Scope(_names_of_head(code, block, at))]
    known = Counter(scopes[0].names)
    for token in _TOKEN.finditer(code, at, max(at, block.end)):
        while steps and steps[-1].start < token.start():
            span = steps.pop()
            yield span.start, _needed(code[span.start : span.end], known, any(scope.brings for scope in scopes))
        head = code[at : token.start()]
        at = token.end()
        names = list(_declared(head))
        if token[0] == "{" and _ENUM.match(head):
            names += _NAME.findall(code, at, code.find("}", at))
        scopes[-1].names += names
        scopes[-1].brings |= _brings(head)
        known.update(names)
        if token[0] == "{":
            scopes.append(_Scope())
        elif token[0] == "}" and len(scopes) > 1:
            known.subtract(scopes.pop().names)


def _needed(text: str, known: Counter[str], brings: bool) -> _Needed:
    words = {word for word in _WORD.findall(text) if not _EVERYWHERE.fullmatch(word)}.difference(_own_names(text))
    return _Needed(frozenset(word for word in words if known[word]), frozenset(words if brings else ()))


def _brings(head: str) -> bool:
    """Whether a statement brings the names of a namespace that may be other than literals."""
    directive = _DIRECTIVE.match(head)
    return directive is not None and not directive[1].endswith("literals")


def _names_of_head(code: str, block: Block, end: int) -> list[str]:
    """Return the parameters of the function or template that is a block."""
    template = _TEMPLATE.search(code, max(0, block.span.start - _BEFORE), block.span.start)
    names = _TEMPLATE_NAME.findall(template[1]) if template is not None else []
    return [*names, *_parameters(code[block.span.end : end - 1])]


def _parameters(text: str) -> Iterator[str]:
    """Yield the names of the parameters in the parentheses that begin a text."""
    opening = text.find("(") + 1
    for item in pieces.arguments(text[opening : text.rfind(")")]) or ():
        yield from _declared(item.text)


def _own_names(text: str) -> Iterator[str]:
    """Yield the names that a lambda declares."""
    first, *others = _TOKEN.split(text)
    yield from _parameters(first)
    for head in others:
        yield from _declared(head)


def _declared(head: str) -> Iterator[str]:
    """Yield the names that a statement, given without its end, declares."""
    yield from (name.strip() for names in UNPACKED.findall(head) for name in names.split(","))
    named = _USING.match(head) or _POINTER.match(head)
    if named is not None:
        yield named[1]
    match = _DECLARATION.match(f"{head};")
    if match is not None:
        yield match[2]
        others = (_MORE.match(item.text) for item in (pieces.arguments(head[match.end() :]) or ())[1:])
        yield from (other[1] for other in others if other is not None)
