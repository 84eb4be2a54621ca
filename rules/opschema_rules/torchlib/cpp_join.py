"""Joins the registrations in the C++ files of a tree with the macros and functions of all of them."""

from __future__ import annotations

import re

import msgspec
from msgspec.structs import replace

from opschema_cli.file_kinds import is_python
from opschema_cli.lint.diagnostic import Place
from opschema_cli.source.preprocessor import Condition, are_nested, exclusive, is_dead
from opschema_cli.source.text import Span
from opschema_rules.torchlib.cpp_build import EXTENSION_NAME
from opschema_rules.torchlib.cpp_executorch import runtime_kernel
from opschema_rules.torchlib.cpp_facts import METHODS, CppCall, CppFacts, CppLibrary
from opschema_rules.torchlib.cpp_helpers import bound_call
from opschema_rules.torchlib.cpp_keys import Keys, functions_of, key_named, options_of, role_of
from opschema_rules.torchlib.cpp_macros import USES, FileMacros
from opschema_rules.torchlib.cpp_made import Made
from opschema_rules.torchlib.cpp_model import CppDefinition, CppOperators
from opschema_rules.torchlib.cpp_names import all_words_of, qualified, word, words_of
from opschema_rules.torchlib.cpp_openings import BLOCK, OPENS, opened_by
from opschema_rules.torchlib.cpp_problems import (
    fallback_problem,
    key_problem,
    kind_problem,
    namespace_problem,
    wildcard_problem,
)
from opschema_rules.torchlib.cpp_reader import read_facts
from opschema_rules.torchlib.cpp_schema_text import NOT_TEXT, OPERATOR, schema_text
from opschema_rules.torchlib.dispatch_keys import DISPATCH_KEYS, keys_of_tree
from opschema_rules.torchlib.gap import Gap
from opschema_rules.torchlib.model import CppProblem, CppRegistration, Definition, Registration


class _Library(msgspec.Struct, frozen=True):
    """The common part of a block's calls. ``fixed`` is the place for all of them if a macro stands for them."""

    namespace: str | None
    keys: Keys
    receiver: str
    path: str
    fixed: Span | None
    conditions: tuple[Condition, ...] = ()
    inside: tuple[str, ...] = ()
    cpp_namespace: str = ""
    stable: bool = False
    kind: str = ""

    def at(self, span: Span) -> Place:
        """The place of a span of the block's text."""
        return Place(self.path, self.fixed or span)


_MAX_HELPERS, _MAX_LIBRARIES = 8, 100


