"""Reads the registrations of a C++ file from its syntax tree."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from msgspec.structs import replace

from opschema_cli.cpp_units import DECLARATIONS
from opschema_cli.readings import Reading
from opschema_cli.source.cpp import CppNode, CppTree, literal
from opschema_cli.source.cpp_blocks import (
    BRANCHES,
    SHALLOW,
    STRINGS,
    arguments_of,
    around,
    callee,
    errors_in,
    inside,
    is_function,
    is_mentioned,
    is_plain_call,
    links_of,
    macro_block,
    names_of,
    owner_of,
    receivers,
)
from opschema_cli.source.cpp_strings import Literal
from opschema_cli.source.text import Span
from opschema_rules.torchlib.cpp_facts import METHODS, CppArgument, CppCall, CppFacts, CppLibrary
from opschema_rules.torchlib.cpp_loops import Loop, declared_values, text_loop, unrolled
from opschema_rules.torchlib.cpp_openings import BLOCK, other_openings

_WORD = re.compile(r"(?<![A-Za-z0-9])TORCH_LIBRARY|RegisterOperators|Library\b")
_WRAPPER = re.compile(r"TORCH_SELECTIVE_(?:SCHEMA|NAME)|(?:(?:torch|c10)::)?schema")
_REGISTRAR = re.compile(r"(?:(?:torch|c10)::)+(?:jit::)?RegisterOperators")
_JIT_OPERATOR = re.compile(r"(?:(?:(?:torch|c10)::)*(?:jit::)?)Operator")
_LIBRARY_TYPE = re.compile(r"(?:(?:::)?(?:torch|c10|at)::)?(?:stable::)?Library")


class _Reader:
    def __init__(self, tree: CppTree) -> None:
        self.tree = tree
        self.openings = other_openings(tree.text)
        self.hits = sorted([*(match.start() for match in _WORD.finditer(tree.text)), *self.openings])
        self.libraries: list[CppLibrary] = []
        self.lost: list[Span] = []

    def facts(self) -> CppFacts:
        for node in self.tree.root.walk(self._is_plain):
            if node.kind == "function_declarator":
                self._helper(node)
            elif node.kind in ("identifier", "type_identifier") and (
                BLOCK.fullmatch(node.text) or node.span.start in self.openings
            ):
                self._block(node)
            elif node.kind == "qualified_identifier" and _REGISTRAR.fullmatch(node.text):
                self._registrar(node)
        return CppFacts(tuple(self.libraries), self.tree.directives.kept, tuple(self._outside()), tuple(self.lost))

    def _is_plain(self, node: CppNode) -> bool:
        """Whether nothing in a node is of interest."""
        start, end = node.span
        at = bisect.bisect_left(self.hits, start - 20)
        return at >= len(self.hits) or self.hits[at] >= end

    # Blocks

    def _block(self, name: CppNode) -> None:
        if is_mentioned(name):
            return
        block = macro_block(name)
        if block is None:
            self.lost.append(name.span)
            return
        known = block.body is not None and block.head is not None
        calls, broken = self._calls(block.body, block.arguments[-1]) if block.body is not None and known else ([], True)
        self._add(name, name.text, block.arguments, block.span, calls, broken)

    def _helper(self, declarator: CppNode) -> None:
        for item in receivers(declarator, _LIBRARY_TYPE):
            calls, broken = self._calls(item.body, item.variable)
            if calls and not BLOCK.fullmatch(item.name.text):
                arguments = (item.name.text.rpartition("::")[2], item.variable, *names_of(item.parameters))
                self._add(item.name, "", arguments, item.name.span, calls, broken)

    def _registrar(self, name: CppNode) -> None:
        """``torch::RegisterOperators().op(...).op(...)``, or one whose own arguments are those of an ``op``, or a list of
        ``torch::jit::Operator``.

        In a function it lasts until that returns, if it is called at all.
        """
        calls: list[CppCall] = []
        is_local = any(item.kind == "compound_statement" for item in name.ancestors)
        node = name
        while node.parent is not None and node.parent.kind in ("call_expression", "field_expression"):
            above = node.parent
            if above.kind == "call_expression" and above.field("function") == node:
                method = node.field("field") if node.kind == "field_expression" else None
                if (method is None and node == name) or (method is not None and method.text == "op"):
                    call = self._call("op", above, branch=is_local)
                    calls += self._operators(call, arguments_of(above))
            node = above
        declared = _initial(name)
        if declared is not None:
            arguments = tuple(map(self._argument, declared.children))
            call = CppCall("op", declared.span, arguments, branch=is_local)
            calls += self._operators(call, declared.children)
        calls = [call for call in calls if call.arguments]
        if calls:
            self._add(name, "torch::RegisterOperators", (), name.span, calls, False)

    def _operators(self, call: CppCall, arguments: Sequence[CppNode]) -> Iterator[CppCall]:
        """Yield the operators of one ``op``: those in a list of ``Operator("schema", ...)``, whose kernels take a stack; or the
        one whose schema is in the options.
        """
        first = arguments[0] if arguments else None
        if first is None or call.arguments[0].literal is not None:
            yield call
        elif first.kind == "initializer_list":
            for item in first.children:
                own = arguments_of(item) if _JIT_OPERATOR.fullmatch(callee(item)) else []
                yield replace(call, span=item.span, arguments=tuple(map(self._argument, own[:1] or [item])), text="")
        else:
            found = (item for item in first.walk() if callee(item).endswith(".schema"))
            given = next((item[0] for item in map(arguments_of, found) if item), None)
            schema = (self._argument(given),) if given is not None else ()
            yield replace(call, arguments=(*schema, *call.arguments), text="" if schema else call.text)

    def _add(
        self, node: CppNode, macro: str, arguments: tuple[str, ...], span: Span, calls: list[CppCall], broken: bool
    ) -> None:
        conditions = self.tree.directives.conditions(span.start)
        self.libraries.append(CppLibrary(macro, arguments, span, tuple(calls), conditions, broken, around(node)))

    # Calls

    def _calls(self, body: CppNode, receiver: str) -> tuple[list[CppCall], bool]:
        """Return the calls of a library in a block, and whether the block contains anything that is not understood: an error, or
        the contents of an included file, such as a list of macros.
        """
        found: list[CppCall] = []
        includes = False
        loops: dict[Span, Loop] = {}
        waiting: list[tuple[CppNode, bool, Loop | None]] = [(node, False, None) for node in reversed(body.children)]
        while waiting:
            node, branch, loop = waiting.pop()
            if node.kind == "lambda_expression":
                continue
            includes = includes or node.kind == "preproc_include"
            own = text_loop(node, self._values) if node.kind == "for_range_loop" else None
            loop = own or loop
            branch = branch or (node.kind in BRANCHES and own is None)
            if node.kind != "call_expression":
                waiting += [(item, branch, loop) for item in reversed(node.children)]
                continue
            links = links_of(node, receiver)
            calls = [self._call(method, link, branch) for method, link in links or () if method in METHODS]
            if links is None and is_plain_call(node):
                calls.append(self._call(callee(node), node, branch, raw=True))
            found += calls
            loops |= {call.span: loop for call in calls if loop is not None}
        found.sort(key=lambda call: call.span)
        known, broken = self._torn(body, found)
        return [one for call in known for one in unrolled(call, loops.get(call.span))], broken or includes

    @cached_property
    def _values(self) -> dict[str, list[CppNode]]:
        """The values that declarations assign to names."""
        return declared_values(self.tree.root)

    def _torn(self, body: CppNode, calls: list[CppCall]) -> tuple[list[CppCall], bool]:
        """Return the calls, those followed by an error as raw ones, and whether there are other errors."""
        spans = [call.span for call in calls]
        stray = [error for error in errors_in(body) if not inside(error, spans)]
        before = {bisect.bisect_right(spans, Span(error.start, error.end)) - 1 for error in stray}
        ends = [*(span.start for span in spans[1:]), body.span.end - 1]
        found = [
            _as_raw(call, self.tree.text[call.span.start : end]) if index in before else call
            for index, (call, end) in enumerate(zip(calls, ends, strict=False))
        ]
        return found, -1 in before

    def _call(self, method: str, node: CppNode, branch: bool, raw: bool = False) -> CppCall:
        arguments = node.field("arguments")
        found = tuple(map(self._argument, arguments_of(node)))
        # The span of a link of a chain begins at its method, so that each link has its own.
        function, owner = node.field("function"), owner_of(node)
        member = function.field("field") if function is not None and owner is not None else None
        chained = owner is not None and owner.kind == "call_expression"
        start = member.span.start if member is not None and chained else node.span.start
        span = Span(start, node.span.end)
        named = (
            method not in ("def", "impl", "op") or not found or (found[0].literal is not None and not found[0].partial)
        )
        raw = raw or not named or (arguments is not None and bool(errors_in(arguments)))
        text = self.tree.text[span.start : span.end] if raw else ""
        return CppCall(method, span, found, self.tree.directives.conditions(start), branch, text)

    def _argument(self, node: CppNode) -> CppArgument:
        text = self._value(node)
        if text is not None:
            return CppArgument(node.text, node.span, text)
        first = next((item for item in node.walk(is_function) if item.kind in STRINGS), None)
        begins = first is not None and first.span.start == node.span.start and node.kind not in STRINGS
        return CppArgument(node.text, node.span, literal(first) if begins and first is not None else None, begins)

    def _value(self, node: CppNode) -> Literal | None:
        """The value of a string, be it wrapped as ``TORCH_SELECTIVE_SCHEMA("...")`` is."""
        while node.kind in ("call_expression", "parenthesized_expression"):
            arguments = node.field("arguments") if node.kind == "call_expression" else node
            wraps = node.kind != "call_expression" or _WRAPPER.fullmatch(callee(node))
            if arguments is None or not arguments.children or not wraps:
                return None
            node = arguments.children[0]
        return literal(node)

    def _outside(self) -> Iterator[CppCall]:
        """Yield the calls in places of declarations: they are calls of macros."""
        for node in self.tree.root.walk(lambda node: node.kind not in SHALLOW):
            if node.kind == "expression_statement" and node.parent is not None and node.parent.kind in SHALLOW:
                call = node.children[0] if node.children else None
                opens = call is not None and (BLOCK.fullmatch(callee(call)) or call.span.start in self.openings)
                if call is not None and call.kind == "call_expression" and not opens:
                    yield self._call(callee(call), call, branch=False, raw=True)


def _as_raw(call: CppCall, text: str) -> CppCall:
    """A call that goes on where its tree does not."""
    arguments = tuple(CppArgument(item.text, item.span, item.literal, True) for item in call.arguments)
    return CppCall(call.method, call.span, arguments, call.conditions, call.branch, text.strip().rstrip(";"))


def _initial(kind: CppNode) -> CppNode | None:
    """The arguments in ``T r("ns::name", &f);``, whose type is ``kind``."""
    declaration = kind.parent
    declarator = declaration.field("declarator") if declaration is not None else None
    value = declarator.field("value") if declarator is not None and declarator.kind == "init_declarator" else None
    of_type = declaration is not None and declaration.kind == "declaration" and declaration.field("type") == kind
    return value if of_type and value is not None and value.kind == "argument_list" else None


def read_facts(tree: CppTree) -> CppFacts:
    """Read the registrations of a file."""
    return _Reader(tree).facts()


FACTS = Reading("torchlib-cpp", read_facts, CppFacts, (DECLARATIONS,))
