"""The encoding that a Python file declares (PEP 263), and the supported encodings.

Only codecs that sources use, whose time to decode grows with the size of the file. Python has others that do not turn bytes into
text, or that take quadratic time (``punycode``, ``idna``).
"""

from __future__ import annotations

import re
from encodings import normalize_encoding
from encodings.aliases import aliases

from opschema_cli.source.decode_error import DecodeError

_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_WITH_LINE_ENDS = re.compile(r"(utf-8|latin-1|iso-8859-1|iso-latin-1)-(.*)")
"""Encoding names with a line-ending suffix (``utf-8-unix``) that editors add, as Python's own tokenizer reads them."""

READ = frozenset(
    [
        *("ascii", "utf_8", "utf_8_sig", "latin_1"),
        *(f"iso8859_{part}" for part in range(1, 17) if part != 12),
        *(f"cp{page}" for page in (437, 850, 852, 855, 857, 858, 860, 861, 862, 863, 865, 866, 874, 932, 949, 950)),
        *(f"cp{page}" for page in range(1250, 1259)),
        *("koi8_r", "koi8_u", "koi8_t", "kz1048", "tis_620", "mac_cyrillic", "mac_greek", "mac_latin2", "mac_roman", "mac_turkish"),
        *("gb2312", "gbk", "gb18030", "big5", "big5hkscs", "euc_kr", "johab"),
        *("shift_jis", "shift_jis_2004", "shift_jisx0213", "euc_jp", "euc_jis_2004", "euc_jisx0213"),
        *(f"iso2022_{part}" for part in ("jp", "jp_1", "jp_2", "jp_2004", "jp_3", "jp_ext", "kr")),
    ]
)  # fmt: skip
"""The codecs, by the names of their modules in :mod:`encodings`."""


def declared_encoding(data: bytes) -> str:
    """Return the encoding that a Python file declares in its first two lines, or UTF-8.

    Raises:
        DecodeError: it declares one that is not read.
    """
    start = 0
    for number, line in enumerate(data.split(b"\n", 2)[:2], 1):
        match = _CODING.match(line)
        if match is not None:
            name = _without_line_ends(match.group(1).decode("ascii"))
            if not _is_read(name):
                reason = (
                    f"line {number} declares the encoding {name[:40]!r}, which opschema does not read; save it as UTF-8"
                )
                raise DecodeError(reason, start + match.start(1))
            return name
        start += len(line) + 1
    return "utf-8"


def _without_line_ends(name: str) -> str:
    match = _WITH_LINE_ENDS.fullmatch(name.lower().replace("_", "-"))
    if match is None or match[2] == "sig":
        return name
    return "utf-8" if match[1] == "utf-8" else "latin-1"


def _is_read(name: str) -> bool:
    normal = normalize_encoding(name).lower()
    return normal in READ or aliases.get(normal) in READ