class Join:
    """The files of one tree together, with the macros visible in them."""

    def __init__(self, facts: dict[str, CppFacts], macros: FileMacros, unread: list[str]) -> None:
        self.facts = facts
        self.macros = macros
        self.build = build = macros.build
        self.found = CppOperators(unread=unread, targets=build.targets, target_of_both=build.target_of_both)
        self.helpers: dict[str, list[tuple[str, CppLibrary]]] = {}
        self.used: set[str] = set()
        self.libraries: dict[str, list[tuple[Place, tuple[Condition, ...]]]] = {}

    def operators(self) -> CppOperators:
        """Operators that they define and register."""
        for path, facts in self.facts.items():
            for library in facts.libraries:
                if not library.macro:
                    self.helpers.setdefault(library.arguments[0], []).append((path, library))
        for path, facts in self.facts.items():
            self._file(path, facts)
        for name in self.helpers.keys() - self.used:
            for path, library in self.helpers[name]:
                place = Place(path, library.span)
                self._gap(None, place, f"`{name}()` is called where it is not seen", all_words_of(library))
        self.found.gaps.sort(key=lambda gap: (gap.place.path, gap.place.span))
        return self.found

    def _file(self, path: str, facts: CppFacts) -> None:
        for library in facts.libraries:
            if library.macro and self._opens(path, library):
                self._library(path, library, None, library.conditions)
        for span in facts.lost:
            self._gap(None, Place(path, span), "this block is not understood")
        for call in facts.outside:
            kernel = runtime_kernel(path, call) if not is_dead(call.conditions) else None
            if kernel is not None:
                self.found.runtime_kernels.append(kernel)
                continue
            text = self.macros.expanded(path, call.text, call.span.start) if call.method in self.macros.of(path) else ""
            if text and USES.search(text):
                self._expanded_block(path, call, text)
            elif text and not is_dead(call.conditions):
                self.found.made.setdefault(path, []).append(Made(text, call.span, call.conditions))

    def _opens(self, path: str, library: CppLibrary) -> bool:
        """Whether a macro before a block opens one of registrations: by its name, or since the tree defines it so."""
        if BLOCK.fullmatch(library.macro) or library.macro == "torch::RegisterOperators":
            return True
        return library.macro in self.macros.of(path) and self._opened(path, library)[0] != ""

    def _expanded_block(self, path: str, call: CppCall, text: str) -> None:
        """Handle a macro that stands for entire blocks."""
        facts = _facts_of(text)
        for library in facts.libraries if facts is not None else ():
            self._library(path, library, call.span, call.conditions)
        if facts is None or not facts.libraries or facts.lost:
            self._gap(None, Place(path, call.span), f"what `{call.method}` expands to is not understood")

    # Blocks

    def _library(self, path: str, library: CppLibrary, fixed: Span | None, conditions: tuple[Condition, ...]) -> None:
        if is_dead(conditions):
            return
        context = self._context(path, library, fixed, conditions)
        self._block(context, library)

    def _block(self, context: _Library, library: CppLibrary) -> None:
        if library.broken or (context.namespace is None and library.macro != "torch::RegisterOperators"):
            reason = "something in this block is not understood" if library.broken else self._unknown_namespace(context)
            names = None if library.broken else words_of(library)
            self._gap(context.namespace, context.at(library.span), reason, names, defines=context.kind != "IMPL")
        if context.kind == "DEF" and context.namespace is not None:
            self._made_twice(context, context.at(library.span))
        for call in library.calls:
            self._call(context, call)

    def _unknown_namespace(self, context: _Library) -> str:
        build = self.build.unfollowed_call(context.path)
        return f"its namespace is not known: it is built by {build}" if build else "its namespace is not known"

    def _made_twice(self, context: _Library, place: Place) -> None:
        """The second library that defines a namespace, of one file or of two that are linked into one library."""
        before = self.libraries.setdefault(context.namespace or "", [])
        other = next((one for one, there in before if self._are_together(place, context.conditions, one, there)), None)
        if len(before) < _MAX_LIBRARIES:
            before.append((place, context.conditions))
        if other is not None:
            advice = "torch refuses another; write `TORCH_LIBRARY_FRAGMENT`"
            self._problem(place, f"`{context.namespace}` has its `TORCH_LIBRARY` already: {advice}", other)

    def _are_together(
        self, place: Place, here: tuple[Condition, ...], other: Place, there: tuple[Condition, ...]
    ) -> bool:
        if place.path == other.path:
            return not is_python(place.path) and not exclusive(there, here)
        return are_nested(here, there) and bool(self.build.target_of_both(place.path, other.path))

    def _context(
        self, path: str, library: CppLibrary, fixed: Span | None, conditions: tuple[Condition, ...]
    ) -> _Library:
        if library.macro == "torch::RegisterOperators":
            return _Library(None, frozenset(), "", path, fixed, conditions, cpp_namespace=library.namespace)
        macro, arguments = library.macro, library.arguments
        opens = OPENS.fullmatch(macro)
        if opens is None:
            macro, arguments = self._opened(path, library)
            opens = OPENS.fullmatch(macro)
        impl = opens is not None and bool(opens["impl"])
        if opens is None or len(arguments) != 2 + impl:
            return _Library(None, None, library.arguments[-1], path, fixed, conditions)
        namespace = self._namespace(path, macro, arguments[0], written=macro == library.macro)
        key = self._key(path, arguments[1]) if impl else ""
        keys = key_named(key) if impl else frozenset[str]()
        if impl and key not in self.macros.defined and key not in keys_of_tree(self.build.project):
            self._problem(Place(path, fixed or library.span), key_problem(key))
        stable = macro.startswith("STABLE_")
        kind = "IMPL" if impl else "FRAGMENT" if "FRAGMENT" in macro else "DEF"
        self._problem(Place(path, fixed or library.span), wildcard_problem(kind, arguments[0]))
        return _Library(
            namespace, keys, library.arguments[-1], path, fixed, conditions,
            cpp_namespace=library.namespace, stable=stable, kind=kind,
        )  # fmt: skip

    def _namespace(self, path: str, macro: str, word: str, *, written: bool) -> str | None:
        """The namespace of a block: ``TORCH_LIBRARY`` takes its word unexpanded where it is ``written``, other macros expand it."""
        takes_word = macro in ("TORCH_LIBRARY", "STABLE_TORCH_LIBRARY")
        text = word if takes_word else (self.macros.expanded(path, word) or "").strip()
        known = _NAME.fullmatch(text) and text != EXTENSION_NAME and (takes_word or text not in self.macros.defined)
        if known and text.isupper() and not (takes_word and written):  # it may be a macro of the build
            return self.build.namespace(path) or text
        return text if known else self.build.namespace(path)

    def _key(self, path: str, word: str) -> str:
        """The dispatch key of a block, which may be a macro."""
        return word if word in DISPATCH_KEYS else (self.macros.expanded(path, word) or word).strip()

    def _opened(self, path: str, library: CppLibrary) -> tuple[str, tuple[str, ...]]:
        """Return the torch macro that a macro of the tree stands for, with its arguments."""
        text = self.macros.expanded(path, f"{library.macro}({', '.join(library.arguments)})") or ""
        facts = _facts_of(text + " {}")
        found = [item for item in facts.libraries if item.arguments[-1:] == library.arguments[-1:]] if facts else []
        if len(found) == 1 and OPENS.fullmatch(found[0].macro):
            return found[0].macro, found[0].arguments
        return opened_by(text, library.arguments[-1])

    # Calls

    def _call(self, context: _Library, call: CppCall) -> None:
        if is_dead(call.conditions):
            return
        if call.text:
            self._raw(context, call)
        elif call.method in ("def", "op"):
            self._define(context, call)
        elif call.method == "impl":
            self._implement(context, call)
        elif call.method == "fallback":
            self._problem(context.at(call.span), fallback_problem(context.kind, context.namespace))

    def _raw(self, context: _Library, call: CppCall) -> None:
        """Handle a call that its own file does not explain: a macro, a function that gets the library, or one with macros in it."""
        helper = self._helper(context, call)
        calls = self._replaced(context, call) if helper is None else None
        if helper is not None:
            path, library = helper
            self.used.add(library.arguments[0])
            for inner in library.calls:
                own = bound_call(inner, call, library)
                within = self._within(context, call, path, library)
                within = within if own is inner else self._at(context, call, within)
                self._call(within, replace(own, branch=own.branch or call.branch))
        elif calls is not None:
            for inner in calls:
                if inner.text:
                    self.used.add(inner.method.rpartition("::")[2])
                    reason = f"`{inner.method}` is not understood here"
                    self._gap(context.namespace, context.at(call.span), reason, _named_by(inner))
                    continue
                known = CppCall(inner.method, inner.span, inner.arguments, call.conditions, call.branch)
                self._call(replace(context, fixed=context.fixed or call.span), known)
        elif call.method in ("def", "op") and call.arguments:
            self._define(context, call)
        elif (
            call.method in METHODS
            or call.method.isupper()
            or _is_given(call, context.receiver)
            or self.macros.may_register(context.path, call.method)
        ):
            reason = f"`{call.method}` is not understood here"
            self._gap(context.namespace, context.at(call.span), reason, defines=context.kind != "IMPL")

    def _helper(self, context: _Library, call: CppCall) -> tuple[str, CppLibrary] | None:
        """Return the function of the tree that gets the library."""
        found = self.helpers.get(call.method.rpartition("::")[2], [])
        nests = len(context.inside) >= _MAX_HELPERS or call.method in context.inside
        return found[0] if len(found) == 1 and not nests else None

    def _within(self, context: _Library, call: CppCall, path: str, library: CppLibrary) -> _Library:
        return replace(
            context,
            receiver=library.arguments[1],
            path=path,
            fixed=None,
            conditions=(*context.conditions, *call.conditions),
            inside=(*context.inside, call.method),
            cpp_namespace=library.namespace,
        )

    def _at(self, context: _Library, call: CppCall, within: _Library) -> _Library:
        return replace(context, fixed=context.fixed or call.span, conditions=within.conditions, inside=within.inside)

    def _replaced(self, context: _Library, call: CppCall) -> tuple[CppCall, ...] | None:
        """Return the calls that a call with macros stands for; None if they are not understood."""
        chained = call.method in METHODS and call.text.startswith(call.method)
        text = _DIRECTIVE.sub("", f"{context.receiver}.{call.text}" if chained else call.text)
        expanded = self.macros.expanded(context.path, text, (context.fixed or call.span).start)
        if expanded is None or expanded == text:
            return None
        calls = _calls_of(expanded, context.receiver)
        understood = bool(calls) or not expanded.strip(" ;")
        return calls if understood and all(not inner.text or _named_by(inner) for inner in calls) else None

    def _define(self, context: _Library, call: CppCall) -> None:
        first = call.arguments[0] if call.arguments else None
        text = first.literal if first is not None else None
        name, schema, parsed = (
            schema_text(text, first) if first is not None and text is not None else (None, NOT_TEXT, None)
        )
        where = context.at(call.span)
        if context.kind == "IMPL":
            self._problem(where, kind_problem())
        if name is not None:
            self._problem(where, namespace_problem(context.namespace, name))
        if first is None or name is None:
            self._gap(context.namespace, where, "the operator's name is not known")
            return
        written = context.at(first.span)
        functions = [item for item in call.arguments[1:] if not _TAGS.match(item.text)]
        tags = [item for item in call.arguments[1:] if _TAGS.match(item.text)]
        definition = Definition(
            "cpp",
            where,
            written,
            schema,
            explicit=text is not None and "(" in text.value,
            name_place=written,
            tags=frozenset(re.findall(r"Tag::(\w+)", " ".join(item.text for item in tags))),
            errors=parsed.errors if parsed is not None else (),
            conditional=call.branch,
            branch=call.branch,
        )
        title = qualified(context.namespace, name)
        conditions = _together(context, call)
        literal = text if context.fixed is None and not first.partial else None
        self.found.definitions.append(CppDefinition(title, definition, conditions, literal))
        if functions and title is not None:
            found = functions_of(functions, frozenset()) if call.method == "def" else options_of(functions)
            for keys, function in found:
                self._register(context, call, title, keys, function)

    def _implement(self, context: _Library, call: CppCall) -> None:
        text = call.arguments[0].literal if call.arguments else None
        known = text is not None and OPERATOR.fullmatch(text.value)
        name = qualified(context.namespace, text.value) if text is not None and known else None
        if text is not None and known:
            self._problem(context.at(call.span), namespace_problem(context.namespace, text.value))
        if name is None or len(call.arguments) < 2:
            namespace = context.namespace if text is None or "::" not in text.value else None
            names = frozenset({word(text.value)}) if text is not None and known else None
            self._gap(namespace, context.at(call.span), "the operator's name is not known", names, defines=False)
            return
        for keys, function in functions_of(call.arguments[1:], context.keys):
            self._register(context, call, name, keys, function)

    def _register(self, context: _Library, call: CppCall, name: str, keys: Keys, function: str) -> None:
        role = role_of(keys, function)
        place = context.at(call.span)
        registration = Registration(
            role, place, keys, conditional=call.branch, language="cpp", form=f"m.{call.method}", symbol=function
        )
        conditions = _together(context, call)
        self.found.registrations.append(
            CppRegistration(
                name, registration, conditions, function, context.path, context.cpp_namespace, context.stable
            )
        )

    def _problem(self, place: Place, message: str, other: Place | None = None) -> None:
        if message:
            self.found.problems.append(CppProblem(place, message, other))

    def _gap(
        self,
        namespace: str | None,
        place: Place,
        reason: str,
        names: frozenset[str] | None = None,
        *,
        defines: bool = True,
    ) -> None:
        self.found.gaps.append(Gap(place, reason, namespace, names, defines=defines))


