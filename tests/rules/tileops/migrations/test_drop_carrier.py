"""`drop-carrier`: carriers in every shape, what is left of the ops, and the ops that are left alone."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from opschema_cli.testing import Migrated, lint_files, migrate_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

FIXTURES = Path(__file__).parents[4] / "fixtures"
OP, YAML = "kit/ops/example.py", "kit/manifest/example.yaml"
CODES = ["CAR101", "CAR102", "CAR103", "CAR104", "CAR105", "CAR106"]

ENTRY = """\
signature:
  inputs:
    like: {dtype: "float16 | float32", shape: "[]"}
  outputs:
    y: {dtype: "same_as(like)", shape: "[n]"}
  params:
    n: {type: int}
  shape_rules: ["n > 0"]
workloads:
  - {like_shape: [], n: 4, dtypes: [float16], label: "small"}
  - {like_shape: [], n: 1024, dtypes: [float16, float32], label: "large"}
roofline: {flops: "n", bytes: "n * elem_bytes"}
"""

CLASS = """\
class ExampleFwdOp(Op):
    _op_name = "example"
    _wrapped = None

    def __init__(self, n: int, dtype: torch.dtype, *, kernel_map=None):
        self.n = n
        # torch.compile traces tensors, and this op has none.
        self._like = torch.empty((), dtype=dtype, device="cuda")
        self._key = id(self)
        REGISTRY[self._key] = self

    def _eager(self):
        return self.kernel_map["example"](self.n)

    def forward(self) -> torch.Tensor:
        wrapped = type(self)._wrapped
        if wrapped is not None:
            return wrapped(self._like, self.n, self._key)
        return self._eager()
"""

REGISTRATION = """\


REGISTRY = {}


def _register(op_cls, fake):
    op_name = op_cls._op_name

    @torch.library.custom_op(f"top::elementwise_{op_name}", mutates_args=())
    def _wrapped(like: torch.Tensor, n: int, key: int) -> torch.Tensor:
        return REGISTRY[key]._eager()

    @_wrapped.register_fake
    def _(like: torch.Tensor, n: int, key: int) -> torch.Tensor:
        return fake(like, n)

    op_cls._wrapped = _wrapped


_register(ExampleFwdOp, fake=lambda like, n: like.new_empty((n,)))
"""

MIGRATED = """\
class ExampleFwdOp(Op):
    _op_name = "example"

    def __init__(self, n: int, dtype: torch.dtype, *, kernel_map=None):
        self.n = n

    def forward(self) -> torch.Tensor:
        return self.kernel_map["example"](self.n)
"""


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """``text`` with each pair's first half, which it holds once, replaced by the second."""
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def workspace(code: str, entry: str = ENTRY, **files: str) -> dict[str, str]:
    return example_files([("yaml", entry), ("python", code)]) | files


def migrated(code: str, entry: str = ENTRY, **files: str) -> Migrated:
    """The workspace without carriers; that none is left, and that a second run changes nothing, is checked."""
    found = migrate_files(PACK, "drop-carrier", workspace(code, entry, **files))
    assert lint_files([PACK], found.files, CODES).codes() == []
    return found


def left(code: str, entry: str = ENTRY, **files: str) -> list[str]:
    """The reasons why nothing of a workspace is migrated."""
    before = workspace(code, entry, **files)
    found = migrate_files(PACK, "drop-carrier", before)
    assert found.files == before
    assert [site.status for site in found.result.sites] == ["left"] * len(found.result.sites)
    return [item.note.message for item in found.result.notes]


def class_of(found: Migrated) -> str:
    """The op's module below its imports."""
    text = found.files[OP]
    return text[text.index("class ") :]


def entry_of(found: Migrated, first: str, last: str) -> str:
    """The entry from one key to the line before another."""
    text = textwrap.dedent(found.files[YAML].partition("\n")[2])
    return text[text.index(first) : text.index(last)]


def test_both_sides_of_a_carrier() -> None:
    found = migrated(CLASS + REGISTRATION)
    assert class_of(found) == MIGRATED
    assert (
        entry_of(found, "signature:", "roofline:")
        == changed(
            ENTRY,
            ('inputs:\n    like: {dtype: "float16 | float32", shape: "[]"}\n', "inputs: {}\n"),
            ("same_as(like)", "float16 | float32"),
            ("n: {type: int}\n", "n: {type: int}\n    dtype: {type: torch.dtype}\n"),
            ("{like_shape: [], n: 4, dtypes: [float16]", "{n: 4, dtype: float16, dtypes: [float16]"),
            (
                '  - {like_shape: [], n: 1024, dtypes: [float16, float32], label: "large"}\n',
                '  - {n: 1024, dtype: float16, dtypes: [float16], label: "large"}\n'
                '  - {n: 1024, dtype: float32, dtypes: [float32], label: "large-2"}\n',
            ),
        ).partition("roofline:")[0]
    )
    assert found.sites() == [f"{YAML}:7: drop the carrier `like` of ExampleFwdOp"]
    assert found.notes() == [
        f"{OP}:7: without a custom op, `ExampleFwdOp` runs eagerly: `torch.compile` does not take it as one operator"
    ]


# The manifest


BLOCK_ENTRY = """\
signature:
  inputs:
    # Nobody passes `like`.
    like:
      dtype: 'float16 | float32'  # of the output
      shape: "[]"
  outputs:
    y:
      dtype: 'same_as(like)'
      shape: "[n]"
  params:
    n:
      type: int
  shape_rules: ["n > 0"]
workloads:
  - like_shape: []
    n: 4
    dtypes: ["float16"]
    label: small  # fits a tile
  # two dtypes
  - n: 1024
    dtypes:
      - float16
      - float32
    like_shape: []
    label: large
roofline: {flops: "n", bytes: "n * elem_bytes"}
"""

BLOCK_RESULT = """\
signature:
  inputs: {}
  outputs:
    y:
      dtype: 'float16 | float32'
      shape: "[n]"
  params:
    n:
      type: int
    dtype:
      type: torch.dtype
  shape_rules: ["n > 0"]
workloads:
  - n: 4
    dtype: float16
    dtypes: ["float16"]
    label: small  # fits a tile
  # two dtypes
  - n: 1024
    dtype: float16
    dtypes:
      - float16
    label: large
  - n: 1024
    dtype: float32
    dtypes:
      - float32
    label: large-2
"""


def test_block_style_keeps_its_quotes_and_comments() -> None:
    assert entry_of(migrated(CLASS + REGISTRATION, BLOCK_ENTRY), "signature:", "roofline:") == BLOCK_RESULT


