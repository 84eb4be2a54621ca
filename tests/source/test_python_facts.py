"""Facts of Python modules: what is collected, where it stands, and that no text at all raises."""

from __future__ import annotations

import ast
import gc
import sys
import sysconfig
import textwrap
import weakref
from collections.abc import Iterable
from pathlib import Path

import libcst as cst
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from libcst.metadata import MetadataWrapper, PositionProvider

from opschema_cli.source.ast_facts import NotTakenError, collect_from_ast
from opschema_cli.source.ast_spans import Places
from opschema_cli.source.cst_spans import positions
from opschema_cli.source.python import Expr, Function, ModuleFacts, PythonFile, Scope, Statement
from opschema_cli.source.python_facts import MAX_BRACKETS, MAX_CHARACTERS, collect, collect_with_tree, too_deep
from opschema_cli.source.text import Source, decode
from tests.examples import examples

NASTY = '''\
#!/usr/bin/env python
# -*- coding: utf-8 -*-
"""Doc with ünïcödé, 漢字 and 😀."""
from __future__ import annotations
import a.b.c as d, e ; from . import (f as g,
    h,)
@decorator  # why
@other.one(1, *args, key=[2], **kw)
class Käse(Base[int], metaclass = Meta):

\tx: int = 1; y = z = (  # nested
\t\t"a" 'b' f"{x!r:>{w}} {y=}"
\t)

\t@property
\tdef m(self, p, /, q: "T" = lambda v, w=(yield): (v, w), *r, s=..., **t) -> dict[str, int] :
\t\tasync with ( open(p) as u , v ) : pass
\t\tif (n := len(p)) > 10 and not (yield) : return - n ** ~ 2
\t\telif a if b else c :
\t\t\tfor i , * j in k : continue
\t\t\telse : del i , j [ 0 ]
\t\treturn

async def coro ( ) :
    async for x in y : await ( z )
    return [ i async for i in j if await i for k in i ]

match command . split ( ) :
    case [ "go" , ( "n" | "s" ) as way , * rest ] if rest : pass
    case { "k" : 1.5e-3 , ** others } | Point ( x = 0 , y = - 1 ) : ...
    case _ : raise ValueError ( "é" ) from None
try :
    assert a < b <= c is not d not in e , "m"
except* ( A , B ) as err :
    global G ; nonlocal_ = 0x_FF + 0b1 + 1_000j
finally : x [ 1 : 2 , :: 3 , ... ] @= print ( f'{ {1: 2}["a"] }' )
\x0c
def last(): return \\
    0'''


LAYOUT = (cst.Module, cst.EmptyLine, cst.TrailingWhitespace, cst.Newline, cst.Comment)


def differences(text: str) -> list[str]:
    """Nodes whose places differ from those of libcst's own provider; white space and comments aside."""
    source = Source("", text)
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    ours = positions(wrapper.module, text)
    found: list[str] = []
    for node, place in wrapper.resolve(PositionProvider).items():
        if not isinstance(node, LAYOUT):
            expected = tuple(source.line_span(at.line).start + at.column for at in (place.start, place.end))
            if ours[id(node)] != expected:
                found.append(f"{type(node).__name__} {ours[id(node)]} not {expected}")
    return found


# Places


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_places_are_those_of_libcst(newline: str) -> None:
    assert differences(NASTY.replace("\n", newline)) == []


@pytest.mark.parametrize("name", ["_collections_abc", "abc", "bisect", "dis", "stat", "types"])
def test_places_in_the_standard_library_are_those_of_libcst(name: str) -> None:
    text = Path(sysconfig.get_path("stdlib"), f"{name}.py").read_text(encoding="utf-8")
    assert differences(text) == []


def test_every_name_stands_where_its_place_says() -> None:
    module = cst.parse_module(NASTY)
    spans = positions(module, NASTY)
    names: list[str] = []

    class Names(cst.CSTVisitor):
        def visit_Name(self, node: cst.Name) -> None:  # noqa: N802 - libcst's convention
            start, end = spans[id(node)]
            names.append(node.value)
            assert NASTY[start:end] == node.value

    module.visit(Names())
    assert {"Käse", "others", "last", "coro"} <= set(names)


# The two collectors

