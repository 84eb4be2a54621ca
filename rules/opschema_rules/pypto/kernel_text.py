"""The text of a kernel's C++ file: its functions without comments, strings and directives, and the core that each part is for.

Kernels are generated in thousands of lines, of which few concern their arguments. So they are not parsed as a tree: functions
are cut out when they are asked for, and a statement is only looked at if it names what is followed.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

import msgspec

from opschema_cli.source.cpp_text import parts
from opschema_cli.source.preprocessor import Condition, Directives, is_dead, read_directives
from opschema_cli.source.text import blanked
from opschema_rules.pypto.kernel_facts import Core
from opschema_rules.pypto.kernel_operations import ATOMIC, ATOMIC_MODE

_BRACKET = re.compile(r"[(){};]")
_DIRECTIVE = re.compile(r"\n[ \t]*\#[ \t]*(?:if|el|endif)(?:\\\r?\n|[^\n])*")
_CONSTANT = re.compile(r"\n[ \t]*\#[ \t]*(?:el)?if[ \t]+(?:[01]|true|false)\b")
_CORE_CONSTANT = re.compile(r"constexpr\s+bool\s+(\w+)\s*=\s*(true|false)\b")
_NAMES_CUBE, _NAMES_VECTOR = re.compile(r"defined\(\w*CUBE\w*\)"), re.compile(r"defined\(\w*VEC\w*\)")
_IS_NUMBER = re.compile(r"\s*=\s*(\d+)\s*[;,}]")
_CHANGES = re.compile(r"\s*(?:[-+*/|&^]?=(?!=)|\+\+|--)")
_TYPE = re.compile(r"(?:struct|class|union)\s+(\w+)\s*(?:final\s*)?[:{]")
_USING = re.compile(r"using\s+(\w+)\s*=([^;]*);")
_UNION = re.compile(r"\bunion\b[^{};]{0,100}\{[^{}]*\*")
_WORD = re.compile(r"\b[A-Za-z_]\w*")
_TYPEDEF = re.compile(r"\btypedef\s+([^;{}()]{1,200}[\s*&])(\w+)\s*;")
_OPENS = re.compile(r"\s{0,40}\(")
_QUALIFIERS = re.compile(r"\s*(?:(?:const|noexcept)\b\s*|__attribute__\s*|->[^;{}]*)*\Z")

_ROUND = re.compile(r"[()]")
_STATEMENT = re.compile(r"[;{}?]|&&|\|\||\b(?:if|else|for|while|do|return|break|continue|goto)\b")

MAX_HEAD = 5_000
"""Maximum number of characters of a loop header."""

MAX_MENTIONS = 200
"""Maximum number of mentions of a function among which to search for its definition."""

MAX_PLACES = 2_000
"""Maximum number of places of a name to examine."""

MAX_SEARCHES = 1_000
"""Maximum number of functions of a file to search for."""

DEAD = "dead"
"""In place of a core: code that is never compiled."""


class Function(msgspec.Struct, frozen=True):
    """A function with a body. Both texts have spaces in place of anything but code; the numbers are their offsets in the file."""

    file: KernelText
    name: str
    parameters: str
    parameters_at: int
    body: str
    body_at: int

    @property
    def core(self) -> str:
        """The core for which it is compiled."""
        return self.file.core(self.body_at)


class KernelText(msgspec.Struct, frozen=True, dict=True):
    """A file's text."""

    text: str

    def core(self, offset: int) -> str:
        """Return the core for which a character is compiled."""
        starts, cores = self._cores
        return cores[bisect.bisect_right(starts, offset) - 1]

    @cached_property
    def _cores(self) -> tuple[list[int], list[str]]:
        """The offsets from which on code is for a core, and these cores."""
        if "CUBE" not in self.text and "VEC" not in self.text and _CONSTANT.search(self.text) is None:
            return [0], [""]
        ends: dict[int, int] = {}
        lines: list[str] = []
        at = 0
        for match in _DIRECTIVE.finditer("\n" + self.text):
            lines.append(match[0].lstrip("\n"))
            at += len(lines[-1])
            ends[at] = match.end() - 1
            at += 1
        directives = read_directives("\n".join(lines))
        starts, cores = [0], [""]
        for start in directives.starts[1:]:
            conditions = directives.conditions(start)
            starts.append(ends.get(start, starts[-1]))
            cores.append(DEAD if is_dead(conditions) else _core(conditions))
        return starts, cores

    def conditions(self, offset: int) -> tuple[Condition, ...]:
        """Return the conditions under which a character is compiled."""
        return self._directives.conditions(offset) if self._has_conditions else ()

    def is_conditional(self, offset: int) -> bool:
        """Whether a character is compiled under a condition other than that of a core."""
        return not all(map(is_of_core, self.conditions(offset)))

    @cached_property
    def _has_conditions(self) -> bool:
        return _DIRECTIVE.search("\n" + self.text) is not None

    @cached_property
    def _directives(self) -> Directives:
        return read_directives(self.text)

    @cached_property
    def core_constants(self) -> dict[str, Core]:
        """Constants that are true on one core only."""
        found: dict[str, Core] = {}
        for match in _CORE_CONSTANT.finditer(self.text) if "constexpr bool" in self.text else ():
            core = self.core(match.start())
            if core in ("aic", "aiv"):
                found[match[1]] = one_core(core if match[2] == "true" else other_core(core))
        return found

    def functions(self, name: str) -> list[Function]:
        """Return the definitions of a function, without those that are never compiled."""
        known: dict[str, list[Function]] = self._functions
        if name not in known:
            mentions = islice(self.mentions(name) if len(known) < MAX_SEARCHES else (), MAX_MENTIONS)
            found = [self._function(name, at) for at in mentions]
            known[name] = [function for function in found if function is not None]
        return known[name]

    @cached_property
    def _scanned(self) -> list[int]:
        """The numbers of characters searched for brackets so far; a text is searched at most about twenty times."""
        return [0]

    @cached_property
    def _functions(self) -> dict[str, list[Function]]:
        return {}

    def _function(self, name: str, at: int) -> Function | None:
        """Return the definition whose name is at a place; None if the place is another mention."""
        opened = _OPENS.match(self.text, at + len(name))
        if opened is None or self.core(at) == DEAD:
            return None
        first = opened.end() - 1
        close = self._closing(first) if self._code[first] == "(" else -1
        body = self._next(close, "{") if close >= 0 else -1
        end = self._closing(body) if body >= 0 and self._leads_to_body(close + 1, body) else -1
        if end < 0:
            return None
        parameters, inner = self._code[first + 1 : close], self._code[body + 1 : end]
        return Function(self, name, parameters, first + 1, inner, body + 1)

    @cached_property
    def _code(self) -> str:
        return blank(self.text)

    def _closing(self, opened: int) -> int:
        """Return the bracket that closes another one, ignoring comments and directives; -1 if there is none."""
        depth, end = 0, len(self.text)
        if self._scanned[0] > 20 * end + 1_000_000:
            return -1
        for match in _BRACKET.finditer(self._code, opened):
            if match[0] in ("(", "{"):
                depth += 1
            elif match[0] in (")", "}"):
                depth -= 1
                if depth <= 0:
                    end = match.start()
                    break
        self._scanned[0] += end - opened
        return end if end < len(self.text) else -1

    def _next(self, start: int, wanted: str) -> int:
        """Return the next bracket outside of any other, if it is the wanted one; -1 if a statement ends before it."""
        depth = 0
        for match in _BRACKET.finditer(self._code, start + 1):
            if match[0] == wanted and depth == 0:
                return match.start()
            if match[0] in (";", "{", "}") and depth == 0:
                return -1
            depth += (match[0] == "(") - (match[0] == ")")
            if depth < 0:
                return -1
        return -1

    def _leads_to_body(self, start: int, end: int) -> bool:
        text = re.sub(r"\(\(.*?\)\)|\([^()]*\)", " ", self._code[start:end])
        return _QUALIFIERS.match(text) is not None

    def mentions(self, name: str) -> Iterator[int]:
        """Yield the places of an identifier in code."""
        at, left = self.text.find(name), MAX_PLACES
        while at >= 0 and left:
            end, left = at + len(name), left - 1
            sides = self.text[max(0, at - 1) : at] + self.text[end : end + 1]
            if not any(side.isalnum() or side == "_" for side in sides) and not self._is_comment(at):
                yield at
            at = self.text.find(name, end)

    def _is_comment(self, at: int) -> bool:
        line = self.text.rfind("\n", 0, at) + 1
        if self.text.find("//", line, at) >= 0:
            return True
        opened = self.text.rfind("/*", 0, at)
        return opened >= 0 and self.text.find("*/", opened + 2, at) < 0

    def constant(self, name: str) -> int | None:
        """Return the number that a name refers to everywhere; None if it is not known."""
        if name not in self._constants:
            self._constants[name] = self._constant(name)
        return self._constants[name]

    def _constant(self, name: str) -> int | None:
        values = set[int]()
        for at in self.mentions(name):
            match = _IS_NUMBER.match(self.text, at + len(name))
            if match is not None:
                values.add(int(match[1]))
            elif _CHANGES.match(self.text, at + len(name)) or self.text[max(0, at - 20) : at].rstrip()[-2:] in (
                "++",
                "--",
            ):
                return None
        return values.pop() if len(values) == 1 else None

    @cached_property
    def _constants(self) -> dict[str, int | None]:
        return {}

    @cached_property
    def macros(self) -> dict[str, set[str]]:
        """The words in the bodies of macros, without parameters; macros without any words are left out."""
        found: dict[str, set[str]] = {}
        for macro in self._directives.macros if "define" in self.text else ():
            words = set(_WORD.findall(macro.body)).difference(_WORD.findall(" ".join(macro.parameters or ())))
            if words:
                found.setdefault(macro.name, set()).update(words)
        return found

    @cached_property
    def code_macros(self) -> frozenset[str]:
        """The macros that may be statements or conditions: those with parameters, and those that are not just an expression."""
        macros = self._directives.macros if "define" in self.text else ()
        return frozenset(item.name for item in macros if item.parameters is not None or _STATEMENT.search(item.body))

    def words_of(self, macro: str) -> set[str]:
        """Return the words in the body of a macro and of the macros that it uses."""
        if macro not in self._words:
            found, waiting = set[str](), [macro]
            while waiting:
                new = self.macros.get(waiting.pop(), set()) - found
                found |= new
                waiting += new
            self._words[macro] = found
        return self._words[macro]

    @cached_property
    def _words(self) -> dict[str, set[str]]:
        return {}

    @cached_property
    def types(self) -> frozenset[str]:
        """The classes that the file defines."""
        has_any = any(word in self.text for word in ("struct", "class", "union"))
        return frozenset(_TYPE.findall(self.text) if has_any else ())

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Names of types introduced by ``using`` and ``typedef``, with the types."""
        found = {match[1]: match[2] for match in _USING.finditer(self.text)}
        found.update({match[2]: match[1] for match in (_TYPEDEF.finditer(self.text) if "typedef" in self.text else ())})
        return found

    @cached_property
    def has_pointers_in_unions(self) -> bool:
        """Whether a number may become a pointer in a union."""
        return "union" in self.text and _UNION.search(self._code) is not None

    @cached_property
    def has_atomics(self) -> bool:
        """Whether stores may be atomic, and so read the value that they add to."""
        return self._has(ATOMIC)

    @cached_property
    def has_atomic_mode(self) -> bool:
        """Whether all stores may be atomic, by a mode that is set before."""
        return self._has(ATOMIC_MODE)

    def _has(self, words: re.Pattern[str]) -> bool:
        found = words.finditer(self.text) if "tomic" in self.text else ()
        return any(not self._is_comment(match.start()) for match in found)


def blank(text: str) -> str:
    """Return a text with spaces in place of comments and directives, and 0 for literals."""
    pieces: list[str] = []
    at = 0
    for kind, start, end in parts(text):
        if start >= at:
            spaces = blanked(text[start:end], [(0, end - start)])
            pieces += (text[at:start], f"0{spaces[1:]}" if kind == "literal" else spaces)
            at = end
    return "".join((*pieces, text[at:]))


def matching(text: str, start: int) -> int:
    """Return the closing parenthesis for the one at ``start`` of a text without comments; -1 if there is none."""
    depth = 0
    for match in _ROUND.finditer(text, start, start + MAX_HEAD):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return match.start()
    return -1


def is_of_core(condition: Condition) -> bool:
    """Whether a condition of a directive only asks for which core code is compiled."""
    return any(pattern.fullmatch(condition.text) is not None for pattern in (_NAMES_CUBE, _NAMES_VECTOR))


def other_core(core: str) -> str:
    """Return the other of the two cores."""
    return {"aic": "aiv", "aiv": "aic"}.get(core, core)


def one_core(core: str) -> Core:
    """Return a core, or none."""
    return "aic" if core == "aic" else "aiv" if core == "aiv" else ""


def both(one: str, other: str) -> str:
    """Return the core for which code with two conditions is compiled."""
    if not one or not other or one == other:
        return one or other
    return DEAD


def _core(conditions: tuple[Condition, ...]) -> str:
    core = ""
    for condition in conditions:
        for pattern, named in ((_NAMES_CUBE, "aic"), (_NAMES_VECTOR, "aiv")):
            if pattern.fullmatch(condition.text):
                core = both(core, named if condition.holds else other_core(named))
    return core