def test_a_dtype_keeps_its_comment() -> None:
    listed = '\n    dtypes:  # both\n    - "float16"   # fast\n    # the reference\n    - float32  # exact\n    label: "large"\n'
    row = '  - {like_shape: [], n: 1024, dtypes: [float16, float32], label: "large"}\n'
    found = migrated(CLASS + REGISTRATION, changed(ENTRY, (row, "  - like_shape: []\n    n: 1024" + listed)))
    text = found.files[YAML]
    assert text.count("# fast") == text.count("# the reference") == text.count("# exact") == 1
    assert text.count("# both") == 2


def test_flow_style_all_the_way() -> None:
    entry = """\
signature: {inputs: {like: {dtype: float16 | float32, shape: "[]"}}, outputs: {y: {dtype: same_as(like), shape: "[n]"}},
  params: {n: {type: int}}, shape_rules: ["n > 0"]}
workloads: [{like_shape: [], n: 4, dtypes: [float16], label: s}, {n: 8, like_shape: [], dtypes: [float16, float32], label: l}]
roofline: {flops: "n", bytes: "n * elem_bytes"}
"""
    assert entry_of(migrated(CLASS + REGISTRATION, entry), "signature:", "roofline:") == (
        'signature: {inputs: {}, outputs: {y: {dtype: float16 | float32, shape: "[n]"}},\n'
        '  params: {n: {type: int}, dtype: {type: torch.dtype}}, shape_rules: ["n > 0"]}\n'
        "workloads: [{n: 4, dtype: float16, dtypes: [float16], label: s}, "
        "{n: 8, dtype: float16, dtypes: [float16], label: l}, {n: 8, dtype: float32, dtypes: [float32], label: l-2}]\n"
    )


PARAMS = {
    "default": (
        ("dtype: torch.dtype,", "dtype: torch.dtype = torch.float16,"),
        "    n: {type: int}\n    dtype: {type: torch.dtype, default: float16}\n",
    ),
    "none-as-default": (
        ("dtype: torch.dtype,", "dtype: torch.dtype | None = None,"),
        "    n: {type: int}\n    dtype: {type: torch.dtype | None, default: null}\n",
    ),
    "before-its-neighbour": (
        ("n: int, dtype: torch.dtype,", "dtype: torch.dtype, n: int,"),
        "    dtype: {type: torch.dtype}\n    n: {type: int}\n",
    ),
    "keyword-only": (
        ("n: int, dtype: torch.dtype, *,", "n: int, *, dtype: torch.dtype,"),
        "    n: {type: int}\n    dtype: {type: torch.dtype, kw_only: true}\n",
    ),
}


@pytest.mark.parametrize(("change", "params"), PARAMS.values(), ids=PARAMS)
def test_the_parameter_is_declared_as_the_constructor_has_it(change: tuple[str, str], params: str) -> None:
    found = migrated(changed(CLASS, change) + REGISTRATION)
    assert entry_of(found, "    n: {type: int}" if "n:" in params[:6] else "    dtype:", "  shape_rules") == params


SOURCES = {
    "by-another-name": [("dtype: torch.dtype", "out_dtype: torch.dtype"), ("dtype=dtype", "dtype=out_dtype")],
    "of-two-dtypes": [
        ("dtype: torch.dtype", "in_dtype: torch.dtype, out_dtype: torch.dtype"),
        ("dtype=dtype", "dtype=out_dtype"),
    ],
    "kept-first": [
        ("dtype: torch.dtype", "out_dtype: torch.dtype"),
        ("self.n = n\n", "self.n = n\n        self.dtype = out_dtype\n"),
        ("dtype=dtype", "dtype=self.dtype"),
    ],
}


@pytest.mark.parametrize("changes", SOURCES.values(), ids=SOURCES)
def test_the_parameter_is_the_one_that_the_tensor_is_made_with(changes: list[tuple[str, str]]) -> None:
    text = migrated(changed(CLASS, *changes) + REGISTRATION).files[YAML]
    assert "      out_dtype: {type: torch.dtype}\n" in text
    assert "{n: 4, out_dtype: float16, dtypes: [float16]" in text


def test_the_base_class_makes_the_tensor_and_the_subclass_passes_the_dtype_on() -> None:
    base = changed(CLASS, ("ExampleFwdOp", "Synthesised"), ('    _op_name = "example"\n', ""))
    code = base + textwrap.dedent("""

        class ExampleFwdOp(Synthesised):
            _op_name = "example"

            def __init__(self, out: torch.dtype, n: int, *, kernel_map=None):
                super().__init__(n, dtype=out, kernel_map=kernel_map)
    """)
    found = migrated(code + REGISTRATION)
    assert "    params:\n      out: {type: torch.dtype}\n      n: {type: int}\n" in found.files[YAML]
    assert "_like" not in found.files[OP]
    assert "def _register" not in found.files[OP]


def test_a_restriction_of_the_carrier_narrows_what_it_lent() -> None:
    entry = changed(
        ENTRY,
        ('shape_rules: ["n > 0"]', 'shape_rules: ["n > 0", "like.shape == ()"]\n  dtype_combos: [{like: float16}]'),
    )
    found = migrated(CLASS + REGISTRATION, entry)
    assert entry_of(found, "  outputs:", "  params:") == '  outputs:\n    y: {dtype: "float16", shape: "[n]"}\n'
    assert entry_of(found, "  shape_rules", "workloads") == '  shape_rules: ["n > 0"]\n'


# Code


FORWARDS = {
    "no-other-way": "return type(self)._wrapped(self._like, self.n, self._key)",
    "absent-first": (
        "wrapped = type(self)._wrapped\nif wrapped is None:\n    return self._eager()\n"
        "return wrapped(\n    self._like,\n    self.n,\n    self._key,\n)"
    ),
    "tested-on-the-spot": (
        "if self._wrapped is not None:\n    return self._wrapped(self._like, self.n, self._key)\nreturn self._eager()"
    ),
    "walrus": "if (op := type(self)._wrapped) is not None:\n    return op(self._like, self.n, self._key)\nreturn self._eager()",
    "else": (
        "op = self._wrapped\nif op:\n    return op(self._like, self.n, self._key)\nelse:\n    return self._eager()"
    ),
    "ternary": "op = self._wrapped\nreturn op(self._like, self.n, self._key) if op else self._eager()",
    "by-keyword": "op = self._wrapped\nreturn op(key=self._key, n=self.n, like=self._like)",
    "local": "tensor = self._like\nreturn self._wrapped(tensor, self.n, self._key)",
    "by-name": "return torch.ops.top.elementwise_example(self._like, self.n, self._key)",
}


@pytest.mark.parametrize("body", FORWARDS.values(), ids=FORWARDS)
def test_forward_runs_what_the_custom_op_ran(body: str) -> None:
    head = CLASS[: CLASS.index("        wrapped = ")]
    assert class_of(migrated(head + textwrap.indent(body, "        ") + "\n" + REGISTRATION)) == MIGRATED


