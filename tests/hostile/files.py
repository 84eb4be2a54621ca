"""Files that no linter should be given, by kind: YAML and Python, with the finding that each must bring (empty: none)."""

from __future__ import annotations

from tests.stalling import STALLING

_LAUGHS = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
)

YAML: dict[str, tuple[bytes, str]] = {
    "billion laughs": (_LAUGHS.encode(), "YML001"),
    "an anchor in itself": (b"a: &a [*a]\nb: &b {c: *b}\n", ""),
    "an anchor that merges itself": (b"a: &a\n  <<: *a\n  doc: x\n", ""),
    "a million lists in each other": (b"[" * 10**6, "YML001"),
    "a million mappings in each other": (b"{a: " * 10**6, "YML001"),
    "a million items in each other": (b"- " * 10**6, "YML001"),
    "a million keys in each other": (b"? " * 10**6, "YML001"),
    "three thousand levels of indentation": ("".join(" " * n + "a:\n" for n in range(3000)).encode(), "YML001"),
    "a list of ninety levels, closed": (b"[" * 90 + b"]" * 90, ""),
    "a long list that breaks off": (b"a: [" + b"1, " * 200_000, "YML001"),
    "a long list with an error that another parser might take": (b"a: [" + b"x:y," * 100_000 + b"]", "YML001"),
    "a hundred thousand directives": (b"".join(b"%%TAG !a%d! b\n" % n for n in range(100_000)), "YML001"),
    "a hundred thousand documents": (b"---\na: 1\n" * 100_000, "YML001"),
    "one long line": (b"a: " + b"x" * 2**20 + b"\n", ""),
    "one long key": (b"k" * 2**20 + b": 1\n", "YML001"),
    "a million blank lines": (b"\n" * 10**6, ""),
    "a million spaces": (b" " * 10**6 + b"a: 1", ""),
    "half a megabyte of quotes": (b"'" * 2**19, ""),
    "unsafe tags": (
        b"a: !!python/object/apply:os.system ['touch ran']\n"
        b"b: !!python/name:os.system\n"
        b"c: !!python/object/new:subprocess.Popen [[touch, ran]]\n"
        b"d: !<tag:yaml.org,2002:python/object/apply:os.system> ['touch ran']\n",
        "",
    ),
    "tags that do not fit": (
        b"a: !!int x\nb: !!float {}\nc: !!binary '\xc3\xa9'\nd: !!timestamp no\ne: !!set [1]\n",
        "",
    ),
    "numbers that are none": (b"a: 0b\nb: 0x\nc: 1:99\nd: " + b"9" * 100_000 + b"\ne: .\nf: 1e999999\ng: -.inf\n", ""),
    "keys that are not text": (b"1: a\n[1, 2]: b\n{c: d}: e\n? |\n  f\n: g\n~: h\n<<: i\n", ""),
    "keys that repeat": (b"add: {doc: x}\nadd: {doc: y}\n" * 1000, ""),
    "a merge of everything": (b"a: &a {b: 1}\nc:\n  <<: [*a, *a, {<<: *a}]\n  <<: 3\n  <<: *a\n", ""),
    "an escape that is not a character": (b'a: "\\UFFFFFFFF"\n', "YML001"),
    "half a character": (b'a: "\\ud800"\n', "YML001"),
    "control characters": (b"a: \x07\n", "YML001"),
    "terminal escapes": (b'a: "\\e]0;owned\\a"\n"\\e[31m": {doc: x}\n', ""),
    "bidirectional text": ("a: {doc: '\u202e\u2066evil\u2069'}\n".encode(), ""),
    "binary": (bytes(range(256)) * 100, "OPS101"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(1000), "OPS101"),
    "NUL in the middle": (b"add: {doc: 'a\0b'}\n", "OPS101"),
    "broken UTF-8": (b"add: {doc: caf\xe9}\n", "OPS101"),
    "overlong UTF-8": (b"add: {doc: \xc0\xaf}\n", "OPS101"),
    "surrogates in UTF-8": (b"add: {doc: \xed\xa0\x80}\n", "OPS101"),
    "UTF-16": ("add: {doc: x}\n".encode("utf-16"), ""),
    "UTF-16 that breaks off": ("add: {doc: x}\n".encode("utf-16")[:-1], "OPS101"),
    "UTF-32": ("add: {doc: x}\n".encode("utf-32"), "YML001"),
    "only a byte order mark": (b"\xef\xbb\xbf", ""),
    "two byte order marks": (b"\xef\xbb\xbf\xef\xbb\xbfadd: {doc: x}\n", ""),
    "nothing": (b"", ""),
    "only a comment": (b"# nothing", ""),
    "a single word": (b"word", ""),
    "an open quote": (b'add: {doc: "x\n', "YML001"),
    "tabs for indentation": (b"add:\n\tdoc: x\n", "YML001"),
    "a huge file": (b"#" * (17 * 2**20), "OPS101"),
    "more nodes than are read": (b"a: [" + b"1," * 1_100_000 + b"]", "YML001"),
}

