"""Files that are malformed end no migration: what cannot be read is left as it is."""

from __future__ import annotations

import re

import pytest

from opschema_cli.testing import migrate_files
from opschema_rules.aten.pack import PACK

NATIVE, BACKEND = "native_functions.yaml", "backend.yaml"

GOOD = """\
- func: abs(Tensor self) -> Tensor
  dispatch:
    CPU: abs
- func: abs.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: abs_out
"""

ENTRIES = [
    "- 1\n- null\n- [abs]\n",
    "- func: 3\n- func: null\n- func: [abs()]\n- func: {a: b}\n- {}\n",
    "- func: abs(Tensor self\n  dispatch: CPU\n",
    "- func: sin(Tensor self) -> Tensor\n  dispatch: [CPU, CUDA]\n",
    "- func: sin(Tensor self) -> Tensor\n  dispatch: {CPU: 1, 2: sin, null: null, ',': y}\n",
    "- func: sin(Tensor self) -> Tensor\n  dispatch: {? [CPU] : sin}\n",
    "- func: sin(Tensor self) -> Tensor\n  ? dispatch\n  : CPU: sin\n  ? variants\n  : function\n",
    "- &a\n  func: sin(Tensor self) -> Tensor\n  dispatch: {CPU: sin}\n  variants: function\n- *a\n",
    "- <<: {dispatch: {CPU: sin}}\n  func: sin(Tensor self) -> Tensor\n",
    "- func: sin(Tensor self) -> Tensor\n  dispatch:\n    CPU: |\n      sin\n    ? |\n      CPU\n    : sin\n",
    "- func: abs(Tensor self) -> Tensor\n  structured_delegate: 3\n  structured: maybe\n  device_guard: maybe\n",
    "- func: sin(Tensor self) -> Tensor\n  dispatch: {CPU: sin}\n  dispatch: {CPU: sin}\n  variants:\n",
]

LISTS = [
    "supported: abs\nfull_codegen: {abs: abs}\n",
    "supported:\n- 1\n- null\n- [abs]\n- {abs: 1}\n- {a: b, c: d}\n- - abs\n- abs\n",
    "supported: [abs, abs]\nsymint: abs\nfull_codegen: null\n",
    "supported: [abs, # all\n  sin]\n",
    "supported:\n- abs\nsupported:\n- abs\n",
    "? supported\n: - abs\n  - _sin\n",
    "supported: &list\n- abs\nfull_codegen: *list\n",
    "supported: !!seq\n- sin\n- abs\n",
    "supported:\n- &x abs\n- *x\n",
    "supported:\n- sin\u2028# x\n- abs\n",
    "supported:\n  # x\n- sin\n     # y\n # z\n- abs\n   # w",
    "supported:\n- |\n  sin\n- >-\n  abs\n- 'a\n  bs'\n",
]

OF_ENTRIES = [
    ("rename-dispatch-key", ["from=CPU", "to=CUDA"]),
    ("drop-entry-field", ["field=dispatch"]),
    ("drop-entry-field", ["field=variants"]),
    ("structured-port", ["op=abs"]),
    ("structured-port", ["op=abs,abs.out", "inherits=TensorIteratorBase"]),
]

OF_LISTS = [
    ("move-supported", ["ops=a*", "to=full_codegen"]),
    ("move-supported", ["ops=*", "to=symint"]),
    ("move-supported", ["ops=*", "to=autograd", "from=supported"]),
    ("sort-lists", []),
]


@pytest.mark.parametrize(("name", "options"), OF_ENTRIES)
@pytest.mark.parametrize("entries", ENTRIES)
def test_entries(entries: str, name: str, options: list[str]) -> None:
    done = migrate_files(PACK, name, {NATIVE: GOOD + entries}, options)
    assert len(done.files[NATIVE]) > len(entries)


@pytest.mark.parametrize(("name", "options"), OF_LISTS)
@pytest.mark.parametrize("lists", LISTS)
def test_lists(lists: str, name: str, options: list[str]) -> None:
    text = f"backend: CPU\ncpp_namespace: at\nautograd:\n- abs\n{lists}"
    done = migrate_files(PACK, name, {BACKEND: text}, options)
    noted = " ".join(done.notes())
    assert all(text in done.files[BACKEND] or text in noted for text in re.findall("# .*", lists))