MAKERS = {
    "method": ("self._like = self._make(dtype)", "    def _make(self, dtype):\n        return torch.empty((), dtype=dtype)\n\n"),
    "other-method": (
        "self._prepare(dtype)",
        "    def _prepare(self, dtype):\n        self._like = torch.empty((), dtype=dtype)\n\n",
    ),
    "branches": (
        "if n:\n            self._like = torch.empty((), dtype=dtype)\n"
        "        else:\n            self._like = torch.ones((), dtype=dtype)",
        "",
    ),
    "annotated": ("self._like: torch.Tensor = torch.empty((), dtype=dtype)", ""),
    "local": ("tensor = torch.empty((), dtype=dtype)\n        self._like = tensor", ""),
    "squeezed": ("self._like = torch.zeros(1, dtype=dtype).squeeze()", ""),
    "reshaped": ("self._like = torch.zeros(1, dtype=dtype).reshape(())", ""),
    "element": ("self._like = torch.zeros(1, dtype=dtype)[0]", ""),
    "element-of-a-local": ("tensor = torch.zeros(1, dtype=dtype)[0]\n        self._like = tensor", ""),
    "new": ("self._like = kernel_map.to(dtype).new_empty(())", ""),
    "converted": ("self._like = torch.empty((), device='cuda').to(dtype)", ""),
    "expanded": ("self._like = torch.ones((), dtype=dtype).expand(())", ""),
    "setattr": ('setattr(self, "_like", torch.tensor(0.0, dtype=dtype))', ""),
    "setattr-local": ('tensor = torch.zeros([], dtype=dtype)\n        setattr(self, "_like", tensor)', ""),
    "setattr-and-assigned": (
        'self._like = None\n        if n:\n            setattr(self, "_like", torch.zeros([], dtype=dtype))', "",
    ),
    "buffer": ('self.register_buffer("_like", torch.zeros([], dtype=dtype), persistent=False)', ""),
    "buffer-in-a-method": (
        "self._prepare(dtype)",
        "    def _prepare(self, dtype):\n"
        '        self.register_buffer("_like", torch.empty((), dtype=dtype), persistent=False)\n\n',
    ),
    "no-grad": ('with torch.no_grad(), torch.device("cuda"):\n            self._like = torch.empty((), dtype=dtype)', ""),
}  # fmt: skip


@pytest.mark.parametrize(("write", "helper"), MAKERS.values(), ids=MAKERS)
def test_what_only_made_the_tensor_goes_with_it(write: str, helper: str) -> None:
    code = changed(
        CLASS,
        ('self._like = torch.empty((), dtype=dtype, device="cuda")', write),
        ("    def forward(", helper + "    def forward("),
        ("        # torch.compile traces tensors, and this op has none.\n", ""),
    )
    assert class_of(migrated(code + REGISTRATION)) == MIGRATED


@pytest.mark.parametrize(
    ("opening", "inside"), [("with open_log():", ""), ("with torch.no_grad():", "            self.scale = make(n)\n")]
)
def test_a_block_that_does_more_than_to_make_the_tensor_stays(opening: str, inside: str) -> None:
    write = f"{opening}\n{inside}            self._like = torch.empty((), dtype=dtype)"
    code = changed(CLASS, ('self._like = torch.empty((), dtype=dtype, device="cuda")', write))
    text = class_of(migrated(code + REGISTRATION))
    assert f"        {opening}\n{inside or '            pass' + chr(10)}" in text
    assert "_like" not in text


def test_a_helper_of_another_module_goes_once_nothing_uses_it() -> None:
    code = "from kit.ops.helpers import shape_of, stand_in\n\n\n" + changed(
        CLASS,
        ('torch.empty((), dtype=dtype, device="cuda")', "stand_in(dtype)"),
        ('["example"](self.n)', '["example"](shape_of(self.n))'),
    )
    helpers = """\
import torch


def stand_in(dtype):
    return torch.empty((), dtype=dtype)


def shape_of(n):
    return (n,)
"""
    found = migrated(code + REGISTRATION, **{"kit/ops/helpers.py": helpers})
    assert "from kit.ops.helpers import shape_of\n" in found.files[OP]
    assert found.files["kit/ops/helpers.py"] == "def shape_of(n):\n    return (n,)\n"


REGISTRATIONS = {
    "loop": ("_register(ExampleFwdOp, fake=", "for _cls in [ExampleFwdOp]:\n    _register(_cls, fake="),
    "setattr": ("op_cls._wrapped = _wrapped", 'setattr(op_cls, "_wrapped", _wrapped)'),
}


@pytest.mark.parametrize("change", REGISTRATIONS.values(), ids=REGISTRATIONS)
def test_however_the_op_is_registered(change: tuple[str, str]) -> None:
    assert class_of(migrated(CLASS + changed(REGISTRATION, change))) == MIGRATED


def test_a_helper_that_is_called_as_its_module_goes_as_well() -> None:
    code = "from kit.ops.stand_in import stand_in\n\n\n" + changed(
        CLASS, ('torch.empty((), dtype=dtype, device="cuda")', "stand_in(dtype)")
    )
    helper = "import torch\n\n\ndef stand_in(dtype):\n    return torch.empty((), dtype=dtype)\n\n\nUNIT = 1\n"
    found = migrated(code + REGISTRATION, **{"kit/ops/stand_in.py": helper})
    assert found.files["kit/ops/stand_in.py"] == "UNIT = 1\n"


def test_a_custom_op_of_its_own_goes_with_its_fake_kernel() -> None:
    registration = """

REGISTRY = {}


@torch.library.custom_op("top::example", mutates_args=())
def _example(like: torch.Tensor, n: int, key: int) -> torch.Tensor:
    return REGISTRY[key]._eager()


@_example.register_fake
def _(like, n, key):
    return like.new_empty((n,))
"""
    code = CLASS[: CLASS.index("        wrapped = ")] + "        return _example(self._like, self.n, self._key)\n"
    code = changed(code, ("    _wrapped = None\n", '    compile_op_names = ("top::example",)\n'))
    assert class_of(migrated(code + registration)) == MIGRATED


TWO_CLASSES = (
    CLASS
    + "\n\n"
    + CLASS.replace("ExampleFwdOp", "OtherFwdOp").replace('"example"', '"other"')
    + changed(
        REGISTRATION,
        (
            "_register(ExampleFwdOp, fake=",
            "for _cls in [ExampleFwdOp, OtherFwdOp]:\n    _register(_cls, fake=",
        ),
    )
)


def two_entries() -> dict[str, str]:
    files = workspace(TWO_CLASSES)
    files[YAML] += "\n" + files[YAML].replace("ExampleFwdOp", "OtherFwdOp")
    return files