ALIKE = {
    "names": "a = b.c = d[0] = e\n(f) = (g).h = (None).i\nfor j, *k in l: pass\nwith m as n, o as (p, q): pass\n",
    "tuples": "x = (a), b\nx = ((a), b)\nx = ( a, # c)\n b , )\nx = ()\nx = ( )\n",
    "more tuples": "x = (a,)\nx = (a),\nx = a,\nx = ((a, b)), (c, d)\n",
    "generators": "f(x for x in y)\nf( ( (x) for x in (y) # )\n ) )\nz = (i async for i in j if (k) if l)\n",
    "displays": "x = {**a, 'b': (1), ** (c), # **\n  **((d)), 'e': {**f}}\ny = [*a, b]\n",
    "subscripts": "x = a[b, c], a[(b, c)], a[(b), c], a[b,], a[b:c, d], a[()], a[:], a[b][c]\n",
    "calls": "f(a, *b, c, d=1, *e, **g)(h)(i=j)\nf(*(a), **(b))\n",
    "strings": "x = 'a' \"b\"\ny = 'a' f'{b}' 'c'\nz = b'a' b'b'\nv = ('a' # '\n  'b')\n",
    "formatted": "w = f'{a.b!r:>{c}} {d[\"k\"]} {e=}' rf'{g}'\n",
    "booleans": "x = a and b and (c and d) or (e or f) or g\n" + "y = " + " and ".join("abcdefghijklmnopqrstuvwxyz") + "\n",
    "numbers": "x = 0x_FF, 1_000, 1e5, 1j, 0o17, 9223372036854775808, -9223372036854775808, .5, 1_0.0_1\n",
    "parameters": "def f(a, b: int = (1), /, c=(1, 2), *, d: 'T', e=None, **g: x) -> (int): ...\n",
    "bracketed parameters": (
        "def f(a=((1)), b: (int) = 2, c: (x # )\n) = ( # (\n (3, 4), ), *, d=(i for i in j), e: ('T')=( ), g=(1)+(2)): ...\n"
    ),
    "lambdas": "h = lambda a, *b, c=(1), **d: (a)\n",
    "ends": "def f():\n    if a: return b ;\n\nclass C: x = 1; y = 2 ;\nif a:\n    pass;\nelse: z ; # c\nwhile a: b;\n",
    "definitions": "@ (a)\n@b(c)\nasync  def  f(): pass\n@a\nclass \\\n C(*b, d, metaclass=e, **g): 'doc'\ndef é(ü): return ü.é\n",
    "imports": "import a . b, c as d\nfrom . import (e as f, # g\n  h)\nfrom .. i . j import *\nif a: import k\n",
    "handlers": (
        "try:\n    a\nexcept (b, c) as d: e = 1\nexcept(a)as b: pass\nexcept ( # as c\n  (d)) \\\n as \\\n é: é\nexcept: pass\n"
        "else: f\nfinally: g = 2\n"
    ),
    "branches": "if a: b\nelif c: d\nelse:\n    if e: f\nx = g if h else i\nassert j, k\n",
    "patterns": (
        "match a:\n  case [b, *c] | (b, * c), * _: pass\n  case {'d': e, ** f} if g: h ;\n\n  # i\n  case j.k | None | -1 + 2j:\n"
        "    match l: # :\n      case _ as m: n\n      case ((o)) as  p: pass\n  case q(r, s=(t), u=[v] as w, ): pass\n"
        "  case 'x' 'y' | \\\n  z .a: pass\n  case{**b}: c\n  case {'d': e, ** f , }: pass; g;\n  case _: pass\n"
    ),
    "subjects": (
        "match (a) : # :\n\n  case(b): pass\nmatch a, b,:\n  case é, ü: pass\nmatch(a # :\n):\n  # c\n  case b: pass\n"
        "def f():\n  match a[b:c], {d: e}:\n    case[]: return g\n    case (): return\n  match *a, b:\n    case {}: x\nmatch = 1\n"
        "match \\\n a:\n  case True: pass\n"
    ),
    "guards": (
        "def f(cls):\n    x = cls.__dict__.get('y', None)\n    if x is None or not hasattr(cls, 'z'): return\n"
        "    if 'v' in vars(cls): a()\n    elif b: c()\n    else: d()\n"
    ),
    "stubs": "def f(): 'a' 'b'; ...\ndef g(): b''\ndef h(): f'{x}' 'y'\ndef i(): raise NotImplementedError from e\ndef j(): 1\n",
    "unicode": "x = 'é', y  # ü\n\u2028 = 1\n".replace("\u2028", "Ünï") + "z = [\n  '漢字', w.ü]\n",
    "layout": "if a:\n\tb\n\x0c\ndef f(): return \\\n  0\n",
    "continued": "a\n\\\nb = c\n\\\n\\\ndef d():\n    e\n\ng\n",
    "form feeds": "\x0ca\n\x0c\x0cdef b(): c; \x0c d\nclass E:\n\x0c    f = (1,\n\x0c 2)\n\x0cg\n",
    "deletions": "del a, (b, c.d), [e], f[0]\nglobal g\ndef h(): nonlocal i\n",
    "slices": "x = a[b:], a[:b], a[ : ], a[::(b)], a[(b) : (c) : d, e], a[:,]\n",
    **({"starred slices": "x = a[*b], a[*b, c]\n"} if sys.version_info >= (3, 11) else {}),
    "starred": "x = [* a, *(b)], (*c,), {*d}\nprint(*(e), *f)\ndel (g, h), i\nfor j, * k in l: pass\n",
    "fields": "x = f'{{a}} {b:}{c!s:>3}' f'' 'd' F'{e=!r}{f =:2}' f'\\N{BULLET}\\n\\{g}' Rf'\\d{{{h}}}'\n",
    "hidden": "x = [(a.b(c), d(a)) for a, (*d, e) in f() for g in a()], (lambda h, *i: h(i(), j.k()))\n",
    "comprehensions": "x = {a: b for a, b in c if (d)}, {e for e in f for g in (h)}, [i for i in j if k if l]\n",
    "statements": (
        "def f():\n    'doc'\n    a = b; c: d = e; g **= h ;\n    while i: break\n    else: continue\n"
        "    with (j as k, l): raise m from n\n    try: o\n    except (p): q\n    else: r\n    finally: s\n    import t.u, v\n"
    ),
    "nested": "def f(a=lambda: 1):\n    @g\n    def h(): yield from i\n    class J:\n        def k(l): nonlocal a\n",
    "deep": "x = " + "f(" * 30 + "a.b(lambda: c(d := e))" + ")" * 30 + "\ny = " + "a + " * 30 + "b(c)\n",
    "await": "async def f():\n    async with a as b: await c\n    async for d in e: yield (yield)\n",
    "async": "async def f():\n    return [await g async for h in i]\n",
}  # fmt: skip


def agrees_with_libcst(text: str) -> bool:
    """Whether the faster collector gives the same as the other one, or leaves the text to it."""
    try:
        found = collect_from_ast(text)
    except NotTakenError:
        return True
    reference = collect_with_tree(text)[0]
    return bool(reference.error) or found == reference


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("text", ALIKE.values(), ids=ALIKE)
def test_the_faster_collector_tells_what_the_other_tells(text: str, newline: str) -> None:
    text = text.replace("\n", newline)
    assert collect_from_ast(text) == collect_with_tree(text)[0]


@pytest.mark.parametrize("name", ["argparse", "ast", "asyncio/tasks", "inspect", "email/message", "enum", "functools"])
def test_they_agree_on_the_standard_library(name: str) -> None:
    text = Path(sysconfig.get_path("stdlib"), f"{name}.py").read_text(encoding="utf-8")
    assert collect_from_ast(text) == collect_with_tree(text)[0]


@pytest.mark.parametrize(
    "text",
    [
        "ﬁ = 1\n",  # which Python reads as `fi`
        "x = ﬁ.y\n",
        "x = )\n",
        "a\x00",
    ],
)
def test_what_python_tells_otherwise_is_left_to_libcst(text: str) -> None:
    with pytest.raises(NotTakenError):
        collect_from_ast(text)


def test_newer_syntax_is_read_by_an_older_python() -> None:
    file = facts("def f[T](x: T) -> T: return x\ntype A = int\n")
    assert [item.name for item in file.functions["f"][0].params] == ["x"]


# Facts


def facts(text: str) -> PythonFile:
    text = textwrap.dedent(text)
    found = collect(text)
    assert found.error == ""
    assert found == collect_with_tree(text)[0]
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=ModuleFacts) == found
    return PythonFile(Source("m.py", text), found)


def shown(file: PythonFile, expr: Expr | None) -> object:
    """An expression in short: a constant's value, a name's text, or its kind and parts."""
    if expr is None or expr.kind == "const":
        return None if expr is None else expr.value
    if expr.kind == "name":
        return f"<{expr.text}>"
    if expr.kind == "other":
        return f"?{file.text(expr)}"
    return (expr.kind + (f" {expr.text}" if expr.text else ""), *(shown(file, item) for item in expr.items))


