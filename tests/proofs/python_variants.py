"""Python files that mean the same as given ones and are written otherwise, and such with other constants."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from opschema_cli.proof import Files

_HEAD = re.compile(r"^( *)def (\w+)\(([^()\n]+)\)( -> [^\n]*)?:$", re.MULTILINE)
_NUMBER = re.compile(r"(?<=[=\s(])(\d+\.\d+|\d+e-\d+)(?=[,)\s])")


def python_variants(files: Files) -> Iterator[Files]:
    """Each way of writing, for all Python files at once, where it changes something."""
    for change in (_one_a_line, _trailing_comma, _other_floats, _other_names):
        changed = {path: change(text) if path.endswith(".py") else text for path, text in files.items()}
        if changed != files:
            yield changed


def _heads(text: str, write: Callable[[str, list[str]], str]) -> str:
    """The text with parameter lists written anew, from their indentation and parts."""
    return _HEAD.sub(
        lambda match: f"{match[1]}def {match[2]}({write(match[1], _split(match[3]))}){match[4] or ''}:", text
    )


def _split(parameters: str) -> list[str]:
    """The parameters, without taking the commas of ``Dict[str, int]`` for their ends."""
    return [part.strip() for part in re.split(r",(?![^\[]*\])", parameters) if part.strip()]


def _one_a_line(text: str) -> str:
    def write(indent: str, parts: list[str]) -> str:
        lines = "".join(f"\n{indent}    {part},  # the argument {number}" for number, part in enumerate(parts, 1))
        return f"{lines}\n{indent}"

    return _heads(text, write)


def _trailing_comma(text: str) -> str:
    return _heads(text, lambda indent, parts: " , ".join(parts) + ",")


def _other_floats(text: str) -> str:
    return _NUMBER.sub("0.375", text)


def _other_names(text: str) -> str:
    """Arguments under longer names, in which none of the old is a word."""
    return re.sub(r"\b(factor|size|window|rows|eps)\b", r"the_\1_", text)