def test_ops_registered_by_a_loop_all_migrated() -> None:
    found = migrate_files(PACK, "drop-carrier", two_entries())
    assert class_of(found) == MIGRATED + "\n\n" + MIGRATED.replace("Example", "Other").replace('"example"', '"other"')


def test_ops_registered_by_a_loop_one_of_them_skipped() -> None:
    found = migrate_files(PACK, "drop-carrier", two_entries(), skip=["OtherFwdOp"])
    text = found.files[OP]
    assert "for _cls in [OtherFwdOp]:\n" in text
    assert "def _register(op_cls, fake):" in text
    assert text.count("self._like = ") == 1
    assert found.files[YAML].count("like_shape") == 2
    assert [site.status for site in found.result.sites] == ["migrated", "skipped"]


def test_a_suppressed_carrier_stays() -> None:
    files = workspace(CLASS + REGISTRATION)
    files[YAML] = files[YAML].replace(
        "    inputs:\n", "    inputs:\n      # opschema: ignore[CAR101] until the next release\n"
    )
    found = migrate_files(PACK, "drop-carrier", files)
    assert found.files == files
    assert [site.status for site in found.result.sites] == ["suppressed"]


SHARED = (
    changed(CLASS, ("ExampleFwdOp", "Shared"), ('    _op_name = "example"\n', ""))
    + '\n\nclass ExampleFwdOp(Shared):\n    _op_name = "example"\n\n\nclass OtherFwdOp(Shared):\n    _op_name = "other"\n'
    + REGISTRATION
    + "_register(OtherFwdOp, fake=lambda like, n: like.new_empty((n,)))\n"
)


def test_a_base_class_is_migrated_with_all_its_ops_or_not_at_all() -> None:
    files = workspace(SHARED)
    files[YAML] += "\n" + files[YAML].replace("ExampleFwdOp", "OtherFwdOp")
    assert class_of(migrate_files(PACK, "drop-carrier", files)) == (
        changed(MIGRATED, ("ExampleFwdOp", "Shared"), ('    _op_name = "example"\n\n', ""))
        + '\n\nclass ExampleFwdOp(Shared):\n    _op_name = "example"\n\n\nclass OtherFwdOp(Shared):\n    _op_name = "other"\n'
    )
    skipped = migrate_files(PACK, "drop-carrier", files, skip=["OtherFwdOp"])
    assert skipped.files == files
    assert [site.status for site in skipped.result.sites] == ["left", "skipped"]
    assert skipped.notes()[0].endswith("not migrated: `OtherFwdOp`, which is not migrated, has the same carrier")


LENT = """\
class Lent(Op):
    _wrapped = None

    def _lend(self, dtype):
        self._like = torch.empty((), dtype=dtype)
        self._key = id(self)
        REGISTRY[self._key] = self

    def _sizes(self):
        raise NotImplementedError

    def forward(self) -> torch.Tensor:
        if type(self)._wrapped is None:
            return self._eager()
        return type(self)._wrapped(self._like, *self._sizes(), self._key)


class ExampleFwdOp(Lent):
    _op_name = "example"

    def __init__(self, n: int, dtype: torch.dtype, *, kernel_map=None):
        self.n = n
        self._lend(dtype)

    def _sizes(self):
        return (self.n,)

    def _eager(self):
        return self.kernel_map["example"](self.n)
"""


def test_what_a_base_class_runs_in_its_subclasses_it_still_runs() -> None:
    found = migrated(LENT + REGISTRATION)
    text = class_of(found)
    assert "    def forward(self) -> torch.Tensor:\n        return self._eager()\n" in text
    assert "_lend" not in text
    assert "_like" not in text
    assert text.count("def _sizes(self):") == 2
    assert [note.partition(": ")[2] for note in found.notes() if "_sizes" in note] == [
        "nothing calls `_sizes()` any more"
    ]


@pytest.mark.parametrize("call", ["self._lend(self._bump())", "self._later = self._lend"])
def test_a_method_without_statements_stays_where_its_calls_cannot_go(call: str) -> None:
    code = changed(LENT, ("        self._lend(dtype)\n", f"        {call}\n        self._lend(dtype)\n"))
    text = class_of(migrated(code + REGISTRATION))
    assert "def _lend(self, dtype):\n        pass\n" in text
    assert f"        {call}\n" in text


def test_a_tensor_that_is_not_known_to_be_a_carrier_is_told() -> None:
    code = changed(CLASS, ('torch.empty((), dtype=dtype, device="cuda")', "torch.zeros(4, dtype=dtype).sum()"))
    found = migrated(code + REGISTRATION)
    told = "`self._like` is not known to be a carrier, so it stays: `ExampleFwdOp` declares no input any more"
    assert [note.partition(": ")[2] for note in found.notes() if "known" in note] == [told]


def test_a_carrier_in_the_manifest_alone() -> None:
    code = """\
class ExampleFwdOp(Op):
    def __init__(self, n: int, dtype: torch.dtype, *, kernel_map=None):
        self.n, self.dtype = n, dtype
        self.dispatch_kernel(kernel_map)

    def forward(self) -> torch.Tensor:
        return self.kernel_map["example"](self.n, self.dtype)
"""
    found = migrated(code)
    assert class_of(found) == code
    assert "    inputs: {}\n" in found.files[YAML]
    assert "      dtype: {type: torch.dtype}\n" in found.files[YAML]


def test_two_carriers_of_one_op() -> None:
    second = '    index: {dtype: "int32", shape: "[]"}\n'
    entry = changed(ENTRY, ("  outputs:\n", second + '  outputs:\n    z: {dtype: "same_as(index)", shape: "[n]"}\n'))
    code = changed(
        CLASS,
        ("        self._key = id", "        self._index = torch.zeros((), dtype=torch.int32)\n        self._key = id"),
        ("wrapped(self._like, ", "wrapped(self._like, self._index, "),
    )
    registration = REGISTRATION.replace("(like: torch.Tensor, ", "(like: torch.Tensor, index: torch.Tensor, ")
    found = migrated(code + registration, entry.replace("like_shape: [], ", "like_shape: [], index_shape: [], "))
    assert class_of(found) == MIGRATED
    assert entry_of(found, "  inputs:", "  shape_rules") == (
        '  inputs: {}\n  outputs:\n    z: {dtype: "int32", shape: "[n]"}\n    y: {dtype: "float16 | float32", shape: "[n]"}\n'
        "  params:\n    n: {type: int}\n    dtype: {type: torch.dtype}\n"
    )


# Real inputs beside the carrier


