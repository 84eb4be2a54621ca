"""Parts of a run that were skipped because a parser, a reference or a pack is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec

import msgspec

from opschema_cli.lint.diagnostic import Missing, NotChecked


def not_checked(missing: Iterable[Missing], rules: Iterable[tuple[str, Sequence[str]]]) -> list[NotChecked]:
    """The missing parts, with the rules that need them; rules are given as codes with their needs."""
    needs = list(rules)
    found = [
        NotChecked(
            item.reason,
            item.hint,
            tuple(code for code, wanted in needs if item.need in wanted),
            item.files,
            item.module,
        )
        for item in missing
    ]
    return joined(item for item in found if item.rules)


def joined(items: Iterable[NotChecked]) -> list[NotChecked]:
    """Merge items with the same reason, with the rules and files of all of them."""
    groups: dict[tuple[str, str, str], list[NotChecked]] = {}
    for item in items:
        groups.setdefault((item.reason, item.hint, item.module), []).append(item)
    return [
        msgspec.structs.replace(
            group[0],
            rules=tuple(sorted({code for item in group for code in item.rules})),
            files=tuple(sorted({path for item in group for path in item.files})),
        )
        for group in groups.values()
    ]


def still_missing(item: NotChecked) -> bool:
    """Whether the module that is missing is still not installed; true if the reason is another one."""
    return not item.module or find_spec(item.module) is None