_INDENTED = "".join(" " * n + "if a:\n" for n in range(99)) + " " * 99 + "pass\n"

PYTHON: dict[str, tuple[bytes, str]] = {
    "a million brackets": (b"x = " + b"(" * 10**6, "OPS102"),
    "ten thousand brackets, closed": (b"x = " + b"[" * 10**4 + b"]" * 10**4 + b"\n", "OPS102"),
    "two hundred brackets": (b"x = " + b"(" * 199 + b"1" + b")" * 199 + b"\n", ""),
    "a hundred thousand minus signs": (b"x = " + b"-" * 10**5 + b"1\n", "OPS102"),
    "six thousand sums": (b"x = " + b"1+" * 6_000 + b"1\n", ""),
    "patterns in each other": (b"match a:\n case " + b"[" * 60 + b"a" + b"]" * 60 + b":\n  pass\n", ""),
    "patterns in each other, for libcst": (STALLING.encode(), "OPS102"),
    "strings of strings": (b"x = " + b"f'{f\"{" * 40 + b"1" + b"}\"}'" * 40 + b"\n", ""),
    "twenty thousand decorators": (b"@a\n" * 20_000 + b"def f(): pass\n", ""),
    "ninety-nine levels of indentation": (_INDENTED.encode(), ""),
    "a thousand levels of indentation": ("".join(" " * n + "if a:\n" for n in range(1000)).encode(), "OPS102"),
    "a megabyte on one line": (b"x = '" + b"a" * 2**20 + b"'\n", ""),
    "an open string of a megabyte": (b"x = '''" + b"a\n" * 2**19, "OPS102"),
    "more than is parsed": (b"#" * 2_000_001, "OPS102"),
    "NUL bytes": (b"x = 1\0\n", "OPS101"),
    "binary": (bytes(range(256)) * 100, "OPS101"),
    "broken UTF-8": (b"# caf\xe9\n", "OPS101"),
    "invalid escapes": (b"x = '\\d\\_\\('\ny = b'\\d'\n", ""),
    "form feeds and odd line ends": (b"\x0c\nx = 1\r\x0c\r\ny = 2\x0b\n", "OPS102"),
    "form feeds": (b"\x0cdef f():\n\x0c    return 1\n\x0c\n", ""),
    "tabs and spaces": (b"if a:\n\tb\n        c\n", "OPS102"),
    "unusual names": ("ﬁ = 1\nℌ = 2\nµ = 3\nª = 4\ndef 変数(ñ): return ñ\n".encode(), ""),
    "names that are none": ("x\u200b = 1\n".encode(), "OPS102"),
    "bidirectional text": ("x = 1  # \u202e\u2066 evil \u2069\n".encode(), ""),
    "latin-1, as it says": ("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), ""),
    "an encoding that is not there": (b"# coding: klingon\n", "OPS101"),
    "an encoding that is none": (b"# coding: undefined\n", "OPS101"),
    "an encoding of bytes": (b"# coding: hex\n", "OPS101"),
    "utf-16, as it says but is not": (b"# coding: utf-16\nx = 1\n", "OPS101"),
    "utf-16": ("x = 1\n".encode("utf-16"), ""),
    "a name that is not a character": (b"x = '\\N{NO SUCH NAME}'\n", ""),
    "a half character": (b"x = '\\ud800'\n", ""),
    "bytes and text": (b"x = b'a' 'b'\n", "OPS102"),
    "a number too long": (b"x = " + b"9" * 10_000 + b"\ny = 0x" + b"f" * 10_000 + b"\nz = 1e999\n", ""),
    "code that would be felt": (
        b"import os, pathlib\npathlib.Path(__file__).with_name('ran').touch()\nos.system('touch ran')\nraise SystemExit(9)\n", "",
    ),
    "nothing": (b"", ""),
}  # fmt: skip