BESIDE = """\
signature:
  inputs:
    x: {dtype: "float16 | float32"}
    like: {dtype: "float16 | float32", shape: "[]"}  # lends its dtype
  outputs:
    y: {dtype: "same_as(like)"}
  params:
    eps: {type: float, default: 0.5}
  shape_rules: ["y.shape == x.shape"]
workloads:
  - {x_shape: [4, 8], like_shape: [], dtypes: [float16], label: "small"}
  - {x_shape: [64, 8], like_shape: [], dtypes: [float32], label: "large"}
"""

BESIDE_CLASS = """\
class ExampleFwdOp(Op):
    def __init__(self, dtype: torch.dtype, eps: float = 0.5, *, kernel_map=None):
        self.dispatch_kernel(kernel_map)
        self.eps = eps
        self._like = torch.empty((), dtype=dtype, device="cuda")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _example_fwd(x, self._like, self.eps)


@torch.library.custom_op("kit::example_fwd", mutates_args=())
def _example_fwd(x: torch.Tensor, like: torch.Tensor, eps: float) -> torch.Tensor:
    return ExampleKernel()(x, eps)


@_example_fwd.register_fake
def _(x, like, eps):
    return x.new_empty(x.shape)
"""

BESIDE_RESULT = """\
class ExampleFwdOp(Op):
    def __init__(self, dtype: torch.dtype, eps: float = 0.5, *, kernel_map=None):
        self.dispatch_kernel(kernel_map)
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _example_fwd(x, self.eps)


@torch.library.custom_op("kit::example_fwd", mutates_args=())
def _example_fwd(x: torch.Tensor, eps: float) -> torch.Tensor:
    return ExampleKernel()(x, eps)


@_example_fwd.register_fake
def _(x, eps):
    return x.new_empty(x.shape)
"""


def test_beside_real_inputs_the_custom_op_stays() -> None:
    found = migrated(BESIDE_CLASS, BESIDE)
    assert class_of(found) == BESIDE_RESULT
    assert entry_of(found, "  inputs:", "  shape_rules") == (
        '  inputs:\n    x: {dtype: "float16 | float32"}\n  outputs:\n    y: {dtype: "float16 | float32"}\n'
        "  params:\n    dtype: {type: torch.dtype}\n    eps: {type: float, default: 0.5}\n"
    )
    assert "{x_shape: [4, 8], dtype: float16, dtypes: [float16]" in found.files[YAML]


def test_a_carrier_that_no_manifest_declares() -> None:
    entry = changed(
        BESIDE, ('    like: {dtype: "float16 | float32", shape: "[]"}  # lends its dtype\n', ""), ("(like)", "(x)")
    )
    entry = entry.replace("like_shape: [], ", "")
    found = migrated(BESIDE_CLASS, entry)
    assert class_of(found) == BESIDE_RESULT
    assert found.files[YAML] == workspace(BESIDE_CLASS, entry)[YAML]


# Validators and tests


VALIDATOR = """\
# shape_rules, workloads, roofline, signature, status
import inspect


def check_forward(entry, cls):
    errors = []
    names = list(inspect.signature(cls.forward).parameters)[1:]
    if names != list(entry["signature"]["inputs"]):
        errors.append(f"forward() takes {names}")
    return errors
"""

EXCEPTIONS = {
    "early-return": [
        (
            "    if names",
            '    # Nothing to line up.\n    if entry["ref_api"] == "none" and not names:\n        return errors\n'
            "    if names",
        )
    ],
    "nested": [
        ("    if names", '    if entry["ref_api"] == "none":\n        if len(names) == 0:\n            return []\n    if names')
    ],
    "flag": [
        (
            "    if names",
            '    # Those take none.\n    takes_none = entry["ref_api"] == "none" and not names\n'
            "    if not takes_none and names",
        )
    ],
    "own-locals": [
        (
            "    if names",
            "    given = list(inspect.signature(cls.forward).parameters)[1:]\n"
            '    if entry["ref_api"] == "none" and len(given) == 0:\n        return errors\n    if names',
        )
    ],
    "function": [
        (
            "def check_forward",
            'def takes_none(entry, cls):\n    """Whether it takes none."""\n'
            '    return entry["ref_api"] == "none" and not list(inspect.signature(cls.forward).parameters)[1:]\n\n\n'
            "def check_forward",
        ),
        ("    if names", "    if takes_none(entry, cls):\n        return errors\n    if names"),
    ],
    "parameter": [
        ("def check_forward(entry, cls)", "def check_forward(entry, cls, lenient=False)"),
        ("    if names", "    if not lenient and names"),
        (
            "    return errors\n",
            "    return errors\n\n\ndef check(entry, cls):\n    names = list(inspect.signature(cls.forward).parameters)[1:]\n"
            '    return check_forward(entry, cls, entry["ref_api"] == "none" and not names)\n',
        ),
    ],
}  # fmt: skip


@pytest.mark.parametrize("changes", EXCEPTIONS.values(), ids=EXCEPTIONS)
def test_the_validator_loses_its_exception(changes: list[tuple[str, str]]) -> None:
    found = migrated(CLASS + REGISTRATION, **{"scripts/check.py": changed(VALIDATOR, *changes)})
    text = found.files["scripts/check.py"]
    if "def check(" in text:
        assert text == VALIDATOR + "\n\ndef check(entry, cls):\n    return check_forward(entry, cls)\n"
    else:
        assert text == VALIDATOR


HIDDEN = {
    "in-an-object": ("Mode(entry[\"ref_api\"] == 'none' and not names)", "if not mode.lenient and names"),
    "in-a-mapping": ('{"lenient": entry["ref_api"] == \'none\' and not names}', 'if not mode["lenient"] and names'),
}


@pytest.mark.parametrize(("mode", "condition"), HIDDEN.values(), ids=HIDDEN)
def test_an_exception_that_cannot_be_followed_is_told(mode: str, condition: str) -> None:
    text = changed(VALIDATOR, ("    if names", f"    mode = {mode}\n    {condition}"))
    found = migrated(CLASS + REGISTRATION, **{"scripts/check.py": text})
    assert found.files["scripts/check.py"] == text
    told = "this distinguishes ops that take no tensor; if it makes an exception for them, remove that"
    assert f"scripts/check.py:8: {told}" in found.notes()


def test_a_class_of_tests_goes_with_its_only_test() -> None:
    text = changed(VALIDATOR, *EXCEPTIONS["parameter"])
    tests = """\
from scripts.check import check_forward


class TestLenient:
    def test_it(self):
        assert check_forward({}, None, lenient=True) == []


def test_other():
    assert check_forward({}, None) == []
"""
    found = migrated(CLASS + REGISTRATION, **{"scripts/check.py": text, "tests/test_check.py": tests})
    assert found.files["tests/test_check.py"] == (
        "from scripts.check import check_forward\n\n\ndef test_other():\n    assert check_forward({}, None) == []\n"
    )


