"""The report for people, as it is read: at 80 and 120 columns, without colour, and what colour adds."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place, Related
from opschema_cli.reporters import Report, load_writer
from opschema_cli.reporters.frame import GUTTER
from opschema_cli.reporters.text import open_screen, write
from opschema_cli.source.text import Edit, Span
from tests.reporters.pages import contrast

Make = Callable[..., Report]


def render(report: Report, columns: int = 80, *, color: bool = False, encoding: str = "utf-8") -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")
    screen = open_screen(stream, "always" if color else "never")
    write(report, stream, msgspec.structs.replace(screen, width=columns))
    stream.seek(0)
    return stream.read()


def body(report: Report, columns: int = 80) -> str:
    """The text between the header of the only finding and the summary."""
    _, found = render(report, columns).split("\n", 1)
    return found[: found.rindex("\n\nFound") + 1]


def at(start: int, end: int, message: str = "m", path: str = "f") -> Diagnostic:
    return Diagnostic(message, Place(path, Span(start, end)), code="A1", name="n")


def of(text: str, *found: str) -> Diagnostic:
    """A finding in the file ``f`` at the first text, with the others as its other side."""
    first, *rest = [Place("f", Span(text.index(part), text.index(part) + len(part))) for part in found]
    return Diagnostic("m", first, tuple(Related(place, "other side") for place in rest), code="A1", name="n")


def replace(text: str, old: str, new: str, path: str = "f") -> FileEdit:
    return FileEdit(path, Edit(Span(text.index(old), text.index(old) + len(old)), new))


def test_both_sides_and_the_fix(make_report: Make, differs: Diagnostic, status: Diagnostic) -> None:
    assert (
        render(make_report(differs, status, suppressed=1, baselined=4), 80)
        == """\
ops/norm.yaml:3:33  error SIG110 default-differs
  `eps` defaults to `1e-5` in the manifest and to `1e-6` in `__init__()`. Give
  both the same default
    2 │   params:
    3 │     eps: {type: float, default: 1e-5}
      │                                 ^^^^
    4 │   status: "100%, done"
      ├─ ops/norm.py:2:37
    1 │ class RMSNorm(Op):
    2 │     def __init__(self, eps: float = 1e-6) -> None:
      │                                     ---- the default that runs
  op: RMSNorm
  help: set the manifest's default to `1e-6` (safe fix: --fix)
    3 -     eps: {type: float, default: 1e-5}
      +     eps: {type: float, default: 1e-6}

ops/norm.yaml:4:11  warning MAN101 status
  status `100%, done` is not known: use `implemented`
    3 │     eps: {type: float, default: 1e-5}
    4 │   status: "100%, done"
      │           ^^^^^^^^^^^^

Found 1 error and 1 warning in 1 file (178 ops, 22 files read in 0.31 s); 1
fixable with --fix; 1 suppressed, 4 baselined.
"""
    )


def test_wide(make_report: Make, differs: Diagnostic) -> None:
    assert (
        render(make_report(differs), 120)
        == """\
ops/norm.yaml:3:33  error SIG110 default-differs
  `eps` defaults to `1e-5` in the manifest and to `1e-6` in `__init__()`. Give both the same default
    2 │   params:
    3 │     eps: {type: float, default: 1e-5}
      │                                 ^^^^
    4 │   status: "100%, done"
      ├─ ops/norm.py:2:37
    1 │ class RMSNorm(Op):
    2 │     def __init__(self, eps: float = 1e-6) -> None:
      │                                     ---- the default that runs
  op: RMSNorm
  help: set the manifest's default to `1e-6` (safe fix: --fix)
    3 -     eps: {type: float, default: 1e-5}
      +     eps: {type: float, default: 1e-6}

Found 1 error in 1 file (178 ops, 22 files read in 0.31 s); 1 fixable with --fix.
"""
    )


def test_ascii_where_the_stream_has_no_box_drawing(make_report: Make) -> None:
    text = "note: naïve 字, " + "x" * 80
    assert (
        render(make_report(of(text, "字", "note"), files={"f": text}), 60, encoding="latin-1")
        == """\
f:1:13  error A1 n
  m
    1 | note: naïve \\u5b57, xxxxxxxxxxxxxxxxxxxxxxxxxxxx...
      | ---- other side
      |             ^^^^^^

