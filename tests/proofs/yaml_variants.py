"""YAML that says the same in another form: a fix has to hold for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

import yaml

from opschema_cli.proof import Files

_LINE = re.compile(r"^(?P<lead> *(?:- +)?[\w.]+: +)(?P<value>[^\s\[{\"'|>&*#][^#\n]*?)$", re.M)


Form: TypeAlias = Callable[[str], str]


def forms(files: Files, chosen: Iterable[Form]) -> Iterator[dict[str, str]]:
    """Each file's YAML in each form, all files at once; a form that changes what is said is left out."""
    for form in chosen:
        changed = {path: form(text) if _is_yaml(path) else text for path, text in files.items()}
        if changed != files and all(_says(changed[path]) == _says(text) for path, text in _parsed(files)):
            yield changed


def _is_yaml(path: str) -> bool:
    return path.endswith((".yaml", ".yml"))


def _parsed(files: Files) -> Iterator[tuple[str, str]]:
    return ((path, text) for path, text in files.items() if _is_yaml(path))


def _says(text: str) -> object:
    """The nodes of a text, with repeated keys."""
    return _plain(yaml.compose(text, Loader=yaml.CSafeLoader))


def _plain(node: yaml.Node | None) -> object:
    if isinstance(node, yaml.MappingNode):
        return [(_plain(key), _plain(value)) for key, value in node.value]
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    return None if node is None else (node.tag, node.value)


def comments(text: str) -> str:
    """A comment behind each plain value, and one before each entry."""
    text = _LINE.sub(lambda found: f"{found['lead']}{found['value']}  # a note", text)
    return re.sub(r"^- ", "# about it\n- ", text, flags=re.M)


def single_quotes(text: str) -> str:
    """Text that stands plain in quotes."""
    return _LINE.sub(lambda found: _quoted(found, "'"), text)


def double_quotes(text: str) -> str:
    """The same in the other quotes."""
    return _LINE.sub(lambda found: _quoted(found, '"'), text)


def _quoted(found: re.Match[str], mark: str) -> str:
    value = found["value"]
    if mark in value or "\\" in value:
        return found[0]
    return f"{found['lead']}{mark}{value}{mark}"


def flow(text: str) -> str:
    """Each entry in braces."""
    if not re.search(r"^- ", text, re.M):
        return text
    lines = [_in_braces(entry) for entry in re.split(r"^(?=- )", text, flags=re.M) if entry.strip()]
    return "".join(lines)


def _in_braces(entry: str) -> str:
    node = yaml.compose(entry, Loader=yaml.CSafeLoader)
    if not isinstance(node, yaml.SequenceNode):
        return entry
    return f"- {_flow(node.value[0], entry)}\n"


def _flow(item: yaml.Node, text: str) -> str:
    if isinstance(item, yaml.MappingNode):
        return "{" + ", ".join(f"{_flow(key, text)}: {_flow(value, text)}" for key, value in item.value) + "}"
    if isinstance(item, yaml.SequenceNode):
        return "[" + ", ".join(_flow(part, text) for part in item.value) + "]"
    raw = text[item.start_mark.index : item.end_mark.index].strip()
    if item.style in ("'", '"') or not re.search(r"[][,{}:#!&*?|>'\"]", raw):
        return raw
    return "'" + item.value.replace("'", "''") + "'"


def deeper(text: str) -> str:
    """A list at the top that is indented."""
    return re.sub(r"^(?=.)", "  ", text, flags=re.M) if text.lstrip().startswith("- ") else text


def no_last_line_end(text: str) -> str:
    """A last line without its end."""
    return text.rstrip("\n")


def blank_lines(text: str) -> str:
    """An empty line behind each."""
    return text.replace("\n", "\n\n") if "|" not in text else text


def document(text: str) -> str:
    """The marks of a document."""
    return f"---\n{text}" + ("" if text.endswith("\n") else "\n") + "...\n"


FORMS: tuple[Form, ...] = (
    comments,
    single_quotes,
    double_quotes,
    flow,
    deeper,
    no_last_line_end,
    blank_lines,
    document,
)


def with_entries(files: Mapping[str, str], path: str, after: str) -> dict[str, str]:
    """The files with more entries at the end of one, so that its last entry is not the file's."""
    return {**files, path: files[path].rstrip("\n") + "\n\n" + after}
