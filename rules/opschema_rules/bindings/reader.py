"""Reads the pybind11 and nanobind bindings of a C++ file from its syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from opschema_cli.readings import Reading
from opschema_cli.source.cpp import CppNode, CppTree, literal
from opschema_cli.source.cpp_blocks import (
    BRANCHES,
    arguments_of,
    around,
    callee,
    errors_in,
    inside,
    is_mentioned,
    is_plain_call,
    links_of,
    macro_block,
    owner_of,
    receivers,
)
from opschema_cli.source.cpp_scopes import declared_in
from opschema_cli.source.preprocessor import is_dead
from opschema_cli.source.text import Span
from opschema_rules.bindings.detection import MODULES, OF_TENSORS
from opschema_rules.bindings.facts import Annotation, BindingFacts, Block, Step

_MODULE_TYPE = re.compile(r"(?:::)?(?:py|pybind11|nb|nanobind)::module_?")
_ARG = re.compile(r"(?:(?:::)?(?:py|pybind11|nb|nanobind)::)?arg(?:_v)?")
_MARKER = re.compile(r"(?:::)?(?:py|pybind11|nb|nanobind)::(kw_only|pos_only)\s*(?:\(\s*\)|\{\s*\})")
_TEMPLATE = re.compile(r"class_|enum_|exception|\bbind_(?:vector|map)|Class")
_WORD = re.compile(r"[A-Za-z_]\w*")
_VALUE = re.compile(r'\.\s*value\s*\(\s*"(\w+)"')
_MACROS = re.compile(r"(?:[A-Z][A-Z0-9_]{2,}(?:\s*\([^(){};]*\))?\s*)+;?")
_CHANGES = re.compile(r"\b(?:del|set)attr\Z")
_IMPORT = re.compile(
    r'\bmodule_?::import_?\s*\(\s*"(?:[\w.]*\.)?(\w+)"\s*\)(?:\s*\.\s*attr\s*\(\s*"(?!__)[^()]*\)\s*(?!\s|=(?!=))())?'
)
"""An import of a module; the last group is there if the code only reads an attribute of it."""
_UNNAMED = re.compile(r"\bexport_values\b")
_HARMLESS = frozenset({"doc", "attr"})
_PLACES = ("identifier", "field_expression", "subscript_expression")
"""Kinds of targets that an assignment may keep a submodule in."""


class _Reader:
    def __init__(self, tree: CppTree) -> None:
        self.tree = tree

    def blocks(self) -> Iterator[Block]:
        for node in self.tree.root.walk():
            if node.kind == "function_declarator":
                yield from self._helper(node)
            elif node.kind in ("identifier", "type_identifier") and node.text in MODULES and not is_mentioned(node):
                yield from self._module(node)

    def _module(self, name: CppNode) -> Iterator[Block]:
        block = macro_block(name)
        conditions = self.tree.conditions(name)
        if block is None or block.head is None or len(block.arguments) < 2 or is_dead(conditions):
            return
        written, variable = block.arguments[:2]
        steps, broken = self._steps(block.body, variable) if block.body is not None else ((), True)
        yield Block(
            written,
            variable,
            name.span,
            steps,
            "nanobind" if name.text.startswith("NB_") else "pybind11",
            namespace=around(name),
            conditions=conditions,
            broken=broken,
            name_span=block.places[0],
            end=block.body.span.end if block.body is not None else 0,
            locals=frozenset(declared_in(block.body)) if block.body is not None else frozenset(),
        )

    def _helper(self, declarator: CppNode) -> Iterator[Block]:
        for item in receivers(declarator, _MODULE_TYPE):
            space, _, own = item.name.text.rpartition("::")
            if own not in MODULES:
                steps, broken = self._steps(item.body, item.variable)
                yield Block(
                    own,
                    item.variable,
                    item.name.span,
                    steps,
                    "nanobind" if item.type.lstrip(":").startswith("n") else "pybind11",
                    is_module=False,
                    namespace="::".join(filter(None, (around(item.name), space))),
                    conditions=self.tree.conditions(item.name),
                    broken=broken,
                    end=item.body.span.end,
                    locals=frozenset(
                        (*declared_in(item.body), *declared_in(item.parameters), *_template_names(declarator))
                    ),
                    gives_module=_gives_module(declarator),
                )

    def _steps(self, body: CppNode, variable: str) -> tuple[tuple[Step, ...], bool]:
        """The steps of a block, and whether something else in it is not understood."""
        steps = self._found(body, variable)
        known = [item.span for item in steps]
        errors = (span for span in errors_in(body) if not inside(span, known))
        return tuple(steps), not all(self._is_directive(span.start) for span in errors)

    def _is_directive(self, at: int) -> bool:
        return self.tree.text[self.tree.text.rfind("\n", 0, at) + 1 : at].lstrip().startswith("#")

    def _found(self, body: CppNode, variable: str) -> list[Step]:
        receivers = {variable}
        found: list[Step] = []
        waiting = [(node, False) for node in reversed(body.children)]
        while waiting:
            node, branch = waiting.pop()
            branch = branch or node.kind in BRANCHES
            own = list(self._of_node(node, receivers, branch)) or list(self._of_words(node, variable, branch))
            if own:
                found += own
                receivers.update(step.value for step in own if step.kind == "submodule" and step.value)
            elif node.kind == "preproc_include":  # a list of macros or of bindings, which may bind any names
                conditions = self.tree.conditions(node)
                found += [Step("unknown", item, node.span, conditions=conditions) for item in sorted(receivers)]
            elif node.kind == "identifier" and node.text in receivers:
                if not _is_harmless(node):
                    found.append(Step("unknown", node.text, node.span, conditions=self.tree.conditions(node)))
            elif node.kind == "lambda_expression":
                if not receivers.isdisjoint(_WORD.findall(node.text)):
                    found.append(Step("unknown", variable, node.span, conditions=self.tree.conditions(node)))
            else:
                waiting += [(item, branch) for item in reversed(node.children)]
        return found

    def _of_node(self, node: CppNode, receivers: set[str], branch: bool) -> Iterator[Step]:
        if node.kind == "call_expression":
            for receiver in receivers:
                links = links_of(node, receiver)
                if links:
                    yield from self._chain(links, receiver, branch)
                    return
            yield from self._other_call(node, receivers, branch)
        elif node.kind == "assignment_expression":
            yield from self._assignment(node, receivers, branch)
        elif node.kind == "init_declarator":
            value, name = node.field("value"), node.field("declarator")
            if value is not None and value.kind in ("argument_list", "initializer_list"):
                yield from self._made_class(node, value, receivers)
                value = value.children[0] if value.children else value
            if value is not None and name is not None and value.kind == "call_expression":
                yield from self._kept(name.text.lstrip("*& "), value, receivers, branch, is_sure=True)

    def _kept(self, own: str, value: CppNode, receivers: set[str], branch: bool, *, is_sure: bool) -> Iterator[Step]:
        """Yield the steps of a call whose result a variable keeps, surely or not."""
        steps = list(self._of_node(value, receivers, branch))
        made = next((step.value for step in reversed(steps) if step.kind == "submodule"), None)
        for step in steps:
            is_made, of_made = step.kind == "submodule" and step.value == made, step.receiver == made
            if not (of_made and is_sure and step.kind == "unknown" and not step.name):
                yield replace(step, value=own) if is_made else replace(step, receiver=own) if of_made else step

    def _chain(self, links: list[tuple[str, CppNode]], receiver: str, branch: bool) -> Iterator[Step]:
        """Yield the methods of a chain; those after ``def_submodule`` are called on the submodule, which may get further names
        where it is the value of more than a statement.
        """
        variable, last = receiver, links[-1][1]
        for method, link in links:
            for step in self._method(method, link, receiver, branch):
                yield step
                if step.kind == "submodule":
                    receiver = step.value
        if receiver != variable and not _is_alone(last):
            yield Step("unknown", receiver, last.span, conditions=self.tree.conditions(last))

    def _made_class(self, node: CppNode, arguments: CppNode, receivers: set[str]) -> Iterator[Step]:
        """The class or enumeration that ``py::class_<T> name(m, "T")`` makes."""
        items, declaration = arguments.children, node.parent
        name = literal(items[1]) if len(items) > 1 and items[0].text in receivers else None
        kind = declaration.field("type") if declaration is not None else None
        if name is not None and kind is not None and _TEMPLATE.search(kind.text):
            conditions = self.tree.conditions(node)
            yield Step("name", items[0].text, node.span, name.value, conditions=conditions)
            if "enum_" in kind.text:  # its values may be exported later
                yield Step("unknown", items[0].text, node.span, conditions=conditions)

    def _of_words(self, node: CppNode, variable: str, branch: bool) -> Iterator[Step]:
        """Yield a statement that only consists of macros: ``OPS`` and the text after it without a semicolon, or ``OPS(half,
        float)``, which is not an expression.
        """
        if node.kind in ("expression_statement", "declaration", "ERROR") and _MACROS.fullmatch(node.text):
            conditions = self.tree.conditions(node)
            span = Span(node.span.start, node.span.start + len(node.text.rstrip("; ")))
            yield Step("macro", variable, span, value=node.text, conditions=conditions, branch=branch)

    def _method(self, method: str, call: CppNode, receiver: str, branch: bool) -> Iterator[Step]:
        items, conditions = arguments_of(call), self.tree.conditions(call)
        name = literal(items[0]) if items else None
        if method == "def" and len(items) >= 2:
            span = items[0].span
            if name is None:
                yield Step("macro", receiver, call.span, value=call.text, conditions=conditions, branch=branch)
                return
            extras = [self._annotation(item) for item in items[2:]]
            known = tuple(item for item in extras if item is not None)
            others = (item for item, read in zip(items[2:], extras, strict=True) if read is None)
            unread = call.has_error or not all(map(_is_no_argument, others))
            alone = _is_alone(call) and not _is_chained(call)
            yield Step(
                *("def", receiver, span, name.value, items[1].text, items[1].span, "", known, conditions, branch),
                *(call.span if alone else Span(0, 0), unread, any(_PREPEND.match(item.text) for item in items[2:])),
            )
        elif method == "def_submodule" and name is not None:
            # A name that no variable has stands for the submodule in the rest of the chain.
            made = f"{receiver}.{name.value}"
            yield Step("submodule", receiver, call.span, name.value, made, conditions=conditions)
        elif method in ("add_object", "attr") and name is not None:
            yield Step("name", receiver, call.span, name.value, conditions=conditions)
        elif method != "doc":  # a computed name as well
            yield Step("unknown", receiver, call.span, method, conditions=conditions)

    def _annotation(self, node: CppNode) -> Annotation | None:
        default, methods = None, ""
        target = node
        if node.kind == "assignment_expression":
            left, right = node.field("left"), node.field("right")
            if left is None or right is None:
                return None
            target, default = left, right.text
        marker = _MARKER.fullmatch(target.text)
        if marker is not None:
            return Annotation("*" if marker[1] == "kw_only" else "/", node.span)
        while target.kind == "call_expression":
            inner = owner_of(target)
            if inner is None:
                break
            methods = "".join(self.tree.text[inner.span.end : target.span.end].split()) + methods
            target = inner  # `py::arg("x").noconvert()`
        if target.kind == "user_defined_literal":
            first = next((item for item in target.children if item.kind == "string_literal"), None)
            return Annotation(first.text[1:-1] if first is not None else None, target.span, default, methods)
        if target.kind != "call_expression" or not _ARG.fullmatch(callee(target)):
            return None
        items = arguments_of(target)
        name = literal(items[0]) if items else None
        if len(items) > 1 and default is None:  # `py::arg_v("x", 1)`
            default = items[1].text
        span = (items[0] if items else target).span
        return Annotation(name.value if name is not None else None, span, default, methods)

    def _assignment(self, node: CppNode, receivers: set[str], branch: bool) -> Iterator[Step]:
        left, right = node.field("left"), node.field("right")
        target = self._attribute(left, receivers)
        if left is not None and right is not None and left.kind in _PLACES and right.kind == "call_expression":
            sure = left.kind == "identifier" and not branch
            yield from self._kept(left.text, right, receivers, branch, is_sure=sure)
        if target is None or right is None:
            return
        conditions = self.tree.conditions(node)
        source = self._attribute(right, receivers)
        alone = _is_alone(node)
        if source is not None:
            yield Step(
                *("alias", target[0], target[2], target[1], source[1], source[2], source[0], (), conditions, branch),
                node.span if alone else Span(0, 0),
            )
        else:
            yield Step("name", target[0], target[2], target[1], conditions=conditions)

    def _attribute(self, node: CppNode | None, receivers: set[str]) -> tuple[str, str, Span] | None:
        """The variable and name of ``m.attr("name")``."""
        for receiver in receivers if node is not None and node.kind == "call_expression" else ():
            links = links_of(node, receiver) if node is not None else None
            if links and len(links) == 1 and links[0][0] == "attr":
                items = arguments_of(links[0][1])
                name = literal(items[0]) if items else None
                if name is not None:
                    return receiver, name.value, items[0].span
        return None

    def _other_call(self, node: CppNode, receivers: set[str], branch: bool) -> Iterator[Step]:
        """Yield a call that gets the module, or the chain of methods on its result."""
        inner = node
        while (owner := owner_of(inner)) is not None and owner.kind == "call_expression":
            inner = owner
        items = arguments_of(inner)
        names = (item.text.lstrip("& ") for item in items if item.kind in ("identifier", "pointer_expression"))
        given = next((name for name in names if name in receivers), None)
        conditions = self.tree.conditions(node)
        if given is not None:
            name = literal(items[1]) if len(items) > 1 and items[0].text == given else None
            if name is not None and _TEMPLATE.search(callee(inner)):
                yield Step("name", given, node.span, name.value, conditions=conditions)
                if _UNNAMED.search(node.text):
                    for value in _VALUE.findall(node.text):
                        yield Step("name", given, node.span, value, conditions=conditions)
            else:
                if name is not None and _CHANGES.search(callee(inner)):
                    yield Step("name", given, node.span, name.value, conditions=conditions)
                yield Step("call", given, node.span, value=callee(inner), conditions=conditions, branch=branch)
                kept = node is not inner or not _is_alone(node)
                value = callee(inner)
                yield Step("call", given, node.span, "", value, conditions=conditions, branch=branch, kept=kept)
        elif node is inner and callee(node).isidentifier() and is_plain_call(node):
            yield Step("macro", min(receivers), node.span, value=node.text, conditions=conditions, branch=branch)


_PREPEND = re.compile(r"(?:::)?(?:\w+::)*prepend\b")
_EXTRA = re.compile(r"(?:::)?(?:py|pybind11|nb|nanobind)::(?!arg)\w")


def _is_no_argument(node: CppNode) -> bool:
    """Whether an extra of ``def`` is certainly no argument, unlike a macro, a variable or a function of the tree."""
    return "string" in node.kind or _EXTRA.match(node.text) is not None


def _is_harmless(name: CppNode) -> bool:
    """Whether a use of a module binds nothing: it reads or sets its documentation, or reads an attribute."""
    parent = name.parent
    method = parent.field("field") if parent is not None and parent.kind == "field_expression" else None
    return method is not None and method.text in _HARMLESS


def _template_names(declarator: CppNode) -> Iterator[str]:
    """Yield the names of the parameters of a function's template."""
    parents = (item.field("parameters") for item in declarator.ancestors if item.kind == "template_declaration")
    yield from (name for item in parents if item is not None for name in declared_in(item))


def _is_alone(node: CppNode) -> bool:
    """Whether an expression is a statement of its own."""
    return node.parent is not None and node.parent.kind == "expression_statement"


def _gives_module(declarator: CppNode) -> bool:
    """Whether a function may return a module, by its declarator."""
    returned = declarator.parent.field("type") if declarator.parent is not None else None
    return returned is None or returned.text == "auto" or _MODULE_TYPE.fullmatch(returned.text) is not None


def _is_chained(call: CppNode) -> bool:
    owner = owner_of(call)
    return owner is None or owner.kind != "identifier"


def read_bindings(tree: CppTree) -> BindingFacts:
    """Read the bindings of a file."""
    imported = (item[1] for item in _IMPORT.finditer(tree.text) if item[2] is None)
    blocks, of_tensors = tuple(_Reader(tree).blocks()), OF_TENSORS.search(tree.text.encode()) is not None
    return BindingFacts(blocks, of_tensors, tuple(dict.fromkeys(imported)))


FACTS = Reading("bindings-cpp", read_bindings, BindingFacts)