EXEMPT = """\
from scripts.check import check_forward


class Sourceless:
    def forward(self):
        return 1


def test_an_op_without_tensors_is_exempt():
    entry = {"ref_api": "none", "signature": {"inputs": {"like": {"dtype": "float16"}}}}
    errors = check_forward(entry, Sourceless)
    assert not errors


def test_other():
    assert check_forward({"signature": {"inputs": {}}}, Sourceless) == []
"""
EXEMPT_CALL = "errors = check_forward(entry, Sourceless)\n    assert not errors\n"
EXEMPT_TESTS = {
    "named": [],
    "at-once": [(EXEMPT_CALL, "assert check_forward(entry, Sourceless) == []\n")],
    "counted": [("assert not errors", "assert len(errors) == 0")],
    "written-in-the-call": [
        (
            EXEMPT_CALL,
            'assert not check_forward({"ref_api": "none", "signature": {"inputs": {"x": {}}}}, Sourceless)\n',
        ),
        ('    entry = {"ref_api": "none", "signature": {"inputs": {"like": {"dtype": "float16"}}}}\n', ""),
    ],
    "class-of-its-own": [
        (
            "    entry = {",
            "    class Made:\n        def forward(self):\n            return 1\n\n    entry = {",
        ),
        ("errors = check_forward(entry, Sourceless)", "errors = check_forward(entry, Made)"),
    ],
}


def exempting(changes: list[tuple[str, str]], exception: str = "early-return") -> Migrated:
    """A tree with an exception that no flag carries, and a test of it, migrated."""
    script = changed(VALIDATOR, *EXCEPTIONS[exception])
    return migrated(
        CLASS + REGISTRATION, **{"scripts/check.py": script, "tests/test_check.py": changed(EXEMPT, *changes)}
    )


@pytest.mark.parametrize("changes", EXEMPT_TESTS.values(), ids=EXEMPT_TESTS)
def test_a_test_that_asserts_the_exception_goes_with_it(changes: list[tuple[str, str]]) -> None:
    found = exempting(changes)
    text = found.files["tests/test_check.py"]
    assert "exempt" not in text
    assert text.endswith(EXEMPT[EXEMPT.index("def test_other") :])
    assert not [note for note in found.notes() if note.startswith("tests/test_check.py")]


@pytest.mark.parametrize("exception", ["nested", "flag", "own-locals", "function"])
def test_a_test_that_asserts_the_exception_goes_however_that_is_written(exception: str) -> None:
    assert "exempt" not in exempting([], exception).files["tests/test_check.py"]


PERHAPS_EXEMPT = {
    "entry-of-a-helper": [
        ('{"ref_api": "none", "signature": {"inputs": {"like": {"dtype": "float16"}}}}', 'make(ref_api="none")')
    ],
    "class-with-a-base": [("class Sourceless:", "class Sourceless(Op):")],
    "class-that-takes-something": [("def forward(self)", "def forward(self, x)")],
    "more-is-asserted": [("    assert not errors\n", '    assert not errors\n    assert entry["ref_api"] == "none"\n')],
    "more-is-done": [("    assert not errors\n", "    assert not errors\n    report(entry)\n")],
    "under-a-condition": [("    assert not errors\n", "    if errors == []:\n        raise AssertionError\n")],
    "reported": [("assert not errors", "assert errors")],
    "no-input": [('{"like": {"dtype": "float16"}}', "{}")],
    "changed-later": [("    errors = ", '    entry = adapted(entry, "none")\n    errors = ')],
    "another-check": [("import check_forward", "import check_forward as check\n\ncheck_forward = traced(check)")],
    "decorated": [("def test_an_op", '@pytest.mark.parametrize("name", ["none"])\ndef test_an_op')],
}


@pytest.mark.parametrize("changes", PERHAPS_EXEMPT.values(), ids=PERHAPS_EXEMPT)
def test_a_test_that_may_assert_the_exception_is_told(changes: list[tuple[str, str]]) -> None:
    found = exempting(changes)
    text = found.files["tests/test_check.py"]
    assert text == changed(EXEMPT, *changes)
    line = text[: text.index("def test_an_op")].count("\n") + 1
    told = f"tests/test_check.py:{line}: this may assert the removed exception; if it does, drop it"
    assert told in found.notes()


DEMANDING = """\
from kit.manifest import load_manifest


def test_every_signature_has_inputs():
    for name, entry in load_manifest().items():
        signature = entry["signature"]
        assert isinstance(signature["inputs"], dict)
        assert len(signature["inputs"]) >= 1, f"{name}: at least one input"
        assert isinstance(signature["outputs"], dict)
"""

RELAXED = changed(
    DEMANDING,
    (
        'len(signature["inputs"]) >= 1, f"{name}: at least one input"',
        'len(signature["inputs"]) >= 1 or signature.get("params"), (\n'
        '            f"{name}: at least one input or param"\n        )',
    ),
    (
        'assert isinstance(signature["outputs"], dict)',
        'assert isinstance(signature["outputs"], dict)\n'
        '        assert len(signature["outputs"]) >= 1, f"{name}: at least one output"',
    ),
)


def test_a_test_that_demands_an_input_accepts_a_param() -> None:
    found = migrated(CLASS + REGISTRATION, **{"tests/test_manifest.py": DEMANDING})
    assert found.files["tests/test_manifest.py"] == RELAXED


DOCUMENT = """\
# Manifests

Every entry has at least one tensor input.

## Exceptions

An op whose `ref_api` is `"none"` and whose `forward()` takes
zero arguments declares a scalar, so that `test_every_signature_has_inputs` passes.

See `test_every_signature_has_inputs`.

An entry has at least one input or one param; `test_every_signature_has_inputs` checks it.
The `inputs` of other ops are listed in the order of `forward()`.
"""


def test_documents_that_still_demand_an_input_are_noted() -> None:
    files = {"tests/test_manifest.py": DEMANDING, "guide/manifests.md": DOCUMENT, "CHANGELOG.md": DOCUMENT}
    notes = migrated(CLASS + REGISTRATION, **files).notes()
    assert [note for note in notes if ".md" in note] == [
        "guide/manifests.md:3: `at least one tensor input`: an op needs only params now; update this text",
        "guide/manifests.md:8: ops without tensors are no longer an exception; update this text",
        "guide/manifests.md:10: `test_every_signature_has_inputs` accepts `inputs: {}` now; update this text",
    ]


GETTING = """\
from kit.manifest import load_manifest


def test_every_signature_has_inputs():
    for name, entry in load_manifest().items():
        outputs = entry["signature"].get("outputs")
        inputs = (entry["signature"] or {}).get("inputs") or {}
        assert outputs
        assert inputs
        if not entry["signature"].get("inputs"):
            raise ValueError(f"{name}: at least one input")
"""