def value(text: str) -> object:
    file = facts(f"x = {text}\n")
    [only] = file.assigns["x"]
    return shown(file, only.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1_000", 1000),
        ("0x_ff", 255),
        ("1.5e-3", 0.0015),
        ("-1", ("unary -", 1)),
        ("True", True),
        ("None", None),
        ("'a' \"b\" r'\\c'", "ab\\c"),
        ("'\\N{BULLET}\\u00e9'", "•é"),
        ("a.b.c", "<a.b.c>"),
        ("f(1, *a, k=2, **b).c", ("attribute c", ("call", "<f>", 1, "<a>", 2, "<b>"))),
        ("f(1, k=g)", ("call", "<f>", 1, "<g>")),
        ("(1, [2, {3}], {4: 5, **d})", ("tuple", 1, ("list", 2, ("set", 3)), ("dict", 4, 5, ("absent **",), "<d>"))),
        ("a + -b ** 2", ("binary +", "<a>", ("unary -", ("binary **", "<b>", 2)))),
        ("not a", ("unary not", "<a>")),
        ("a[b, 1]", ("subscript", "<a>", "<b>", 1)),
        ("a[1:2]", ("subscript", "<a>", ("slice", 1, 2, ("absent",)))),
        (
            "a[:, ::-b]",
            ("subscript", "<a>", ("slice", *[("absent",)] * 3), ("slice", *[("absent",)] * 2, ("unary -", "<b>"))),
        ),
        ("a[b,]", ("subscript", "<a>", ("tuple", "<b>"))),
        ("lambda p, q=1: p", ("lambda", "<p>", "<q>", "<p>")),
        ("[1, *a]", ("list", 1, ("starred", "<a>"))),
        ("b'x'", ("literal b'x'",)),
        ("2 ** 1j", ("binary **", 2, ("literal 1j",))),
        ("...", ("literal ...",)),
        ("a if b else c", ("ifexp", "<b>", "<a>", "<c>")),
        ("f'{x}'", ("fstring", ("field", "<x>"))),
        (
            "'a' f'b{{{x!r}' rf'\\d{y:>{w}}'",
            ("fstring", "ab{", ("field r", "<x>"), "\\d", ("field", "<y>", ("fstring", ">", ("field", "<w>")))),
        ),
        ("f'{x = } {y=!s}'", ("fstring", "x = ", ("field r", "<x>"), " y=", ("field s", "<y>"))),
        (
            "[a for a, *b in c if d if e for f in g]",
            (
                "listcomp",
                "<a>",
                ("for", ("tuple", "<a>", ("starred", "<b>")), "<c>", "<d>", "<e>"),
                ("for", "<f>", "<g>"),
            ),
        ),
        ("{a for a in b}", ("setcomp", "<a>", ("for", "<a>", "<b>"))),
        ("{a: b for a in c}", ("dictcomp", "<a>", "<b>", ("for", "<a>", "<c>"))),
        ("f(a for a in b)", ("call", "<f>", ("generator", "<a>", ("for", "<a>", "<b>")))),
        ("(a := b)", ("walrus", "<a>", "<b>")),
    ],
)
def test_expressions(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "owner", "member"),
    [("a.b.c", "<a.b>", "c"), ("a", None, "a"), ("f().b", ("call", "<f>"), "b"), ("f(a)", None, ""), ("1", None, "")],
)
def test_owner_and_member_of_an_attribute(text: str, owner: object, member: str) -> None:
    file = facts(f"x = {text}\n")
    found = file.assigns["x"][0].value
    assert found is not None
    assert (shown(file, found.owner), found.member) == (owner, member)


def test_what_a_target_with_a_star_takes_is_a_list() -> None:
    file = facts("*a, b = c, d\n[e, *f] = g, h\n")
    found = {item.target: shown(file, item.value) for item in file.body.assigns}
    assert found == {"a": None, "b": "<d>", "e": "<g>", "f": None}


def test_elements_are_known_unless_one_is_unpacked() -> None:
    file = facts("x = [a, b]; y = [*a, b]; z = a\n")
    assert [item.value and item.value.elements and len(item.value.elements) for item in file.body.assigns] == [
        2,
        None,
        None,
    ]


def test_expressions_of_coroutines_and_generators() -> None:
    file = facts("async def f():\n    [await a async for a in b]\n    (yield), (yield c)\ndef g(): yield from d\n")
    shapes = [shown(file, item.exprs[0]) for name in "fg" for item in file.functions[name][0].statements]
    assert shapes == [
        ("listcomp", ("await", "<a>"), ("for async", "<a>", "<b>")),
        ("tuple", ("yield",), ("yield", "<c>")),
        ("yield-from", "<d>"),
    ]


def test_what_no_cache_can_hold_is_no_constant() -> None:
    for text in ("'\\ud800'", "1" + "0" * 30, "0x" + "f" * 5000):
        assert value(text) == (f"literal {text}",)
    assert value("f'\\ud800{x}'") == ("fstring", ("literal",), ("field", "<x>"))


