"""Expands the macros of a short C++ text, as the preprocessor does."""

from __future__ import annotations

import re
from collections.abc import Mapping

from opschema_cli.source.cpp_text import parts
from opschema_cli.source.preprocessor import CONTINUED, Macro

MAX_TOKENS = 50_000
"""Maximum number of tokens during an expansion."""

MAX_NESTING = 40
"""Maximum nesting of macros."""

_TOKEN = re.compile(r"[A-Za-z_]\w*|\.?\d(?:'?[\w.])*|\#\#|\s+|[\s\S]")
"""A token of code, other than comments and literals."""


class ExpansionError(ValueError):
    """Raised if macros expand to too much text, or get the wrong number of arguments."""


def expand(text: str, macros: Mapping[str, Macro]) -> str:
    """Return a short text with its macros expanded, as the preprocessor does; a name that is not a macro stays.

    Raises:
        ExpansionError: see there.
    """
    return "".join(_Expander(macros).run(_pieces(text), frozenset(), 0))


def _pieces(text: str) -> list[str]:
    """Return the tokens of a text, with one space in place of spaces and comments."""
    text = CONTINUED.sub("", text)
    found: list[str] = []
    at = 0
    for kind, start, end in parts(text):
        if kind != "directive":  # the `#` that makes a string of an argument may stand first
            found += _TOKEN.findall(text, at, start)
            found.append(" " if kind == "comment" else text[start:end])
            at = end
    found += _TOKEN.findall(text, at)
    return [" " if item.isspace() else item for item in found]


class _Expander:
    def __init__(self, macros: Mapping[str, Macro]) -> None:
        self.macros = macros
        self.left = MAX_TOKENS

    def run(self, tokens: list[str], hidden: frozenset[str], depth: int) -> list[str]:
        self._pay(len(tokens) if depth <= MAX_NESTING else MAX_TOKENS)
        found: list[str] = []
        at = 0
        while at < len(tokens):
            macro = self.macros.get(tokens[at]) if tokens[at] not in hidden else None
            arguments, after = _arguments(tokens, at + 1) if macro is not None else (None, 0)
            if macro is not None and arguments is None and after < len(tokens) and tokens[after] == "(":
                self._pay(len(tokens))  # it is not closed, so the search was in vain
            if macro is None or (macro.parameters is not None and arguments is None):
                found.append(tokens[at])
                at += 1
                continue
            inside = hidden | {macro.name}
            if macro.parameters is None:
                body, at = _pieces(macro.body), at + 1
            else:
                body, at = self._substituted(macro, arguments or [], hidden, depth), after
            expanded = self.run(body, inside, depth + 1)
            if expanded and expanded[-1] not in inside and self._is_called(expanded[-1], tokens, at):
                self._pay(len(tokens))
                tokens, at = [expanded.pop(), *tokens[at:]], 0
            found += expanded
        return found

    def _is_called(self, name: str, tokens: list[str], at: int) -> bool:
        """Whether the name at the end of an expansion is a macro that the following text calls."""
        macro = self.macros.get(name)
        return macro is not None and macro.parameters is not None and _arguments(tokens, at)[0] is not None

    def _pay(self, tokens: int) -> None:
        self.left -= tokens
        if self.left < 0:
            raise ExpansionError("its macros expand to too much")

    def _substituted(self, macro: Macro, arguments: list[list[str]], hidden: frozenset[str], depth: int) -> list[str]:
        given = _bound(macro, arguments)
        body = _pieces(macro.body)
        found: list[str] = []
        at = 0
        while at < len(body):
            token = body[at]
            following = next((index for index in range(at + 1, len(body)) if body[index] != " "), len(body))
            name = body[following] if following < len(body) else ""
            if token == "#" and name in given:
                found.append(_quoted(given[name]))
                at = following
            elif token == "##" and name:
                while found and found[-1] == " ":
                    found.pop()
                joined = given.get(name, [name])
                found[-1:] = _pieces("".join([*found[-1:], *joined]))
                at = following
            elif token in given:
                found += given[token] if name == "##" else self.run(given[token], hidden, depth + 1)
            else:
                found.append(token)
            at += 1
        return found


def _arguments(tokens: list[str], at: int) -> tuple[list[list[str]] | None, int]:
    """Return the arguments of a macro in the following parentheses, and the place after them; None if there are none."""
    while at < len(tokens) and tokens[at] == " ":
        at += 1
    if at >= len(tokens) or tokens[at] != "(":
        return None, at
    found: list[list[str]] = [[]]
    depth = 0
    for index in range(at, len(tokens)):
        token = tokens[index]
        depth += (token in "([{") - (token in ")]}") if len(token) == 1 else 0
        if depth == 0:
            return found, index + 1
        if token == "," and depth == 1:
            found.append([])
        elif index > at:
            found[-1].append(token)
    return None, at


def _bound(macro: Macro, arguments: list[list[str]]) -> dict[str, list[str]]:
    parameters = list(macro.parameters or ())
    if parameters and parameters[-1].endswith("..."):
        name = parameters.pop().removesuffix("...").strip() or "__VA_ARGS__"
        rest = arguments[len(parameters) :]
        arguments = arguments[: len(parameters)]
        variadic = {name: [token for index, item in enumerate(rest) for token in ([","] * (index > 0) + item)]}
    else:
        variadic = {}
    if not parameters and arguments == [[]]:
        arguments = []
    if len(arguments) != len(parameters):
        raise ExpansionError(f"`{macro.name}` takes {len(parameters)} arguments and is given {len(arguments)}")
    return {**{name: _stripped(item) for name, item in zip(parameters, arguments, strict=True)}, **variadic}


def _stripped(tokens: list[str]) -> list[str]:
    return _pieces("".join(tokens).strip())


def _quoted(tokens: list[str]) -> str:
    text = "".join(tokens).strip()
    return '"' + re.sub(r"""\\(?=[^"]*")|\"""", lambda match: "\\" + match.group(), text) + '"'
