"""Rules on C++ in strings that Python files give to load_inline."""

from __future__ import annotations

from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK

OPS = """
from torch.utils.cpp_extension import load_inline

PLAIN = '''
at::Tensor pinch(const at::Tensor& x, int64_t n) {{ return x / n; }}
TORCH_LIBRARY(ferro, m) {{
  m.def("pinch(Tensor x, {type} n) -> Tensor");
  m.impl("pinch", &pinch);
}}
'''
"""
CALL = 'load_inline("ferro", cpp_sources=PLAIN, is_python_module=False)\n'
TWO = "if gpu:\n    load_inline('ferro', cuda_sources=FAST)\nelse:\n    load_inline('ferro', PLAIN)\n"


def found(text: str) -> list[tuple[str, str]]:
    linted = lint_files([PACK], {"ops.py": text})
    return [(item.code, text[item.place.span.start : item.place.span.end]) for item in linted.diagnostics]


def test_a_kernel_is_compared_with_its_schema_at_its_place_in_the_string() -> None:
    assert found(OPS.format(type="int") + CALL) == []
    assert found(OPS.format(type="float") + CALL) == [("REG501", "int64_t n")]


def test_nothing_is_reported_of_a_string_that_is_not_compiled_as_it_is() -> None:
    wrong = OPS.format(type="float")
    assert found(wrong) == []
    assert found(wrong + CALL.replace("=PLAIN", "=PLAIN.replace('float', kind)")) == []


def test_one_of_two_alternatives_is_compiled() -> None:
    first = OPS.format(type="int")
    assert found(first + first.replace("PLAIN", "FAST") + TWO) == []
