"""C++ in the strings that a Python file gives to load_inline."""

from __future__ import annotations

import pytest

from opschema_cli.source.enclosing_functions import EnclosingFunction
from opschema_cli.source.inline_cpp import Compilation, compilation, inline_cpp
from tests.scaling import check_linear

BLOCK = "TORCH_LIBRARY(kit, m) { m.def(); }"


def words(text: str) -> str | None:
    """The C++ of a file, in one line."""
    found = inline_cpp(text)
    assert found is None or len(found) == len(text)
    return " ".join(found.split()) if found is not None else None


@pytest.mark.parametrize(
    "text",
    [
        f'load_inline("kit", cpp_sources="{BLOCK}")',
        f"load_inline('kit', cpp_sources=['{BLOCK}'], functions=['f'], extra_cflags=['-O1'])",
        f'CODE = r"""{BLOCK}"""\nload_inline(name=name, cpp_sources=CODE)',
        f"CODE: Final = (\n    '{BLOCK}'\n)\nx = cpp_extension.load_inline(name, [CODE], verbose=True)",
        f'CODE = textwrap.dedent("""{BLOCK}""")\n\ndef build():\n    return load_inline(name, cpp_sources=CODE)',
        f'"""TORCH_LIBRARY(not, this) {{"""\n# "quoted\nCODE = """{BLOCK}"""\nload_inline(name, CODE)\n',
        f'CODE = "{BLOCK}"\nif gpu:\n    load_inline(name, CODE)\n',
        'CODE = ("TORCH_LIBRARY(kit, m) {"  # opens\n" m.def(); }")\nload_inline(name, CODE)',
    ],
)
def test_strings_that_are_compiled_are_read_at_their_places(text: str) -> None:
    assert words(text) == BLOCK


def test_places_stay_and_other_strings_are_blank() -> None:
    text = f'A = "int a();"\r\nB = r"""\r\n#define X \\\r\n  1\r\n{BLOCK}"""\r\nload_inline("kit", [A, B])\r\n'
    found = inline_cpp(text)
    assert found is not None
    assert found.index("TORCH_LIBRARY") == text.index("TORCH_LIBRARY")
    assert (found.count("\n"), "#define X \\\r\n" in found, "A =" in found) == (text.count("\n"), True, False)


@pytest.mark.parametrize(
    "text",
    [
        f'CODE = """{BLOCK}"""\n',  # never compiled
        f'load_inline(name, cpp_sources=f"{BLOCK}")',
        f'load_inline(name, cpp_sources="{BLOCK}".replace("kit", name))',
        f'CODE = "{BLOCK}" % name\nload_inline(name, CODE)',
        f'CODE = "{BLOCK}"\nload_inline(name, CODE.format(a=1))',
        f'CODE = "{BLOCK}\\n"\nload_inline(name, CODE)',  # an escape
        f'CODE = "{BLOCK}"\nif gpu:\n    CODE = "{BLOCK}"\nload_inline(name, CODE)',  # one of two
        f'CODE = ("{BLOCK}" if gpu else "")\nload_inline(name, CODE)',
        f'def load_inline(name, code="{BLOCK}"): ...',
        f'load_inline(name, "{BLOCK}"',  # does not end
        f'load_inline(name, "{BLOCK})',
        'load_inline(name, "int a();")'.replace("load_inline", "load"),
    ],
)
def test_what_is_not_surely_compiled_as_it_is_written_is_not_read(text: str) -> None:
    assert inline_cpp(text) is None


def test_a_call_is_at_top_level_or_in_a_function() -> None:
    assert compilation("from t import load_inline\next = load_inline(\n  name)\n").at_top_level
    assert not compilation("def f():\n    load_inline(name)\n'''\nload_inline(x)'''\n").at_top_level


@pytest.mark.parametrize(
    ("head", "takes_nothing"),
    [
        ("build()", True),
        ("build(verbose: bool = False, *flags, **more) -> None", True),
        ("build(\n    verbose=max(1, 2),\n)", True),
        ("build(*, name='a, b')", True),
        ("build(name)", False),
        ("build(verbose=True, *, name: dict[str, int])", False),
    ],
)
def test_functions_that_compile(head: str, takes_nothing: bool) -> None:
    text = f"import os\n\n\n@lru_cache\ndef {head}:\n    if x:\n        return load_inline(name)\n\n\nbuild = json.load(x)\n"
    assert compilation(text).functions == (EnclosingFunction("build", takes_nothing),)


def test_methods_that_compile_are_no_functions() -> None:
    text = "class Extension:\n    def build(self):\n        return cpp_extension.load(name)\n"
    assert compilation(text) == Compilation()


@pytest.mark.parametrize(
    "part",
    [
        '"',
        '"a" ',
        "load_inline(",
        "x = '''",
        "'\\",
        "[",
        'load_inline("',
        "A = 'b'\n",
        "load_inline('') ",
        "load_inline(a, b, c)\n",
    ],
)
def test_time_is_linear(part: str) -> None:
    check_linear(lambda count: lambda: inline_cpp(part * count), 5_000)