_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\r\n])*", re.MULTILINE)
_TAGS = re.compile(r"(?:std::vector<[\w:]+>\s*)?\{|(?:(?:at|c10|torch)::)*Tag::")


def _together(context: _Library, call: CppCall) -> tuple[Condition, ...]:
    return tuple(dict.fromkeys((*context.conditions, *call.conditions)))


def _facts_of(text: str) -> CppFacts | None:
    from opschema_cli.source.cpp import CppError, parse_cpp

    try:
        return read_facts(parse_cpp(text))
    except CppError:
        return None


def _calls_of(text: str, receiver: str) -> tuple[CppCall, ...]:
    """Return the calls of a library in some statements; empty if they are not understood."""
    facts = _facts_of(f"TORCH_LIBRARY(_, {receiver}) {{ {text}; }}")
    if facts is None or len(facts.libraries) != 1 or facts.libraries[0].broken:
        return ()
    return facts.libraries[0].calls


_NAME = re.compile(r"[A-Za-z_]\w*")


def _named_by(call: CppCall) -> frozenset[str]:
    """Return the operators whose qualified names are arguments of a call, which registers for these."""
    given = [item.literal.value for item in call.arguments if item.literal is not None and not item.partial]
    return frozenset(word(text) for text in given if "::" in text and OPERATOR.fullmatch(text))


def _is_given(call: CppCall, receiver: str) -> bool:
    return any(item.text.lstrip("&*") == receiver for item in call.arguments)
