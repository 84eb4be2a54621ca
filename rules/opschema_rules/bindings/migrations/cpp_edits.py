"""Edits of C++ whose bindings become operators: remove the bindings, add blocks that define and register the operators."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from opschema_cli.cpp_units import CppUnits
from opschema_cli.file_kinds import is_cpp
from opschema_cli.migrate.draft import Draft
from opschema_cli.source.preprocessor import Condition
from opschema_cli.source.text import Edit, Span, blanked
from opschema_rules.bindings.migrations.derived import DerivedOperator
from opschema_rules.bindings.model import Alias

_INCLUDES = re.compile(rb"#\s*include\s*[<\"]torch/(?:extension|library|all|torch)\.h[>\"]")
_EMPTY = re.compile(
    r"(?m)^[ \t]*#[ \t]*if[^\n]*\n(?:[ \t\r]*\n|[ \t]*#[ \t]*el(?:se|if)[^\n]*\n)*[ \t]*#[ \t]*endif[^\n]*\n"
)


def rewrite_cpp(draft: Draft, operators: Sequence[DerivedOperator], aliases: Iterable[Alias], namespace: str) -> None:
    """Remove the bindings and aliases, and put the definitions after their blocks."""
    opened = re.compile(rf"\bTORCH_LIBRARY\(\s*{namespace}\s*,".encode())
    is_open = any(
        opened.search(draft.project.workspace.peek(path)) for path in draft.project.workspace.files if is_cpp(path)
    )
    units = CppUnits(draft.project)
    gone: dict[str, list[Span]] = {}
    for step, path in [(item.binding.step, item.binding.path) for item in operators] + [
        (item.step, item.path) for item in aliases
    ]:
        gone.setdefault(path, []).append(step.call)
    blocks: dict[tuple[str, int], list[DerivedOperator]] = {}
    for item in operators:
        if item.binding.block is not None:
            blocks.setdefault((item.binding.path, item.binding.block.end), []).append(item)
    texts = {path: draft.text(path) for path in gone}
    comments = {path: _own_comments(texts[path], spans) for path, spans in gone.items()}
    behind = {path: _comments_behind(texts[path], spans) for path, spans in gone.items()}
    for path, spans in gone.items():
        ends = {at: span.end for at, span in behind[path].items()}
        draft.edit(path, _removals(texts[path], spans, comments[path].values(), ends))
    for (path, end), items in blocks.items():
        main = path == items[0].binding.module.root.path and not is_open
        macro = "TORCH_LIBRARY" if main else "TORCH_LIBRARY_FRAGMENT"
        is_open = is_open or main
        around = [
            {at: texts[path][span.start : span.end] for at, span in of[path].items()} for of in (comments, behind)
        ]
        draft.edit(path, [Edit(Span(end, end), _definitions(items, namespace, macro, *around))])
        if not any(_INCLUDES.search(draft.project.workspace.peek(item)) for item in units.files(path)):
            first = re.search(r"(?m)^[ \t]*#[ \t]*include", texts[path])
            at = first.start() if first is not None else 0
            draft.edit(path, [Edit(Span(at, at), "#include <torch/library.h>\n")])


_STAYS = re.compile(r"[ \t]*(?![ \t]|//|[}#\r\n]|\Z)")


def _own_comments(text: str, calls: Sequence[Span]) -> dict[int, Span]:
    """The lines of comments right above calls that are removed, by the start of these; but not if a statement below stays, which
    they may be about as well.
    """
    starts = {text.rfind("\n", 0, call.start) + 1 for call in calls}
    found: dict[int, Span] = {}
    for call in calls:
        line = top = text.rfind("\n", 0, call.start) + 1
        while top and text[(above := text.rfind("\n", 0, top - 1) + 1) : top].lstrip().startswith("//"):
            top = above
        below = text.find("\n", text.find(";", call.end)) + 1
        if top < line and not text[line : call.start].strip() and (below in starts or not _STAYS.match(text, below)):
            found[call.start] = Span(top, line)
    return found


_BEHIND = re.compile(r"[ \t]*(?://[^\r\n]*[^\\\r\n]|/\*[^\r\n]*?\*/)[ \t]*(?=[\r\n]|\Z)")


def _comments_behind(text: str, calls: Sequence[Span]) -> dict[int, Span]:
    """The comments at the ends of lines on which nothing but calls that are removed begins, by the start of the last call."""
    found: dict[int, Span] = {}
    end, alone = 0, False
    for call in sorted(calls):
        line = text.rfind("\n", 0, call.start) + 1
        alone = not text[max(line, end if alone else line) : call.start].strip()
        end = text.find(";", call.end) + 1
        comment = _BEHIND.match(text, end)
        if alone and comment is not None:
            found[call.start] = Span(*comment.span())
    return found


def _removals(text: str, calls: Sequence[Span], comments: Collection[Span], ends: Mapping[int, int]) -> Iterator[Edit]:
    """Remove statements, with their lines if these become empty, their comments, and conditions that then enclose nothing.

    ``ends`` are the ends of the comments behind calls, by the starts of these.
    """
    spans: list[Span] = []
    for call in sorted(calls, key=lambda item: item.start):
        end = ends.get(call.start) or text.find(";", call.end) + 1
        if spans and not text[spans[-1].end : call.start].strip(" \t"):
            spans[-1] = Span(spans[-1].start, end)
        else:
            spans.append(Span(call.start, end))
    empty = [
        Span(*item.span())
        for item in _EMPTY.finditer(blanked(text, sorted([*spans, *comments])))
        if any(item.start() < at < item.end() for at, _ in spans)
    ]
    yield from (Edit(item, "") for item in empty)
    for start, end in spans:
        if not any(item.start <= start < item.end for item in empty):
            yield _removal(text, start, end)
    yield from (Edit(span, "") for span in comments if not any(item.start <= span.start < item.end for item in empty))


def _removal(text: str, start: int, end: int) -> Edit:
    line = text.rfind("\n", 0, start) + 1
    after = text.find("\n", end)
    ends_line = after >= 0 and not text[end:after].strip()
    if ends_line and not text[line:start].strip():
        return Edit(Span(line, after + 1), "")
    if ends_line:
        return Edit(Span(len(text[:start].rstrip(" \t")), after), "")
    return Edit(Span(start, end + len(text[end:]) - len(text[end:].lstrip(" \t"))), "")


def _definitions(
    items: Sequence[DerivedOperator], namespace: str, macro: str, above: Mapping[int, str], behind: Mapping[int, str]
) -> str:
    """The blocks, with comments above and behind the definitions of the bindings that begin at some places."""
    lines = ["", "", f"{macro}({namespace}, m) {{"]
    lines += _under_conditions((item, _definition(item, above, behind)) for item in items)
    lines.append("}")
    for key in dict.fromkeys(item.key for item in items):
        lines += ["", f"TORCH_LIBRARY_IMPL({namespace}, {key}, m) {{"]
        own = [item for item in items if item.key == key]
        lines += _under_conditions((item, f'  m.impl("{item.full}", {item.function});') for item in own)
        lines.append("}")
    return "\n".join(lines)


def _definition(item: DerivedOperator, above: Mapping[int, str], behind: Mapping[int, str]) -> str:
    at = item.binding.step.call.start
    lines = [line.strip() for line in above.get(at, "").splitlines()]
    comment = behind.get(at, "").strip()
    lines.append(f'm.def("{_escaped(item.schema)}");' + f"  {comment}" * bool(comment))
    return "\n".join(f"  {line}" for line in lines)


def _under_conditions(lines: Iterable[tuple[DerivedOperator, str]]) -> Iterator[str]:
    """The lines, with the conditions of the bindings around them."""
    current = ""
    for item, line in lines:
        condition = _condition(item)
        if condition != current:
            yield from ["#endif"] if current else []
            yield from [condition] if condition else []
            current = condition
        yield line
    if current:
        yield "#endif"


def _condition(item: DerivedOperator) -> str:
    """The directive for the conditions that a binding has beyond those of its block."""
    block = item.binding.block
    outer = set(block.conditions) if block is not None else set()
    inner = [one for one in item.binding.conditions if one not in outer]
    own = [one for at, one in enumerate(inner) if not any(_implies(other, one) for other in inner[:at])]
    if len(own) == 1 and (name := re.fullmatch(r"defined\((\w+)\)", own[0].text)) is not None:
        return f"#ifdef {name[1]}" if own[0].holds else f"#ifndef {name[1]}"
    return f"#if {' && '.join(f'({one})' if len(own) > 1 else str(one) for one in own)}" if own else ""


def _implies(one: Condition, other: Condition) -> bool:
    """Whether a condition is a part of another that holds (``A && B``)."""
    return one.holds and other.holds and "||" not in one.text and other.text in re.split(r"\s*&&\s*", one.text)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