def test_a_demand_of_a_name_that_get_gave_accepts_a_param() -> None:
    found = migrated(CLASS + REGISTRATION, **{"tests/test_manifest.py": GETTING})
    assert found.files["tests/test_manifest.py"] == changed(
        GETTING,
        ("assert inputs\n", 'assert inputs or (entry["signature"] or {}).get("params")\n'),
        (
            'if not entry["signature"].get("inputs"):',
            'if not entry["signature"].get("inputs") and not entry["signature"].get("params"):',
        ),
        ("at least one input", "at least one input or param"),
    )


@pytest.mark.parametrize(
    "written",
    [
        """\
        assert (
            inputs
        )
        if (
            not entry[
                "signature"
            ].get(
                "inputs"
            )
        ):
""",
        """\
        assert (
            name
            and inputs
        )
        if (
            not entry["signature"]
            . get("inputs")
        ):
""",
    ],
)
def test_a_demand_of_several_lines_accepts_a_param(written: str) -> None:
    lines = GETTING.splitlines(keepends=True)
    text = "".join([*lines[:8], written, lines[-1]])
    done = migrated(CLASS + REGISTRATION, **{"tests/test_manifest.py": text}).files["tests/test_manifest.py"]
    plain = ast.unparse(ast.parse(done))
    assert "inputs or (entry['signature'] or {}).get('params')" in plain
    assert "if not entry['signature'].get('inputs') and (not entry['signature'].get('params')):" in plain


def test_what_is_demanded_of_outputs_needs_no_name_of_its_own() -> None:
    lines = GETTING.splitlines(keepends=True)
    text = "".join(line for line in lines[:9] if "outputs" not in line)
    found = migrated(CLASS + REGISTRATION, **{"tests/test_manifest.py": text})
    assert found.files["tests/test_manifest.py"] == changed(
        text,
        (
            "assert inputs\n",
            'assert inputs or (entry["signature"] or {}).get("params")\n'
            '        assert (entry["signature"] or {}).get("outputs")\n',
        ),
    )


ACCEPTING = {
    "at-once": '    if not signature.get("inputs") and not signature.get("params"):\n',
    "counted": """\
    inputs = signature.get("inputs")
    params = signature.get("params")
    inputs_count = len(inputs) if isinstance(inputs, dict) else 0
    params_count = len(params) if isinstance(params, dict) else 0
    if inputs_count < 1 and params_count < 1:
""",
}
CHECKING = """\
# shape_rules, workloads, roofline, status; what "ref_api" is "none" is looked at by inspect.signature


def check_schema(op_name, signature, errors):
    if "params" in signature and not isinstance(signature["params"], dict):
        errors.append(f"{op_name}: signature.params must be a dict")
"""
REPORTING = '        errors.append(f"{op_name}: nothing to make an output of")\n    return signature["outputs"]\n'


@pytest.mark.parametrize("test", ACCEPTING.values(), ids=ACCEPTING)
def test_a_validator_that_accepts_params_stays(test: str) -> None:
    found = migrated(CLASS + REGISTRATION, **{"scripts/check.py": CHECKING + test + REPORTING})
    assert found.files["scripts/check.py"] == CHECKING + test + REPORTING
    assert not [note for note in found.notes() if note.startswith("scripts/check.py")]


def test_a_validator_that_reads_both_without_a_demand_gets_one() -> None:
    text = CHECKING + '    if signature.get("inputs") and signature.get("params"):\n' + REPORTING
    found = migrated(CLASS + REGISTRATION, **{"scripts/check.py": text})
    assert 'if not signature.get("inputs") and not signature.get("params"):' in found.files["scripts/check.py"]


def test_nothing_is_relaxed_where_every_op_keeps_an_input() -> None:
    found = migrated(BESIDE_CLASS, BESIDE, **{"tests/test_manifest.py": DEMANDING})
    assert found.files["tests/test_manifest.py"] == DEMANDING


# What is told of it


def test_comments_that_tell_of_nothing_else_go() -> None:
    comments = "  # A row gives `like` no size.\n\n  # Rows pass `like` as well. Its shape is empty.\n"
    entry = changed(ENTRY, ("workloads:\n", "workloads:\n" + comments))
    code = CLASS + "\n# self._like is never read.\n\n# likely unrelated\n" + REGISTRATION
    found = migrated(code, entry)
    assert "# A row gives" not in found.files[YAML]
    assert "# Rows pass `like` as well." in found.files[YAML]
    assert "never read" not in found.files[OP]
    assert "# likely unrelated\n" in found.files[OP]
    assert [note for note in found.notes() if "still mentions" in note] == [
        f"{YAML}:14: still mentions the removed `like`"
    ]


def test_a_preamble_goes_with_the_last_carrier_whenever_the_others_went() -> None:
    files = workspace(CLASS + REGISTRATION)
    bare = changed(ENTRY, ('    like: {dtype: "float16 | float32", shape: "[]"}\n', ""), ("inputs:\n", "inputs: {}\n"))
    bare = changed(bare, ("same_as(like)", "float16")).replace("like_shape: [], ", "")
    second = workspace(CLASS, bare)[YAML].replace("ExampleFwdOp", "OtherFwdOp")
    files[YAML] = "# Ops that take no tensor.\n\n" + files[YAML] + "\n" + second
    assert not migrate_files(PACK, "drop-carrier", files).files[YAML].startswith("#")


def test_a_preamble_that_tells_of_no_tensor_goes_with_the_last_carrier() -> None:
    files = workspace(CLASS + REGISTRATION)
    files[YAML] = "# Ops that take no input tensors.\n#\n# Kept: sorted by name.\n\n" + files[YAML]
    found = migrate_files(PACK, "drop-carrier", files)
    assert found.files[YAML].startswith("# Kept: sorted by name.\n\nExampleFwdOp:\n")


# What is left to a person