Found 1 error in 1 file (178 ops, 22 files read in 0.31 s).
"""
    )


def test_colour_adds_only_ansi(make_report: Make, differs: Diagnostic, status: Diagnostic) -> None:
    report = make_report(differs, status)
    coloured = render(report, color=True)
    assert "\x1b[1;31merror SIG110\x1b[0m" in coloured
    assert "\x1b[1;33mwarning MAN101\x1b[0m" in coloured
    assert "\x1b[1m`eps`\x1b[0m defaults to" in coloured
    assert "\x1b[32m+     eps: {type: float, default: 1e-6}\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == render(report)


def test_the_gutter_has_contrast_on_black_and_on_white() -> None:
    """In 256 colours and above, and in the 16 of a terminal with rich's own palette."""
    color = Style.parse(GUTTER).color
    assert color is not None
    for system, least in ((ColorSystem.EIGHT_BIT, 4.5), (ColorSystem.STANDARD, 3.9)):
        shown = color.downgrade(system).get_truecolor(DEFAULT_TERMINAL_THEME).hex
        assert min(contrast(shown, "#000000"), contrast(shown, "#ffffff")) >= least


def test_piped_output_is_100_columns_without_ansi(
    make_report: Make, differs: Diagnostic, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    stream = io.StringIO()
    write(make_report(differs), stream)
    assert open_screen(stream).width == 100
    assert "\x1b" not in stream.getvalue()


def test_clean(make_report: Make) -> None:
    assert render(make_report()) == "All clean: 178 ops in 22 files, 0.31 s.\n"
    assert render(make_report(fixed=3, suppressed=1)) == (
        "All clean: 178 ops in 22 files, 0.31 s; 3 fixed; 1 suppressed.\n"
    )


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (
            {"partly": 1, "unresolved": 1, "mostly": "why"},
            "1 op not fully known: 1 place not understood (why; --show-unresolved)",
        ),
        (
            {"partly": 2, "unresolved": 3, "mostly": "why"},
            "2 ops not fully known: 3 places not understood (most often: why; --show-unresolved)",
        ),
        ({"unresolved": 1, "mostly": "why"}, "1 place not understood (why; --show-unresolved)"),
        ({"partly": 2}, "2 ops not fully known"),
    ],
)
def test_the_summary_counts_what_is_not_fully_known(make_report: Make, counts: dict[str, float], said: str) -> None:
    report = make_report(**counts)
    assert load_writer("concise")(report) == f"All clean: 178 ops in 22 files, 0.31 s; {said}.\n"
    summary = json.loads(load_writer("json")(report))["summary"]
    assert (summary["ops_partly_known"], summary["unresolved"]) == (
        counts.get("partly", 0),
        counts.get("unresolved", 0),
    )


def test_as_many_ops_as_fit(make_report: Make, differs: Diagnostic) -> None:
    ops = tuple(f"Elementwise{number}FwdOp" for number in range(30))
    many = make_report(msgspec.structs.replace(differs, ops=ops))
    (at_80,), (at_120,) = ([s for s in render(many, c).splitlines() if "ops:" in s] for c in (80, 120))
    assert at_80 == "  ops: Elementwise0FwdOp, Elementwise1FwdOp, Elementwise2FwdOp and 27 more"
    assert at_120 == (
        "  ops: Elementwise0FwdOp, Elementwise1FwdOp, Elementwise2FwdOp, Elementwise3FwdOp, "
        "Elementwise4FwdOp and 25 more"
    )


def test_messages_break_outside_backquotes(make_report: Make) -> None:
    found = at(0, 1, "the manifest must say how the op is called: declare `inputs: {x: float16}` there")
    assert body(make_report(found), 70).splitlines() == [
        "  the manifest must say how the op is called: declare",
        "  `inputs: {x: float16}` there",
    ]


def test_a_header_too_wide_takes_two_lines(make_report: Make) -> None:
    path = "tileops/manifest/elementwise_unary_activation.yaml"
    wide = msgspec.structs.replace(at(0, 1, path=path), name="a-name-that-does-not-fit")
    assert render(make_report(wide, files={path: "x"})).splitlines()[:3] == [
        "tileops/manifest/elementwise_unary_activation.yaml:1:1",
        "  error A1 a-name-that-does-not-fit",
        "  m",
    ]


def test_places_near_one_another_share_a_frame(make_report: Make) -> None:
    text = "one: 1\ntwo: 2\nthree: 3\nfour: 4\n\n\n\n\n\n\nlast: 5\n"
    assert (
        body(make_report(of(text, "two", "four", "2", "last"), files={"f": text}))
        == """\
  m
    1 │ one: 1
    2 │ two: 2
      │ ^^^
      │      - other side
    3 │ three: 3
    4 │ four: 4
      │ ---- other side
      ├─ f:11:1
   11 │ last: 5
      │ ---- other side
"""
    )