def test_an_expression_is_followed_so_deep_and_no_deeper() -> None:
    found = value("[" * 40 + "1" + "]" * 40)
    depth = 0
    while isinstance(found, tuple):
        found, depth = found[1], depth + 1
    assert (depth, str(found)[:2]) == (12, "?[")


def outline(file: PythonFile, statements: Iterable[Statement]) -> list[object]:
    """Statements in short: kind and text, expressions, and a list for each block."""
    return [
        (
            f"{item.kind} {item.text}".strip(),
            *(shown(file, expr) for expr in item.exprs),
            *(outline(file, block) for block in item.blocks),
        )
        for item in statements
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = b.c = d", ("assign", "<a>", "<b.c>", "<d>")),
        ("a: b = c", ("annassign", "<a>", "<b>", "<c>")),
        ("a: b", ("annassign", "<a>", "<b>")),
        ("a[b] **= c", ("augassign **", ("subscript", "<a>", "<b>"), "<c>")),
        ("a()", ("expr", ("call", "<a>"))),
        ("return a, b", ("return", ("tuple", "<a>", "<b>"))),
        ("return", ("return",)),
        ("del a, b[c]", ("delete", "<a>", ("subscript", "<b>", "<c>"))),
        ("raise a from b", ("raise", "<a>", "<b>")),
        ("assert a, b", ("assert", "<a>", "<b>")),
        ("import a.b, c as d", ("import a,d",)),
        ("from a import b as c, d", ("import c,d",)),
        ("global a, b", ("global a,b",)),
        ("pass", ("pass",)),
        ("@a\n def g(b): pass", ("def g",)),
        ("class C(a): pass", ("class C",)),
        ("if a: b\n elif c: d", ("if", "<a>", [("expr", "<b>")], [("if", "<c>", [("expr", "<d>")], [])])),
        ("while a:\n  break\n else:\n  b", ("while", "<a>", [("break",)], [("expr", "<b>")])),
        ("for a in b: continue", ("for", "<a>", "<b>", [("continue",)], [])),
        ("with a as b, c: d", ("with", "<a>", "<b>", "<c>", ("absent",), [("expr", "<d>")])),
        (
            "try: a\n except b as c: d\n except: e\n else: f\n finally: g",
            (
                "try",
                [("expr", "<a>")],
                [("except c", "<b>", "<c>", [("expr", "<d>")]), ("except", [("expr", "<e>")])],
                [("expr", "<f>")],
                [("expr", "<g>")],
            ),
        ),
        ("try: a\n except* b: c", ("try *", [("expr", "<a>")], [("except", "<b>", [("expr", "<c>")])], [], [])),
        (
            "match a:\n  case {'b': c, **d} | [c, *d] if e: f\n  case _: pass",
            ("match", "<a>", [("case c,d", "<e>", [("expr", "<f>")]), ("case", [("pass",)])]),
        ),
    ],
)
def test_statements(text: str, expected: object) -> None:
    file = facts(f"def f():\n 'doc'\n {text}\n")
    [function] = file.functions["f"]
    assert outline(file, function.statements) == [expected]


def test_statements_of_coroutines_are_marked() -> None:
    file = facts("async def f():\n async for a in b: pass\n async with a as b: pass\n")
    assert [item.text for item in file.functions["f"][0].statements] == ["async", "async"]


def test_a_definition_among_statements_is_found_by_its_place() -> None:
    file = facts("def f():\n  @a\n  def g(): return b\n  lambda c: c.d\n")
    [function] = file.functions["f"]
    inner, lambda_ = function.body.functions[0], function.body.lambdas[0]
    assert function.statements[0].span == inner.outer
    assert outline(file, inner.statements) == [("return", "<b>")]
    assert outline(file, lambda_.statements) == [("return", "<c.d>")]


def test_statements_are_followed_so_deep_and_no_deeper() -> None:
    file = facts("def f():\n if a: b\n" + " elif c: d\n" * 99)
    found, depth = file.functions["f"][0].statements[0], 0
    while found.kind == "if":
        found, depth = found.blocks[1][0], depth + 1
    assert (depth, found.kind) == (59, "other")


def test_names_of_patterns_are_written_and_read() -> None:
    body = facts("match a:\n  case B(c, d=E.F) | [c, *g]: pass\n").body
    assert [item.target for item in body.assigns] == ["c", "c", "g"]
    assert [item.name for item in body.uses] == ["a", "B", "E.F"]