LEFT = {
    "a-buffer-of-state-dicts": (
        changed(
            CLASS,
            (
                'self._like = torch.empty((), dtype=dtype, device="cuda")',
                'self.register_buffer("_like", torch.empty((), dtype=dtype))',
            ),
        )
        + REGISTRATION,
        ENTRY,
        "state dicts hold the buffer `_like`; drop it where they are loaded too",
    ),
    "a-call-whose-value-is-used": (
        changed(
            CLASS,
            (
                'self._like = torch.empty((), dtype=dtype, device="cuda")',
                'self.set = setattr(self, "_like", torch.empty((), dtype=dtype))',
            ),
        )
        + REGISTRATION,
        ENTRY,
        "the value of setattr() is used",
    ),
    "the-fake-kernel-reads-it": (
        changed(BESIDE_CLASS, ("x.new_empty(x.shape)", "like.new_empty(x.shape)")),
        BESIDE,
        "this takes dtype or device from the carrier `like`; take them from a real tensor",
    ),
    "the-op-computes-by-itself": (
        CLASS + changed(REGISTRATION, ("return REGISTRY[key]._eager()", "return compute(n)")),
        ENTRY,
        "the custom op does more than call a method of the instance; run here what it runs",
    ),
    "the-other-way-is-another": (
        changed(CLASS, ("return self._eager()", "return self.kernel(self.n)")) + REGISTRATION,
        ENTRY,
        "without its custom op, this runs something else",
    ),
    "no-dtype-param": (
        changed(CLASS, ("dtype: torch.dtype, ", ""), ("dtype=dtype", "dtype=torch.float16")) + REGISTRATION,
        ENTRY,
        "no parameter of `ExampleFwdOp.__init__()` may be its dtype",
    ),
    "two-dtype-params": (
        changed(CLASS, ("dtype: torch.dtype, ", "a: torch.dtype, b: torch.dtype, "), ("dtype=dtype, ", "")) + REGISTRATION,
        ENTRY,
        "2 parameters of `ExampleFwdOp.__init__()` may be its dtype",
    ),
    "a-default-that-is-not-known": (
        changed(CLASS, ("dtype: torch.dtype,", "dtype: torch.dtype = pick(),")) + REGISTRATION,
        ENTRY,
        "the default of `dtype` of `ExampleFwdOp.__init__()` is not known",
    ),
    "rows-without-dtypes": (
        CLASS + REGISTRATION,
        changed(ENTRY, ("n: 4, dtypes: [float16]", "n: 4")),
        "this row lists no dtypes from which `dtype` could be set",
    ),
    "shared-rows": (
        CLASS + REGISTRATION,
        changed(
            ENTRY,
            ("- {like_shape: [], n: 4", "- &row {like_shape: [], n: 4"),
            ("- {like_shape: [], n: 1024, dtypes: [float16, float32]", "- {<<: *row, n: 1024, like_shape: []"),
        ),
        "cannot be rewritten",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "entry", "reason"), LEFT.values(), ids=LEFT)
def test_an_op_that_is_not_certain_is_left_whole(code: str, entry: str, reason: str) -> None:
    first = left(code, entry)[0]
    assert first.startswith("not migrated: ")
    assert reason in first


# tilekit


def tilekit() -> dict[str, str]:
    root = FIXTURES / "tilekit"
    caches = {"__pycache__", ".pytest_cache", ".ruff_cache"}
    paths = (path for path in root.rglob("*") if path.is_file() and not caches & set(path.parts))
    return {path.relative_to(root).as_posix(): path.read_text() for path in paths}


def test_tilekit_becomes_the_committed_result() -> None:
    before = tilekit()
    found = migrate_files(PACK, "drop-carrier", before)
    root = FIXTURES / "tilekit_migrated"
    expected = {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}
    assert {path: text for path, text in found.files.items() if text != before[path]} == expected
    assert lint_files([PACK], found.files, CODES).codes() == []
    assert found.notes() == [
        "scripts/check_manifest.py:25: `at least one tensor on either side, and one roofline mode`: an op needs only "
        "params now; update this text",
        "docs/manifest.md:61: `at least one input`: an op needs only params now; update this text",
        "tilekit/ops/elementwise/window_mask.py:11: without custom ops, `WindowMaskFwdOp`, `RotaryTableFwdOp` run eagerly: "
        "`torch.compile` does not take each as one operator",
        "docs/manifest.md:62: still mentions the removed `proto`",
        "docs/manifest.md:62: still mentions the removed `like_scalar`",
        "docs/manifest.md:63: still mentions the removed `_register_synth_custom_op`",
        *(
            f"tilekit/ops/elementwise/{place}`: this kind of op no longer exists; describe what the op does"
            for place in (
                "__init__.py:1: `generative ops",
                "rotary_table.py:1: `generative op",
                "rotary_table.py:14: `generative op",
                "window_mask.py:1: `generative op",
                "window_mask.py:14: `generative op",
            )
        ),
        "tilekit/ops/elementwise/__init__.py:20: `Five ops`: fewer are registered here now; correct the number",
    ]


def test_line_ends_are_kept() -> None:
    before = {path: text.replace("\n", "\r\n") for path, text in tilekit().items()}
    found = migrate_files(PACK, "drop-carrier", before)
    root = FIXTURES / "tilekit_migrated"
    for path in (path for path in root.rglob("*") if path.is_file()):
        assert found.files[path.relative_to(root).as_posix()] == path.read_text().replace("\n", "\r\n")


def test_tilekit_with_one_op_skipped_keeps_what_that_needs() -> None:
    before = tilekit()
    found = migrate_files(PACK, "drop-carrier", before, skip=["WindowMaskFwdOp"])
    assert sorted(path for path, text in found.files.items() if text != before[path]) == [
        "scripts/check_manifest.py",
        "tests/test_check_manifest.py",
        "tests/test_manifest.py",
        "tilekit/manifest/generative.yaml",
        "tilekit/ops/elementwise/__init__.py",
        "tilekit/ops/elementwise/rotary_table.py",
    ]
    assert found.files["tilekit/ops/elementwise/__init__.py"].count("_register_synth_custom_op(") == 1
    preamble = before["tilekit/manifest/generative.yaml"].partition("DecayMaskFwdOp")[0]
    assert found.files["tilekit/manifest/generative.yaml"].startswith(preamble)
    assert "tilekit/manifest/generative.yaml:5: still mentions the removed `like_scalar`" in found.notes()
    assert found.files["scripts/check_manifest.py"].count("is_synth") == before["scripts/check_manifest.py"].count(
        "is_synth"
    )


def test_tilekit_one_op_after_the_other_becomes_the_same() -> None:
    before = tilekit()
    first = migrate_files(PACK, "drop-carrier", before, skip=["WindowMaskFwdOp"])
    found = migrate_files(PACK, "drop-carrier", first.files)
    assert found.files == migrate_files(PACK, "drop-carrier", before).files


def test_the_migrated_tilekit_passes_its_own_checks(tmp_path: Path, compiled_kernels: None) -> None:
    pytest.importorskip("torch")
    if not any(map(shutil.which, ("g++", "c++", "clang++"))):
        pytest.skip("no C++ compiler for the kernels of tilekit")
    shutil.copytree(
        FIXTURES / "tilekit", tmp_path / "kit", ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache")
    )
    shutil.copytree(FIXTURES / "tilekit_migrated", tmp_path / "kit", dirs_exist_ok=True)
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", "--ignore", "tests/test_build.py"]
    for command in (["scripts/check_manifest.py"], tests):
        run = subprocess.run(
            [sys.executable, *command], cwd=tmp_path / "kit", capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr
