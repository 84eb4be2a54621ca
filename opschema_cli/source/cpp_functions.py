"""Functions and methods that a C++ file declares and defines, read from its syntax tree.

Only namespaces and classes are searched, not the bodies of functions. Spans count characters of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from opschema_cli.source.cpp import CppNode, CppTree
from opschema_cli.source.cpp_namespaces import Namespaces, is_within
from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.preprocessor import Condition, Macro, is_dead
from opschema_cli.source.text import Span

MAX_ARGUMENTS, MAX_SCANNED = 10_000, 2_000_000
"""Maximum length of arguments to read, and of those of all calls of a text together, in characters."""


class CppParameterText(msgspec.Struct, frozen=True, array_like=True):
    """A parameter as written: its type, its name (may be empty), its span, and its default (may be empty)."""

    type: str
    name: str
    span: Span
    default: str = ""


class CppFunction(msgspec.Struct, frozen=True, array_like=True):
    """A function or method. ``owner`` is its class and namespaces, as far as they are written.

    ``span`` covers it up to its parameters' end. ``unsure`` says that it is a template, generated, or not understood in full.
    ``template`` are the names of a template's parameters where it is that and nothing else makes it unsure.
    """

    owner: str
    name: str
    name_span: Span
    span: Span
    returns: str
    parameters: tuple[CppParameterText, ...]
    defined: bool
    conditions: tuple[Condition, ...] = ()
    unsure: bool = False
    template: tuple[str, ...] = ()


class CppDeclarations(msgspec.Struct, frozen=True, array_like=True):
    """The contents of one file: its functions, type aliases and macros, and the files that it includes.

    ``aliases`` are the types of ``using name = type;`` and ``typedef type name;``, empty where a name has several.
    ``loose`` are the qualified names of functions that seem to be defined where the syntax is not understood.
    """

    functions: tuple[CppFunction, ...]
    aliases: dict[str, str]
    macros: tuple[Macro, ...]
    includes: tuple[str, ...]
    loose: tuple[str, ...]


_AROUND = frozenset(
    {"translation_unit", "declaration_list", "linkage_specification", "ERROR", "template_declaration"}
    | {"field_declaration_list", "compound_statement", "labeled_statement"}
    | {"preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef"}
)
_CLASSES = ("class_specifier", "struct_specifier")
_FUNCTIONS = ("function_definition", "declaration", "field_declaration")
_DECLARATORS = ("reference_declarator", "pointer_declarator", "attributed_declarator")
_SPECIFIER = re.compile(
    r"\b(?:static|inline|virtual|extern|constexpr|public|private|protected|[A-Z][A-Z0-9_]*_(?:API|EXPORTS?|INLINE|PUBLIC|HIDDEN))\b:?"
)
_DEFINES = re.compile(r"([A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*){1,9})\s*\)?\s*\(")
_AFTER_MACRO = re.compile(r"(?<=[\w>])(?<!\boperator)\s+((?:[A-Za-z_]\w*\s*::\s*){0,9}[A-Za-z_]\w*)$")
"""The name in what tree-sitter takes for a name after a macro (``MACRO at::Tensor A::f(``): the returned type comes before it."""
_NAMESPACE_ALIAS = re.compile(r"\bnamespace\s+([A-Za-z_]\w*)\s*=\s*(?:::\s*)?([A-Za-z_][\w:]*)\s*;")
_BODY = re.compile(r"[\s\w]*\{")
_OPENS = re.compile(r"\s*(?:(?:const|noexcept|override|final)\s*)*\{")
_GENERATED = re.compile(r"(?i)@generated|auto-?generated (?:file|by)")
_INCLUDE = re.compile(r'(?m)^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)')


_ALIASES = ("alias_declaration", "type_definition")
_CLASS_BODIES = ("field_declaration_list", "compound_statement")

_Template: TypeAlias = "tuple[str, ...] | None"
"""The parameter names of the template around a node; empty if they are not known, None outside of templates."""


class _Reader:
    def __init__(self, tree: CppTree) -> None:
        self.tree = tree
        self.generated = _GENERATED.search(tree.text, 0, 2_000) is not None
        self.functions: list[CppFunction] = []
        self.aliases: dict[str, str] = {}
        self.namespaces: dict[str, str] = dict(_NAMESPACE_ALIAS.findall(tree.text))

    def read(self, around: CppNode, owner: str) -> None:
        """Collect the functions and aliases in a namespace, a class, or the file."""
        waiting: list[tuple[CppNode, str, _Template]] = [(around, owner, None)]
        while waiting:
            node, owner, template = waiting.pop()
            for child in node.children:
                if child.kind == "namespace_definition":
                    waiting.append((child, _joined(owner, _name(child)), template))
                    continue
                inner = _class_body(child)
                within = _template_of(child, template)
                if inner is not None:
                    waiting.append((inner[1], _joined(owner, inner[0]), within if within is None else ()))
                elif child.kind in _AROUND:
                    waiting.append((child, owner, within))
                elif child.kind in _FUNCTIONS:
                    self._function(child, owner, template)
                elif child.kind in _ALIASES and template is None and node.kind not in _CLASS_BODIES:
                    self._alias(child)

    def _alias(self, node: CppNode) -> None:
        name = node.field("name" if node.kind == "alias_declaration" else "declarator")
        kind = node.field("type")
        if name is not None and kind is not None and name.kind == "type_identifier":
            known = self.aliases.setdefault(name.text, kind.text)
            if known != kind.text:
                self.aliases[name.text] = ""

    def _function(self, node: CppNode, owner: str, template: _Template) -> None:
        declarator = _function_declarator(node)
        name = declarator.field("declarator") if declarator is not None else None
        parameters = declarator.field("parameters") if declarator is not None else None
        if declarator is None or name is None or parameters is None:
            return
        after = _AFTER_MACRO.search(name.text)
        written = name.text if after is None else after[1]
        qualifier, _, own = re.sub(r"\s+", "", written).rpartition("::")
        owner = _joined(owner, self._resolved(qualifier))
        if not own.isidentifier():
            return
        span = Span(node.span.start, parameters.span.end)
        begins = name.span.end - len(own) if name.text.endswith(own) else name.span.start
        found = [self._parameter(item) for item in parameters.children]
        unsure = self.generated or declarator.has_error or after is not None or None in found
        names = template if template is not None and not unsure else ()
        unsure = unsure or template is not None
        trailing = next((item for item in declarator.children if item.kind == "trailing_return_type"), None)
        before = self.tree.text[span.start : name.span.end - len(written)]
        returns = _SPECIFIER.sub(" ", before) if trailing is None else trailing.text.removeprefix("->")
        known = tuple(item for item in found if item is not None)
        known = () if [item.type for item in known] == ["void"] else known
        # A macro without a semicolon may make the parser miss the body.
        defined = node.field("body") is not None or _OPENS.match(self.tree.text, span.end) is not None
        conditions = self.tree.directives.conditions(name.span.start)
        name_span = Span(begins, name.span.end)
        self.functions.append(
            CppFunction(owner, own, name_span, span, returns.strip(), known, defined, conditions, unsure, names)
        )

    def _resolved(self, qualifier: str) -> str:
        """Return a qualifier with the namespace that its first name is an alias of."""
        first, colons, rest = qualifier.partition("::")
        return self.namespaces.get(first, first) + colons + rest

    def _parameter(self, node: CppNode) -> CppParameterText | None:
        if node.kind not in ("parameter_declaration", "optional_parameter_declaration"):
            return None
        start, end = node.span
        default = node.field("default_value")
        if default is not None:
            end = start + len(self.tree.text[start : default.span.start].rpartition("=")[0])
        name = _parameter_name(node.field("declarator"))
        written = default.text if default is not None else ""
        if name is None:
            return CppParameterText(self.tree.text[start:end].strip(), "", node.span, written)
        text = self.tree.text[start : name.span.start] + self.tree.text[name.span.end : end]
        return CppParameterText(text.strip(), name.text, node.span, written)


def _template_of(node: CppNode, around: _Template) -> _Template:
    """Return the template in a node; a nested template has no names."""
    if node.kind != "template_declaration":
        return around
    parameters = node.field("parameters")
    if around is not None or parameters is None:
        return ()
    found = [next((item.text for item in child.walk() if item.kind in _NAMES), "") for child in parameters.children]
    return tuple(found) if all(found) and all("..." not in child.text for child in parameters.children) else ()


_NAMES = ("type_identifier", "identifier")


def _joined(owner: str, name: str) -> str:
    return f"{owner}::{name}" if owner and name else owner or name


def _name(node: CppNode) -> str:
    name = node.field("name")
    return re.sub(r"\s+", "", name.text) if name is not None else ""


def _class_body(node: CppNode) -> tuple[str, CppNode] | None:
    """Return the name and body of a class; tree-sitter parses one with a macro before its name (``class TORCH_API A {``) as a
    function.
    """
    if node.kind in (*_FUNCTIONS, "template_declaration"):
        kind = next((item for item in node.children if item.kind in _CLASSES), None)
        if kind is None:
            return None
        inner, name, body = kind.field("body"), node.field("declarator"), node.field("body")
        if inner is None and name is not None and name.kind == "identifier" and body is not None:
            return name.text, body
        node = kind
    body = node.field("body") if node.kind in _CLASSES else None
    return (_name(node), body) if body is not None else None


def _function_declarator(node: CppNode) -> CppNode | None:
    """Return the part of a declaration that contains a function's name and parameters."""
    found = node.field("declarator")
    while found is not None and found.kind in _DECLARATORS:
        found = next((item for item in found.children if item.kind.endswith("declarator")), None)
    return found if found is not None and found.kind == "function_declarator" else None


def _parameter_name(declarator: CppNode | None) -> CppNode | None:
    while declarator is not None and declarator.kind in _DECLARATORS:
        declarator = next(iter(declarator.children), None)
    return declarator if declarator is not None and declarator.kind == "identifier" else None


def _loose(tree: CppTree, known: set[int]) -> Iterator[str]:
    """Yield the functions that seem to be defined in the text, except those whose names end at ``known`` places."""
    text = only_code(tree.text, directives=False)
    for match, end in calls(_qualified(text), text):
        defines = match.end(1) not in known and _BODY.match(text, end)
        if defines and not is_dead(tree.directives.conditions(match.start())):
            yield re.sub(r"\s+", "", match[1])


def _qualified(text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of :data:`_DEFINES` that begin with a word, searching around ``::``, which takes a fifth of the time."""
    at = 0
    while (colons := text.find("::", at)) >= 0:
        end = colons
        while end > at and text[end - 1].isspace():
            end -= 1
        start = end
        while start > at and (text[start - 1].isalnum() or text[start - 1] == "_"):
            start -= 1
        match = _DEFINES.match(text, start) if start < end else None
        if match is not None:
            yield match
        at = match.end() if match is not None else colons + 2


def calls(matches: Iterable[re.Match[str]], text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the matches of a pattern that ends with a parenthesis, each with the place after the closing one.

    Of a text whose parentheses do not close, only the first part is looked at.
    """
    left = MAX_SCANNED
    for match in matches:
        end = _closing(text, match.end())
        left -= end - match.end()
        if left < 0:
            return
        yield match, end


def _closing(text: str, at: int) -> int:
    """Return the place where the parenthesis opened before ``at`` is closed; if it is not, :data:`MAX_ARGUMENTS` after it."""
    depth = 1
    for match in _PARENTHESIS.finditer(text, at, at + MAX_ARGUMENTS):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return match.end()
    return min(len(text), at + MAX_ARGUMENTS)


_PARENTHESIS = re.compile(r"[()]")


def includes(text: str, *, only_quoted: bool = False) -> Iterator[str]:
    """Yield the names of the files that a text includes, in quotes or angle brackets."""
    for match in _INCLUDE.finditer(text):
        if match[1] or not only_quoted:
            yield match[1] or match[2]


def _in_namespace(function: CppFunction, namespace: str) -> CppFunction:
    """Return a function with the namespaces that an earlier syntax error has hidden."""
    hidden = namespace != function.owner and is_within(namespace, function.owner)
    return replace(function, owner=namespace) if hidden and namespace else function


def read_functions(tree: CppTree) -> CppDeclarations:
    """Read the functions of a file."""
    reader = _Reader(tree)
    reader.read(tree.root, "")
    macros = tree.directives.kept
    reader.functions.sort(key=lambda item: item.span)
    if tree.root.has_error:
        namespaces = Namespaces(tree.text)
        reader.functions = [_in_namespace(item, namespaces.at(item.name_span.start)) for item in reader.functions]
    known = {item.name_span.end for item in reader.functions}
    return CppDeclarations(
        tuple(reader.functions), reader.aliases, macros, tuple(includes(tree.text)), tuple(_loose(tree, known))
    )
