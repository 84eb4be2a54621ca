"""Which encodings of Python files are read: those that sources use."""

from __future__ import annotations

import pytest

from opschema_cli.source.declared_encoding import READ, declared_encoding
from opschema_cli.source.text import DecodeError, Source, decode


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("utf8", "é"),
        ("UTF-8", "é"),
        ("utf-8-unix", "é"),
        ("latin-1-dos", "é"),
        ("iso-8859-15", "€"),
        ("windows-1252", "€"),
        ("cp936", "变数"),
        ("GB18030", "变数"),
        ("Shift_JIS", "変数"),
        ("euc-kr", "변수"),
        ("big5", "變數"),
        ("koi8-r", "переменная"),
        ("ascii", "x"),
    ],
)
def test_an_encoding_that_sources_use_is_read_and_written_back(name: str, text: str) -> None:
    line = f"# coding: {name}\n"
    codec = name.removesuffix("-unix").removesuffix("-dos")
    data = f"{line}# {text}\n".encode(codec)
    found, encoding = decode(data, python=True)
    assert found == f"{line}# {text}\n"
    assert Source("f.py", found, encoding).encode() == data


@pytest.mark.parametrize(
    "name",
    ["punycode", "idna", "unicode_escape", "rot13", "base64", "zlib", "bz2", "undefined", "utf-7", "utf-32", "no-such"],
)
def test_any_other_is_refused_where_it_is_declared(name: str) -> None:
    data = f"# coding: {name}\nx = 1\n".encode()
    with pytest.raises(
        DecodeError, match=rf"line 1 declares the encoding '{name}', which opschema does not read"
    ) as caught:
        decode(data, python=True)
    assert data[caught.value.offset :].startswith(name.encode())


def test_a_name_in_no_comment_declares_nothing() -> None:
    assert declared_encoding(b"coding = 'punycode'\nx = 1\n# coding: punycode\n") == "utf-8"


def test_every_codec_that_is_read_is_one_of_text() -> None:
    for name in READ:
        assert "x = 1\n".encode(name).decode(name) == "x = 1\n"
