"""Links of a page: those to the repository's documents lead to pages of the site, all others to the repository."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection

REPOSITORY = "https://github.com/opschema/opschema"

_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_DOCUMENT = re.compile(rf"{re.escape(REPOSITORY)}/(?:blob|tree)/main/(?P<path>[^#]*)")
_FENCE = re.compile(r"(?ms)^( *)```.*?^\1```$")


def relinked(text: str, page: str, pages: Collection[str]) -> str:
    """A page's text with its links as the site needs them.

    Args:
        text: The Markdown.
        page: The path of the page in the repository, such as ``docs/rules/SIG203.md``.
        pages: The paths in the repository of all pages of the site.
    """
    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_relink(text[end : fence.start()], page, pages), fence.group()]
        end = fence.end()
    return "".join([*parts, _relink(text[end:], page, pages)])


def _relink(text: str, page: str, pages: Collection[str]) -> str:
    return _LINK.sub(lambda match: f"{match[1]}{_target(match[2], page, pages)}{match[3]}", text)


def _target(link: str, page: str, pages: Collection[str]) -> str:
    address, hash_, anchor = link.partition("#")
    known = _DOCUMENT.fullmatch(address)
    if not address or (known is None and re.match(r"[a-z]+:", address)):
        return link
    folder = posixpath.dirname(page)
    path = known["path"] if known else posixpath.normpath(posixpath.join(folder, address))
    if path in pages:
        return posixpath.relpath(site_path(path), posixpath.dirname(site_path(page)) or ".") + hash_ + anchor
    kind = "blob" if "." in posixpath.basename(path) else "tree"
    return f"{REPOSITORY}/{kind}/main/{path}{hash_}{anchor}"


def site_path(path: str) -> str:
    """The place of a page among the pages of the site."""
    return path.removeprefix("docs/")