def test_a_long_line_is_cut_around_each_place(make_report: Make) -> None:
    row = "  - {shape: [4096, 4096], " + "pad: 0, " * 60 + 'dtypes: [float16], label: "fp16"}'
    text = f"rows:\n{row}\n"
    found = msgspec.structs.replace(
        of(text, "fp16", "4096", "float16"), fix=Fix("drop it", (replace(text, "fp16", ""),))
    )
    assert len(row) > 400
    assert (
        body(make_report(found, files={"f": text}), 80)
        == """\
  m
    1 │ rows:
    2 │   - {shape: [4096, 4096], pad: 0, pad: 0, pad: 0, pad: 0, pad: 0, pad:…
      │              ---- other side
    2 │ … 0, pad: 0, pad: 0, pad: 0, pad: 0, dtypes: [float16], label: "fp16"}
      │                                               ------- other side
      │                                                                 ^^^^
  help: drop it (safe fix: --fix)
    2 - … 0, pad: 0, pad: 0, pad: 0, pad: 0, dtypes: [float16], label: "fp16"}
      + … 0, pad: 0, pad: 0, pad: 0, pad: 0, dtypes: [float16], label: ""}
"""
    )


def test_a_message_that_does_not_fit_beside_its_underline_stands_below(make_report: Make) -> None:
    text = "x" * 50 + " yy\n"
    place = Place("f", Span(51, 53))
    found = msgspec.structs.replace(
        at(0, 1),
        related=(Related(place, "a message of quite some words, which takes two lines at this width"),),
    )
    assert (
        body(make_report(found, files={"f": text}), 64)
        == """\
  m
    1 │ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx yy
      │ ^
      │                                                    --
      │                a message of quite some words, which
      │                takes two lines at this width
"""
    )


@pytest.mark.parametrize(
    ("text", "part", "shown"),
    [
        pytest.param(
            "\tif x:\t\treturn\n",
            "return",
            "    1 │     if x:       return\n      │                 ^^^^^^\n",
            id="tabs",
        ),
        pytest.param(
            "'日本語', é e\u0301 名 # x\n",
            "名",
            "    1 │ '日本語', é é 名 # x\n      │               ^^\n",
            id="wide",
        ),
        pytest.param("a: 1\r\nb: 2\r\n", "b", "    1 │ a: 1\n    2 │ b: 2\n      │ ^\n", id="CRLF"),
        pytest.param(
            "def f(\n    x,\n):\n    pass\n",
            "def f(\n    x,\n):",
            "    1 │ def f(\n      │ ^^^^^… to line 3\n    2 │     x,\n",
            id="several lines",
        ),
        pytest.param("def f():\n\n", "f():\n\n", "    1 │ def f():\n      │     ^^^^\n", id="a line end inside"),
    ],
)
def test_underlines(text: str, part: str, shown: str, make_report: Make) -> None:
    assert body(make_report(of(text, part), files={"f": text})) == "  m\n" + shown


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [
        pytest.param(3, 3, "    1 │ a: 1\n      │    ^\n    2 │ b: 2\n", id="empty"),
        pytest.param(4, 4, "    1 │ a: 1\n      │     ^\n    2 │ b: 2\n", id="at a line's end"),
        pytest.param(99, 120, "    2 │ b: 2\n    3 │\n      │ ^\n", id="past the end"),
        pytest.param(6, 5, "    1 │ a: 1\n    2 │ b: 2\n      │  ^\n", id="backwards"),
    ],
)
def test_odd_spans_get_one_caret(start: int, end: int, shown: str, make_report: Make) -> None:
    assert body(make_report(at(start, end), files={"f": "a: 1\nb: 2\n"})) == "  m\n" + shown


def test_unreadable_files_have_no_frame(make_report: Make) -> None:
    gone = Diagnostic(
        "cannot be read",
        Place("gone", Span(5, 6)),
        (Related(Place("lost", Span(0, 1)), "needs it"),),
        code="A1",
    )
    assert (
        body(make_report(gone))
        == """\
  cannot be read
      ├─ lost: needs it
"""
    )


def test_at_most_eight_related_places(make_report: Make) -> None:
    lines = "".join(f"line {number}\n" for number in range(10, 90))
    found = of(lines, *[f"line {number}" for number in range(10, 90, 7)])
    assert body(make_report(found, files={"f": lines})).endswith("      ├─ and 3 more places\n")


def test_an_unsafe_fix_says_why(make_report: Make) -> None:
    """Two files, a line put in, and one taken out."""
    code, schema = "a = 1\nb = 2\nc = 3\n", "a: 1\nc: 3\n"
    edits = (replace(code, "b = 2\n", ""), FileEdit("g", Edit(Span(5, 5), "b: 2\n")))
    found = msgspec.structs.replace(at(6, 7), fix=Fix("move `b`", edits, "unsafe", "importers of `b` break"))
    assert (
        body(make_report(found, files={"f": code, "g": schema}))
        == """\
  m
    1 │ a = 1
    2 │ b = 2
      │ ^
    3 │ c = 3
  help: move `b` (unsafe fix: --unsafe-fixes, importers of `b` break)
    2 - b = 2
      ├─ g:2
    1   a: 1
      + b: 2
"""
    )