def test_functions_and_parameters() -> None:
    file = facts(
        """\
        @library.custom_op("ns::f", mutates_args=())
        async def f(a, /, b: int, c: "T" = 1, *args, d, e: x.Y = None, **kw) -> tuple[int]:
            return a, b
        """
    )
    [f] = file.functions["f"]
    assert [(item.name, item.kind) for item in f.params] == [
        ("a", "posonly"), ("b", "normal"), ("c", "normal"), ("args", "vararg"), ("d", "kwonly"), ("e", "kwonly"), ("kw", "kwarg"),
    ]  # fmt: skip
    assert [shown(file, item.annotation) for item in f.params] == [None, "<int>", "T", None, None, "<x.Y>", None]
    assert [item.default is not None for item in f.params] == [False, False, True, False, False, True, False]
    assert [file.text(item.full_span) for item in f.params][1:3] == ["b: int", 'c: "T" = 1']
    assert f.decorator_names == ["library.custom_op"]
    assert shown(file, f.returns) == ("subscript", "<tuple>", "<int>")
    assert file.text(f.span) == "f"
    assert file.text(f.outer).startswith("@library")
    assert file.text(f.outer).endswith("return a, b")
    assert [shown(file, item) for item in f.body.returns] == [("tuple", "<a>", "<b>")]


def test_a_parameter_ends_behind_the_brackets_of_its_default() -> None:
    file = facts("def f(a=(1, 2), b: (int) = ((3)  # three\n    ), c=()): ...\n")
    [f] = file.functions["f"]
    assert [file.text(item.full_span) for item in f.params] == ["a=(1, 2)", "b: (int) = ((3)  # three\n    )", "c=()"]


@pytest.mark.parametrize(
    ("body", "stub"),
    [
        ("pass", True),
        ("...", True),
        ('"""Doc."""', True),
        ('"""Doc."""; raise NotImplementedError', True),
        ("raise NotImplementedError('x')", True),
        ("raise ValueError", False),
        ("return None", False),
        ("x = 1", False),
        ("super().f()", False),
    ],
)
def test_a_stub_does_nothing(body: str, stub: bool) -> None:
    assert facts(f"def f(): {body}\n").functions["f"][0].stub is stub


def test_classes() -> None:
    file = facts(
        """\
        @final
        class A(B, c.D[int], metaclass=M, flag=True):
            x: int = 1

            @property
            def p(self): return self._p

            class Inner: ...
        """
    )
    [cls] = file.classes["A"]
    assert [shown(file, base) for base in cls.bases] == ["<B>", ("subscript", "<c.D>", "<int>")]
    assert cls.keywords == ("metaclass", "flag")
    assert [item.text for item in cls.decorators] == ["final"]
    assert [item.target for item in cls.body.assigns] == ["x"]
    assert [(item.name, item.is_property) for item in cls.body.functions] == [("p", True)]
    assert [item.name for item in cls.body.classes] == ["Inner"]
    assert file.text(cls.span) == "A"


def test_imports() -> None:
    file = facts(
        """\
        import a, b.c, d.e as f
        from g import h, i as j
        from ..k.l import *
        from . import m
        try:
            import n
        except ImportError:
            n = None
        def late(): import o
        """
    )
    assert [(item.name, item.module, item.attr, item.level, item.guarded) for item in file.body.imports] == [
        ("a", "a", "", 0, False),
        ("b", "b.c", "", 0, False),
        ("f", "d.e", "", 0, False),
        ("h", "g", "h", 0, False),
        ("j", "g", "i", 0, False),
        ("*", "k.l", "*", 2, False),
        ("m", "", "m", 1, False),
        ("n", "n", "", 0, True),
    ]
    assert [item.name for item in file.functions["late"][0].body.imports] == ["o"]


def test_assignments_and_whether_they_are_sure() -> None:
    file = facts(
        """\
        a = b = 1
        c, (d, *e) = 1, (2, 3)
        f: int
        g += 1
        self.h = 2
        if (i := 3): j = 4
        for k in l: pass
        with m as n: pass
        p[0] = 5
        """
    )
    found = {item.target: (shown(file, item.value), item.sure) for item in file.body.assigns}
    assert found["a"] == found["b"] == (1, True)
    assert found["c"] == (1, True)
    assert found["f"] == (None, True)
    assert found["g"] == (None, True)
    assert found["self.h"] == (2, True)
    assert found["i"] == (3, False)
    assert found["j"] == (4, False)
    assert found["k"] == (None, False)
    assert found["n"] == (None, True)
    assert not {"p", "p[0]"} & set(found)


