"""Inline suppressions in C++, after `//` or in `/* */`: what they cover, how unused ones are deleted, the edit that adds one."""

from __future__ import annotations

import time

import pytest

from opschema_cli.lint.registry import Registry, load_registry
from opschema_cli.lint.suppression_edit import suppressing_edit
from opschema_cli.source.text import Source, apply_edits
from opschema_cli.testing import fix_files, lint_files
from opschema_rules.torchlib.pack import PACK

KERNEL = "at::Tensor scale(const at::Tensor& x, float factor) {"
CODE = f"""\
#include <torch/library.h>

{KERNEL}
  return x * factor;
}}

TORCH_LIBRARY(kit, m) {{ m.def("scale(Tensor x, float factor) -> Tensor"); }}
TORCH_LIBRARY_IMPL(kit, CPU, m) {{ m.impl("scale", scale); }}
"""
RULES = ("REG502", "SUP")


def codes(text: str) -> list[str]:
    return lint_files([PACK], {"kit.cpp": text}, RULES).codes()


def at_kernel(line: str) -> str:
    return CODE.replace(KERNEL, line)


@pytest.mark.parametrize(
    "line",
    [
        f"{KERNEL}  // opschema: ignore[REG502] it is cast",
        f"{KERNEL}  //opschema:ignore[cpp-kernel-type]",
        f"{KERNEL}  /// opschema: ignore[REG5]",
        f"{KERNEL}  // # opschema: ignore[REG502]",
        f"{KERNEL}  // NOLINT  // opschema: ignore[REG502] both",
        f"{KERNEL}  /* opschema: ignore[REG502] */",
        f"/* opschema: ignore[REG502] */ {KERNEL}",
        f"// opschema: ignore[REG502] see #12\n{KERNEL}",
        f"// opschema: ignore[REG502]\n/* more\n * of it */\n\n// and more\n{KERNEL}",
        f"/*\n * opschema: ignore[REG502]\n */\n{KERNEL}".replace(" * opschema", " * # opschema"),
    ],
)
def test_a_comment_covers_its_line_or_the_next_with_code(line: str) -> None:
    assert codes(at_kernel(line)) == []
    assert codes(at_kernel(line).replace("\n", "\r\n")) == []


@pytest.mark.parametrize(
    "line",
    [
        KERNEL,
        f"// opschema: ignore[REG502]\n#define X 1\n{KERNEL}",
        f'// opschema: ignore[REG502]\nconst char* text =\n"x";\n{KERNEL}',
        f"{KERNEL} // see http://opschema: ignore[REG502]",
    ],
)
def test_no_other_line_is_covered(line: str) -> None:
    assert "REG502" in codes(at_kernel(line))


@pytest.mark.parametrize(
    "line",
    [
        f'{KERNEL} auto text = "// opschema: ignore[REG502]";',
        f'{KERNEL} auto text = "# opschema: ignore[REG502]";',
        f'{KERNEL} auto text = R"(\n// opschema: ignore[REG502]\n)";',
    ],
)
def test_text_is_no_directive(line: str) -> None:
    assert codes(at_kernel(line)) == ["REG502"]


def test_ignore_file_stands_above_the_first_code() -> None:
    assert codes(f"// Copyright.\n// opschema: ignore-file[REG502] generated\n{CODE}") == []
    assert codes(CODE.replace("<torch/library.h>\n", "<torch/library.h>\n// opschema: ignore-file[REG502]\n")) == [
        "SUP001",
        "REG502",
    ]


def test_one_without_a_rule_is_told_in_the_words_of_cpp() -> None:
    linted = lint_files([PACK], {"kit.cpp": at_kernel(f"{KERNEL}  // opschema: ignore")}, RULES)
    assert "SUP002" in linted.codes()
    assert [item.message for item in linted.diagnostics if item.code == "SUP002"] == [
        "this suppression names no rule; write `// opschema: ignore[CODE] why`"
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int f();  // opschema: ignore[REG502] old\n", "int f();\n"),
        ("// opschema: ignore[REG502] old\nint f();\n", "int f();\n"),
        ("/* opschema: ignore[REG502] */ int f();\n", " int f();\n"),
        ("int /* opschema: ignore[REG502] old */ f();\n", "int  f();\n"),
        ("  /* opschema: ignore[REG502] */\nint f();\n", "int f();\n"),
        ("int f();  // NOLINT // opschema: ignore[REG502] old\n", "int f();  // NOLINT\n"),
        ("int f();  // opschema: ignore[REG502] old // NOLINT\n", "int f();  // NOLINT\n"),
        ("int f();  // opschema: ignore[REG502] old # NOLINT\n", None),
        ("int f();  /* opschema: ignore[REG502] // old */\n", None),
        ("int f();  /* a\n # opschema: ignore[REG502] */\n", None),
        ("int f();  /* opschema: ignore[REG502]\n more */ int g();\n", None),
    ],
)
def test_the_fix_of_an_unused_one_deletes_the_comment_and_no_code(before: str, after: str | None) -> None:
    kernel = CODE.replace("float factor) {", "double factor) {")
    assert codes(kernel + before) == ["SUP001"]
    texts, _ = fix_files([PACK], {"kit.cpp": kernel + before}, RULES)
    assert texts.get("kit.cpp", kernel + before) == kernel + (before if after is None else after)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry()


def suppressed(path: str, text: str, at: str, registry: Registry) -> str | None:
    source = Source(path, text)
    edit = suppressing_edit(source, text.index(at), "REG502", registry, lambda _: None, lambda _: None)
    return apply_edits(text, [edit]) if edit is not None else None


def test_an_editor_suppresses_in_the_comments_of_the_language(registry: Registry) -> None:
    after = suppressed("kit.cpp", CODE, "float", registry)
    assert after == at_kernel(f"{KERNEL}  // opschema: ignore[REG502]")
    assert codes(after) == []
    assert suppressed("CMakeLists.txt", "set(OPS a)\n", "a)", registry) == "set(OPS a)  # opschema: ignore[REG502]\n"
    assert suppressed("presets.json", '{"OPS": "a"}\n', "a", registry) is None


def test_an_editor_does_not_break_continued_lines(registry: Registry) -> None:
    macro = "#define F(x) \\\n  f(x); \\\n  g(x)\nint h();\n"
    assert suppressed("kit.cpp", macro, "F(x)", registry) == f"// opschema: ignore[REG502]\n{macro}"
    assert suppressed("kit.cpp", macro, "f(x)", registry) is None
    assert suppressed("kit.cpp", macro, "g(x)", registry) == macro.replace("g(x)", "g(x)  // opschema: ignore[REG502]")


@pytest.mark.parametrize("part", ["/", "/*", "#", "# ", "// ", "/ ", "/* opschema: ", "// opschema: ignore[\n"])
def test_the_search_takes_linear_time(part: str, registry: Registry) -> None:
    text = "// opschema:\n//" + part * (200_000 // len(part))
    started = time.process_time()
    suppressed("kit.cpp", text, "opschema", registry)
    assert time.process_time() - started < 5
