"""Parses the commands of a CMake file, with the bodies of functions, macros and loops, in linear time for any text."""

from __future__ import annotations

import re

import msgspec

_TOKEN = re.compile(
    r"""(?P<skipped>\#\[(?P<c>=*)\[[\s\S]*?(?:\](?P=c)\]|\Z)|\#.*|\s+)"""
    r"""|(?P<bracket>\[(?P<b>=*)\[[\s\S]*?(?:\](?P=b)\]|\Z))"""
    r"""|(?P<quoted>"(?:[^"\\]|\\[\s\S])*"?)|(?P<parenthesis>[()])|(?P<plain>(?:[^\s()\#"\\]|\\[\s\S])+)|[\s\S]"""
)
_NAME = re.compile(r"[A-Za-z_]\w*")
NESTING = frozenset({"function", "macro", "foreach"})
"""Commands whose bodies are read where they run."""

MAX_NESTED = 100
"""Maximum nesting of bodies to read."""


class Command(msgspec.Struct, frozen=True):
    """A command in lower case, its words and its place; a function, macro or loop also has a body."""

    name: str
    words: tuple[str, ...]
    start: int
    body: tuple[Command, ...] = ()


def read_commands(text: str) -> tuple[Command, ...]:
    """Parse the commands of a CMake file."""
    bodies: list[list[Command]] = [[]]
    heads: list[Command] = []
    for command in _flat(text):
        if command.name in NESTING and len(heads) < MAX_NESTED:
            heads.append(command)
            bodies.append([])
        elif heads and command.name == f"end{heads[-1].name}":
            _close(heads, bodies)
        else:
            bodies[-1].append(command)
    while heads:
        _close(heads, bodies)
    return tuple(bodies[0])


def _close(heads: list[Command], bodies: list[list[Command]]) -> None:
    head, body = heads.pop(), bodies.pop()
    bodies[-1].append(Command(head.name, head.words, head.start, tuple(body)))


def _flat(text: str) -> list[Command]:
    found: list[Command] = []
    name, start, depth, after = "", 0, 0, False
    words: list[str] = []
    for token in _TOKEN.finditer(text):
        part = token[0]
        if token["skipped"] is not None:
            after = False
        elif not depth:
            if part == "(" and name:
                depth, words, after = 1, [], False
            else:
                name, start = (part.lower(), token.start()) if _NAME.fullmatch(part) else ("", 0)
        elif token["parenthesis"] is not None:
            depth += 1 if part == "(" else -1
            if depth:
                words.append(part)
            else:
                found.append(Command(name, tuple(words), start))
                name = ""
            after = False
        else:
            word = _content(token)
            if after:
                words[-1] += part
            else:
                words.append(word)
            after = True
    return found


def _content(token: re.Match[str]) -> str:
    if token["bracket"] is not None:
        width = len(token["b"]) + 2
        return token[0][width:-width]
    return token[0].strip('"') if token["quoted"] is not None else token[0]