def test_calls_uses_loops_strings_and_deletions() -> None:
    file = facts(
        """\
        def f(x):
            global G
            for a, b in pairs(x):
                register(a.name, "ns::op", kind="KIND")
            del x.y, c
            return [q for q in x.values]
        """
    )
    body = file.functions["f"][0].body
    assert [item.callee for item in body.calls] == ["pairs", "register"]
    assert [(loop.targets, loop.iterable.callee) for loop in body.loops] == [(("a", "b"), "pairs")]
    assert {"a.name", "x.values", "pairs", "register"} <= {use.name for use in body.uses}
    assert body.strings == ("KIND",)
    assert {"G", "x.y", "c"} <= set(body.deleted)
    assert {"KIND", "name", "register"} <= body.names()


def test_the_module_docstring() -> None:
    file = facts('"""One\ntwo."""\nx = 1\n')
    assert file.facts.docstring is not None
    assert file.text(file.facts.docstring) == '"""One\ntwo."""'
    assert facts("x = 1\n").facts.docstring is None
    assert facts("").facts.docstring is None


# Errors


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("x = 1\ny = )\n", "unmatched ')'", ")"),
        ("# é😀\nx = (1,\n", "'(' was never closed", "(1"),
        ("def f(:\n  pass\n", "invalid syntax", ":"),
        ("x = 'abc\n", "unterminated string literal (detected at line 1)", "'abc"),
        ("if x:\r\n\ty\r\n        z\r\n", "inconsistent use of tabs and spaces in indentation", None),
        ("print 'x'\n", "Missing parentheses in call to 'print'. Did you mean print(...)?", "print"),
        ("\x0c\nx = $\n", "invalid syntax", "$"),
        ("b'a' 'b'\n", "cannot mix bytes and nonbytes literals", None),
        ("a = 1\x00\n", None, None),
        ("return" * 3 + " = ?", "invalid syntax", "?"),
    ],
)
def test_a_syntax_error_is_told_as_python_tells_it(text: str, message: str | None, at: str | None) -> None:
    found = collect(text)
    assert found.error
    assert message is None or found.error == message
    assert at is None or text[found.error_at :].startswith(at)
    assert found.body == Scope()


def test_the_invalid_escapes_of_the_code_warn_nobody(recwarn: pytest.WarningsRecorder) -> None:
    assert value(r"'\d\_'") == "\\d\\_"
    collect(r"x = '\d' )")
    assert list(recwarn) == []


def test_what_is_too_long_is_not_parsed() -> None:
    assert collect("#" * (MAX_CHARACTERS + 1)).error == "it has 2,000,001 characters; opschema parses up to 2,000,000"


# Depth


@pytest.mark.parametrize("opening", ["(", "[", "{", "f(", "{1: ", "([{"])
def test_brackets_nest_as_deep_as_python_allows(opening: str) -> None:
    assert too_deep(opening * (MAX_BRACKETS // len(opening.replace("f", "").replace("1: ", "")))) is None
    deep = "x = " + opening * (MAX_BRACKETS + 1)
    assert collect(deep).error == "it nests deeper than 200 brackets"
    assert deep[collect(deep).error_at] in "([{"


def test_python_itself_refuses_what_is_refused() -> None:
    text = "x = " + "(" * (MAX_BRACKETS + 1) + "1" + ")" * (MAX_BRACKETS + 1)
    with pytest.raises(SyntaxError, match="too many nested parentheses"):
        ast.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "X = '" + "(" * 500 + "'\n",
        '"""' + "[\n" * 500 + '"""\n',
        "# " + "{" * 500 + "\n",
        "".join(f"'\\'(' # ({number}\n" for number in range(300)),
        'r"\\\\"; "(' + "(" * 300 + '"\n',
        "'''" + "('" * 300 + "'''\n",
        "x = [\n" + "'(',\n" * 300 + "]\n",
    ],
)
def test_brackets_in_strings_and_comments_do_not_count(text: str) -> None:
    assert too_deep(text) is None


def test_a_line_of_dashes_is_no_chain_of_operators() -> None:
    assert collect("# " + "-" * 5000 + "\nx = '''" + " -" * 5000 + "'''\n").error == ""


def test_no_file_of_the_standard_library_is_too_deep() -> None:
    refused = []
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text, _ = decode(path.read_bytes(), python=True)
        if too_deep(text) is not None:
            refused.append(path.name)
    assert refused == []


# Whatever comes

ATOMS = [
    "def ", "class ", "f(", "x", "=", ":", "\n", "    ", "\t", "\r\n", "\r", "\f", "'", '"', "'''", '"""', "f'", "{", "}",
    "[", "]", "(", ")", ",", "*", "**", "lambda ", "if ", "else", "match ", "case ", "_", "async ", "await ", "yield ", "\\",
    "\\\n", "#", "@", "->", ":=", "...", ".", "1", "0x", "1e5", "é", "\u2028", "\x0b", "\x1c", "\ufeff", "😀", "import ",
    "from ", "as ", "with ", "try:", "except ", "return ", "for ", "in ", "not ", "-", "~", "<", "!=", "$", "?", "`", "\x00",
    "rb'", "u'", "0777", "1__0", "\\N{x}", "'\\ud800'", "type ", "del ", "global ", ";", "pass",
]  # fmt: skip