def test_of_a_large_fix_the_first_lines(make_report: Make) -> None:
    text = "".join(f"line {number}\n" for number in range(10, 50))
    edits = tuple(replace(text, f"line {number}", f"row {number}") for number in range(10, 50, 5))
    found = msgspec.structs.replace(at(0, 4), fix=Fix("rename", edits))
    assert body(make_report(found, files={"f": text})).splitlines()[-3:] == [
        "   16 - line 25",
        "      + row 25",
        "      ├─ 8 changed lines more with --diff",
    ]


def test_edits_that_collide_have_no_diff(make_report: Make) -> None:
    edits = (FileEdit("f", Edit(Span(0, 2), "x")), FileEdit("f", Edit(Span(1, 3), "y")))
    found = msgspec.structs.replace(at(0, 1), fix=Fix("both", edits))
    assert body(make_report(found, files={"f": "abc\n"})).endswith("  help: both (safe fix: --fix)\n")


def test_nothing_hostile_reaches_the_terminal(make_report: Make) -> None:
    evil = "\x1b[2J\x07\x9b\u202e\u2028"
    found = Diagnostic(
        f"{evil}\nf:1:1  error FORGED [bold]not markup[/bold]",
        Place("f", Span(0, 3)),
        (Related(Place("f", Span(1, 2)), evil),),
        Fix(f"t{evil}", (FileEdit("f", Edit(Span(0, 1), evil)),), "unsafe", evil),
        (evil,),
        "A1",
        evil,
    )
    written = render(make_report(found, files={"f": f"{evil}: [red]x[/red] # \rnext"}), 100)
    assert written.replace("\n", "").isprintable()
    assert "  \\x1b[2J\\x07\\x9b\\u202e\\u2028\\nf:1:1  error FORGED [bold]not markup[/bold]\n" in written
    assert "    1 │ \\x1b[2J\\x07\\x9b\\u202e\\u2028: [red]x[/red] #\n" in written


CHARACTERS = st.one_of(st.characters(), st.sampled_from("\t\r\n字\u200d\x1b ax"))
TEXTS, OFFSETS = st.text(CHARACTERS, max_size=200), st.integers(0, 220)


@given(text=TEXTS, new=TEXTS, start=OFFSETS, end=OFFSETS, other=OFFSETS, columns=st.integers(50, 130))
def test_any_text_is_shown_within_the_width(
    text: str, new: str, start: int, end: int, other: int, columns: int, make_report: Make
) -> None:
    found = msgspec.structs.replace(
        at(start, end),
        related=(Related(Place("f", Span(other, other + 5)), "the other side"),),
        fix=Fix("fix it", (FileEdit("f", Edit(Span(min(start, end), max(start, end)), new)),)),
    )
    written = render(make_report(found, files={"f": text}), columns)
    assert re.sub("[\n\u200c\u200d\u3000]", "", written).isprintable()
    assert max(map(cell_len, written.splitlines())) <= columns


def test_a_backquote_without_a_partner_stays(make_report: Make) -> None:
    found = msgspec.structs.replace(at(0, 1), message="`a` and `b, c")
    assert body(make_report(found, files={"f": "x"})).startswith("  `a` and `b, c\n")
    assert "\x1b[1m`a`\x1b[0m and `b, c\n" in render(make_report(found, files={"f": "x"}), color=True)


@pytest.mark.parametrize("variable", ["NO_COLOR", "TERM"])
def test_no_escape_where_none_is_wanted(make_report: Make, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, {"NO_COLOR": "1", "TERM": "dumb"}[variable])
    assert "\x1b" not in render(make_report(at(0, 1), files={"f": "x"}), color=True)


def test_what_is_shown_does_not_wait_for_what_follows(make_report: Make) -> None:
    stream = io.StringIO()

    def found() -> Iterator[Diagnostic]:
        yield at(0, 1)
        assert stream.getvalue().startswith("f:1:1"), "the first is out before the second is drawn"
        yield at(1, 2)

    class Once(list[Diagnostic]):
        def __iter__(self) -> Iterator[Diagnostic]:
            return found()

    report = make_report(at(0, 1), at(1, 2), files={"f": "xy"})
    write(msgspec.structs.replace(report, diagnostics=Once(report.diagnostics)), stream)
    assert stream.getvalue().count("error A1 n") == 2