def check(text: str) -> None:
    found = collect(text)
    assert agrees_with_libcst(text)
    assert 0 <= found.error_at <= len(text)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=ModuleFacts) == found
    for scope in found.body.walk():
        for item in (*scope.uses, *scope.imports, *scope.assigns, *scope.calls, *scope.functions, *scope.classes):
            assert 0 <= item.start <= item.end <= len(text)
        for function in scope.functions:
            check_function(function, text)


def check_function(function: Function, text: str) -> None:
    assert text[function.start : function.end] == function.name
    for item in function.params:
        assert text[item.start : item.end] == item.name


@given(st.text(max_size=200))
@example("\ud800")
@example("b'' ''")
@example("x = '\\ud800'")
@example("x = f'\\x{a}'")
@example("x = '\\x' f'{a:\\x}'")
@settings(max_examples=examples(150, 60), deadline=None)
def test_no_text_raises(text: str) -> None:
    check(text)


STATEMENTS = [
    "x = {}\n", "x: {} = {}\n", "f({}, *{}, k={})\n", "if {}:\n    x = {}\nelse:\n    return_ = {}\n", "x, y = {}, {}\n",
    "for i in {}: j = {}\n", "def f(a={}, *, b: {} = 1): return {}\n", "x[{}] = {}\n", "with {} as y: pass\n", "assert {}, {}\n",
]  # fmt: skip
LEAVES = ["a", "b.c", "1", "'s'", "None", "f'{d}'", "é", "()"]


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    shapes = ["({})", "( {} # )\n)", "({},)", "({}, {})", "[{}, {}]", "{{{}: {}, **({})}}", "{}.x", "f({}, k={}, *{})",
              "({} + {})", "({} and {} and {})", "(not {})", "({} < {} in {})", "({})[{}, {}:{}]", "(lambda p={}: {})",
              "({} for q in {} if {})", "({} if {} else {})", "{{{}}}", "(n := {})", "[*{}, {}]"]  # fmt: skip
    return st.tuples(st.sampled_from(shapes), st.lists(inner, min_size=4, max_size=4)).map(
        lambda it: it[0].format(*it[1])
    )


EXPRESSIONS = st.recursive(st.sampled_from(LEAVES), _combined, max_leaves=12)


@given(st.lists(st.tuples(st.sampled_from(STATEMENTS), st.lists(EXPRESSIONS, min_size=3, max_size=3)), max_size=4))
@settings(max_examples=examples(200, 60), deadline=None)
def test_the_two_collectors_agree(statements: list[tuple[str, list[str]]]) -> None:
    text = "".join(shape.format(*parts) for shape, parts in statements)
    assert agrees_with_libcst(text)


@given(st.lists(st.sampled_from(ATOMS), max_size=30).map("".join))
@settings(max_examples=examples(400, 150), deadline=None)
def test_no_mixture_of_python_raises(text: str) -> None:
    check(text)


@given(st.lists(st.sampled_from(NASTY.splitlines(keepends=True)), max_size=25).map("".join), st.integers(0, 2000))
@settings(max_examples=examples(100, 50), deadline=None)
def test_no_torn_module_raises(text: str, cut: int) -> None:
    check(text[: cut % (len(text) + 1)])


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n if a: b\n" + " elif c: d\n" * 300,
        "x = " + "a + " * 450 + "b\n",
        "x = a" + ".b()" * 240 + "\n",
        "x = " + "a if b else " * 450 + "c\n",
    ],
    ids=["elif", "sum", "calls", "conditional"],
)
def test_long_chains_do_not_nest_too_deeply(text: str) -> None:
    assert collect(text).error == ""


@pytest.mark.parametrize("text", ["@a\ndef f(x=({})): pass\n", "@a\nclass C({}): pass\n", "x = {}\n"])
def test_what_nests_too_deeply_is_said_to(text: str) -> None:
    facts = collect(text.format("not " * 1200 + "1"))
    assert (facts.error, facts.error_at) == ("it nests too deeply", 0)


def test_places_of_a_text_go_with_it() -> None:
    """Workers collect no garbage, so nothing may hold itself."""
    gc.disable()
    try:
        places = [weakref.ref(Places(text)) for text in ("x = 1\n", "x = 'ä'\n")]
    finally:
        gc.enable()
    assert [item() for item in places] == [None, None]
