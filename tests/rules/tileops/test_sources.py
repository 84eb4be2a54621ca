"""The files, classes, kernels and functions that entries name."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.tileops.examples import OP, example_files
from opschema_rules.tileops.pack import PACK

CODE, YAML = "kit/ops/example.py", "kit/manifest/example.yaml"
HEAD = "from kit.ops.op_base import Op\n\n\n"


def files(
    source: str = "", op: str = OP, status: str = "implemented", roofline: str = "", **more: str
) -> dict[str, str]:
    entry = f"status: {status}\n" + (f"source:\n  {source}\n" if source else "")
    entry += f"roofline:\n  {roofline}\n" if roofline else ""
    texts = example_files([("yaml", entry), ("python", op)])
    return {**texts, **{path.replace("__", "/"): text for path, text in more.items()}}


def lint(select: str, texts: dict[str, str]) -> Linted:
    return lint_files([PACK], texts, [select])


def found(linted: Linted) -> list[tuple[str, str]]:
    """Text at the place and message of each finding."""
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


def fixed(select: str, texts: dict[str, str], *, unsafe: bool = False) -> list[str]:
    """The lines of the manifest that fixing changed."""
    after, _ = fix_files([PACK], texts, [select], unsafe=unsafe)
    before = texts[YAML].splitlines()
    return [line.strip() for line in after.get(YAML, "").splitlines() if line not in before]


# SRC101


def test_a_path_to_the_old_place_of_the_op() -> None:
    texts = files("op: kit/ops/old.py")
    assert found(lint("SRC101", texts)) == [
        (
            "kit/ops/old.py",
            "`source.op` names `kit/ops/old.py`, which is not a file; `kit/ops/example.py` defines its class",
        )
    ]
    assert fixed("SRC101", texts) == ["op: kit/ops/example.py"]


def test_a_path_to_the_old_place_of_the_kernel() -> None:
    texts = files("kernel: [kit/kernels/example.py, 'kit/old.py']")
    assert found(lint("SRC101", texts)) == [
        (
            "'kit/old.py'",
            "`source.kernel` names `kit/old.py`, which is not a file; `kit/kernels/example.py` defines its class",
        )
    ]
    assert fixed("SRC101", texts) == []  # it is listed already


def test_a_path_to_the_old_place_of_the_only_kernel() -> None:
    texts = files("kernel: ['kit/old.py']")
    assert fixed("SRC101", texts) == ["kernel: ['kit/kernels/example.py']"]


def test_a_file_that_was_found_by_its_name_alone() -> None:
    texts = files("test: tests/old/test_example.py")
    assert fixed("SRC101", texts) == []
    assert fixed("SRC101", texts, unsafe=True) == ["test: tests/test_example.py"]


def test_a_file_of_the_ops_name_without_its_class_is_another_file() -> None:
    texts = files("op: kit/gone/example.py", op="")
    assert found(lint("SRC101", texts)) == [
        ("kit/gone/example.py", "`source.op` names `kit/gone/example.py`, which is not a file")
    ]


def test_a_file_of_nearly_that_name_in_that_folder() -> None:
    texts = files("test: tests/test_exampel.py") | {"tests/test_others.py": "", "other/tests/test_exampel1.py": ""}
    (item,) = lint("SRC101", texts).diagnostics
    assert item.message.endswith("which is not a file; `tests/test_example.py` has nearly that name")
    assert fixed("SRC101", texts) == []
    assert fixed("SRC101", texts, unsafe=True) == ["test: tests/test_example.py"]


def test_a_file_of_that_name_that_the_entry_names_already_is_another_one() -> None:
    texts = {path: text for path, text in files("op: kit/ops/example.py").items() if path != "kit/kernels/example.py"}
    (item,) = lint("SRC101", texts).diagnostics
    assert (item.message, item.fix) == ("`source.kernel` names `kit/kernels/example.py`, which is not a file", None)
    moved = texts | {"kit/kernels/new/example.py": "", "kit/ops/op.py": texts["kit/ops/example.py"]}
    del moved["kit/ops/example.py"]
    assert found(lint("SRC101", moved))[0][1].endswith("; `kit/kernels/new/example.py` has that name")


def test_a_file_that_is_nowhere() -> None:
    (item,) = lint("SRC101", files("bench: benchmarks/gone.py")).diagnostics
    assert (item.message, item.fix, item.severity) == (
        "`source.bench` names `benchmarks/gone.py`, which is not a file",
        None,
        Severity.ERROR,
    )


def test_paths_of_kernels_and_ops_may_be_written_as_below_src() -> None:
    texts = {f"src/{path}" if path.startswith("kit/") else path: text for path, text in files().items()}
    assert found(lint("SRC101", texts)) == []
    moved = {path.replace("kit/ops/example", "kit/ops/moved"): text for path, text in texts.items()}
    after, _ = fix_files([PACK], moved, ["SRC101"])
    assert "op: kit/ops/moved.py" in after["src/kit/manifest/example.yaml"]


@pytest.mark.parametrize("path", ["./kit/ops/example.py", "kit//ops/example.py", "kit/ops/../ops/example.py"])
def test_paths_written_in_another_way_lead_there(path: str) -> None:
    linted = lint_files([PACK], files(f"op: {path}"), ["SRC", "SIG"])
    assert found(linted) == []


@pytest.mark.parametrize(
    "path", ["../example.py", "/etc/passwd", "kit/ops/example.py/", "kit/ops", "kit/ops/../../../x"]
)
def test_paths_that_lead_nowhere_or_out_of_the_tree(path: str) -> None:
    assert [place for place, _ in found(lint("SRC101", files(f"op: {path}")))] == [path]


def test_placeholders_of_an_op_that_is_not_written() -> None:
    assert found(lint("SRC101", files("op: kit/ops/planned.py", "", "spec-only"))) == []
    # Here the class exists, so its test should.
    (item,) = lint("SRC101", files("test: tests/test_planned.py", OP, "spec-only")).diagnostics
    assert item.severity is Severity.WARNING
    # It exists wherever it is, not only in the file that `source.op` names.
    assert found(lint("SRC101", files("op: kit/ops/old.py\n  test: tests/test_planned.py", OP, "spec-only"))) == [
        (
            "kit/ops/old.py",
            "`source.op` names `kit/ops/old.py`, which is not a file; `kit/ops/example.py` defines its class",
        ),
        ("tests/test_planned.py", "`source.test` names `tests/test_planned.py`, which is not a file"),
    ]


@pytest.mark.parametrize("value", ["null", "[]", "{a: b}", "3", "''", "[null, [x]]"])
def test_paths_that_are_none(value: str) -> None:
    texts = files(f"op: {value}")
    assert found(lint("SRC101", texts)) == found(lint("SRC102", texts)) == []


# SRC102


def test_a_file_without_the_class() -> None:
    op = OP.replace("ExampleFwdOp", "ExampleOp")
    linted = lint("SRC102", files(op=op))
    assert found(linted) == [
        ("kit/ops/example.py", "`kit/ops/example.py` defines no class `ExampleFwdOp`; did you mean `ExampleOp`?")
    ]
    assert [side.message for side in linted.diagnostics[0].related] == ["defines `ExampleOp`"]
    assert found(lint("SRC102", files(op=op, status="spec-only"))) == []


@pytest.mark.parametrize("old", [HEAD + "class Another(Op): ...\n", "from kit.ops.example import ExampleFwdOp\n"])
def test_a_class_in_another_file(old: str) -> None:
    texts = files("op: kit/ops/old.py", kit__ops__old_py="") | {"kit/ops/old.py": old}
    assert found(lint("SRC102", texts)) == [
        ("kit/ops/old.py", "`kit/ops/old.py` defines no class `ExampleFwdOp`; `kit/ops/example.py` does")
    ]
    assert fixed("SRC102", texts) == ["op: kit/ops/example.py"]


def test_a_class_that_several_files_define_has_no_fix() -> None:
    texts = files("op: kit/ops/old.py") | {"kit/ops/old.py": HEAD, "kit/ops/copy.py": HEAD + OP}
    (item,) = lint("SRC102", texts).diagnostics
    assert (item.message, item.fix) == ("`kit/ops/old.py` defines no class `ExampleFwdOp`", None)


def test_another_op_that_took_the_name_is_a_duplicate_and_no_more() -> None:
    texts = files("op: kit/ops/old.py") | {"kit/ops/old.py": HEAD, "kit/manifest/real.yaml": files()[YAML]}
    assert [(item.code, item.fix) for item in lint_files([PACK], texts, ["MAN", "SRC", "BEN"]).diagnostics] == [
        ("MAN102", None)
    ]
    alone = {path: text for path, text in texts.items() if path != "kit/manifest/real.yaml"}
    assert lint_files([PACK], alone, ["MAN", "SRC", "BEN"]).codes() == ["SRC102"]


@pytest.mark.parametrize(
    "op",
    [
        'globals()["ExampleFwdOp"] = make()\n',
        "ExampleFwdOp = make()\n",
        "if x:\n    class ExampleFwdOp: ...\n",
        "from elsewhere import *\n",
    ],
)
def test_a_class_that_may_be_there_is_not_missing(op: str) -> None:
    assert found(lint("SRC102", files(op=op))) == []


# SRC103


def kernels(stated: str, op: str, status: str = "implemented") -> Linted:
    return lint("SRC103", files(f"kernel_map: {stated}", HEAD + op, status))


MAP = "class ExampleFwdOp(Op):\n    _op_name = 'relu'\n\n    @property\n    def default_kernel_map(self):\n        {body}\n"
RETURNED = [
    ("{relu: ReluKernel}", "return {'relu': ReluKernel}", []),
    ("{relu: ReluKernel}", "return {self._op_name: ReluKernel}", []),
    ("{relu: ReluKernel}", "return {'relu': Renamed}", []),
    ("{relu: ReluKernel}", "return {'relu': Alias}", []),
    ("{relu: ReluKernel}", "return {'relu': pick(ReluKernel)}", []),
    ("{a: A}", "return {}", []),
    ("{a: A}", "return compute()", []),
    ("{a: A, b: B}", "return {**super().default_kernel_map, 'b': B}", []),
    ("{a: A, b: B}", "if fast:\n            return {'a': A}\n        return {'b': B}", []),
    ("{a: A}", "if fast:\n            return {'a': Fast}\n        return {'a': A}", []),
    ("{relu: Other}", "return {self._op_name: ReluKernel}", ["Other: the manifest's kernel for `relu` is `Other`; "
      "`default_kernel_map` has `ReluKernel`"]),
    ("{relu: Renamed}", "return {'relu': Renamed}", ["Renamed: the manifest's kernel for `relu` is `Renamed`; "
      "`default_kernel_map` has `ReluKernel`"]),
    ("{relu_kernel: A}", "return {'relu_kernels': A}", [
      "relu_kernel: `default_kernel_map` has the kernel `relu_kernels` where the manifest declares `relu_kernel`"]),
    ("{slow: ReluKernel, b: B}", "return {'main': ReluKernel, 'b': B}", [
      "slow: `default_kernel_map` has the kernel `main` where the manifest declares `slow`"]),
    ("{a: A, b: B}", "return {'a': A, 'wide': Wide}", [
      "kernel_map: `default_kernel_map` has the kernel `wide`, which `source.kernel_map` does not declare",
      "b: `default_kernel_map` has no kernel `b`"]),
    ("{fwd_1: A, fwd_2: B}", "return {'fwd_3': make()}", [
      "kernel_map: `default_kernel_map` has the kernel `fwd_3`, which `source.kernel_map` does not declare",
      "fwd_1: `default_kernel_map` has no kernel `fwd_1`",
      "fwd_2: `default_kernel_map` has no kernel `fwd_2`"]),
    ("{}", "return {'a': A}",
      ["kernel_map: `default_kernel_map` has the kernel `a`, which `source.kernel_map` does not declare"]),
    ("[a]", "return {'b': B}", []),
    ("{a: [A], 1: B}", "return {'a': B}", []),
    ("{example: [A]}", "return {'examples': A}", [
      "example: `default_kernel_map` has the kernel `examples` where the manifest declares `example`"]),
]  # fmt: skip


@pytest.mark.parametrize(("stated", "body", "expected"), RETURNED)
def test_kernel_maps(stated: str, body: str, expected: list[str]) -> None:
    names = "from kit.kernels import ReluKernel, ReluKernel as Renamed\n\nAlias = ReluKernel\n\n\n"
    linted = kernels(stated, names + MAP.format(body=body))
    assert [f"{linted.text(item.place)}: {item.message}" for item in linted.diagnostics] == expected


def test_attributes_that_an_instance_rebinds_are_not_known() -> None:
    op = MAP.format(body="return {self._op_name: A}") + "\n    def __init__(self):\n        self._op_name = compute()\n"
    assert found(kernels("{relu: B}", op)) == []


# SRC104


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("ExampleFwdOp", 0),
        ('NAMES = ["ExampleFwdOp"]', 0),
        ("MyExampleFwdOp = ExampleFwdOps = 1", 1),
        ("MyExampleFwdOp, ExampleFwdOp = 1, 2", 0),
        ("", 1),
    ],
)
def test_a_test_that_never_names_the_op(text: str, count: int) -> None:
    linted = lint("SRC104", files(tests__test_example_py="") | {"tests/test_example.py": text})
    assert len(linted.diagnostics) == count
    assert all(item.severity is Severity.WARNING for item in linted.diagnostics)


# SRC105

IMPORTS = [
    ("from kit.kernels.example import Gone", ["Gone"]),
    ("from ..kernels.example import ExampleKernel, ExampelKernel", ["ExampelKernel"]),
    ("from kit.ops.helper import missing", ["missing"]),
    ("def later():\n    from kit.ops.helper import missing\n", ["missing"]),
    ("from kit.kernels import example, gone", ["gone"]),
    ("from kit.ops.helper import FOUND, found, Found, unpacked, looped", []),
    ("from kit.kernels.wild import anything", []),
    ("from kit.kernels.lazy import anything", []),
    ("from elsewhere import anything\nimport kit.gone\nfrom kit.gone import x", []),
    ("from kit.kernels import native", []),
    ("if TYPE_CHECKING:\n    from kit.kernels.example import Gone", []),
    ("try:\n    from kit.kernels.example import Gone\nexcept ImportError:\n    Gone = None", []),
]


@pytest.mark.parametrize(("text", "expected"), IMPORTS)
def test_imports_of_names_that_are_not_there(text: str, expected: list[str]) -> None:
    texts = files(op=f"{text}\n\n\n{OP}") | {
        "kit/ops/helper.py": (
            "FOUND = 1\nunpacked, other = make()\nfor looped in ():\n    pass\n\n\ndef found(): ...\n\n\nclass Found: ...\n"
        ),
        "kit/kernels/wild.py": "from torch import *\n",
        "kit/kernels/lazy.py": "def __getattr__(name):\n    return 1\n",
        "kit/kernels/native/kernel.cu": "",
    }
    linted = lint("SRC105", texts)
    assert [(linted.text(item.place), item.ops) for item in linted.diagnostics] == [
        (name, ("ExampleFwdOp",)) for name in expected
    ]


PACKAGES = [
    ("from .example import ExampelKernel", "", ["ExampelKernel"]),
    ("from .example import ExampelKernel as Fast", "", ["ExampelKernel"]),
    ("from .example import ExampleKernel as Fast", "", []),
    ("from . import example", "", []),
    ("try:\n    from .example import Gone\nexcept ImportError:\n    Gone = None", "", []),
    ("from .example import *", "", []),
    ("from .example import ExampelKernel", "import kit.kernels.example\n", []),  # no name of the package is taken
]


@pytest.mark.parametrize(("text", "imports", "expected"), PACKAGES)
def test_imports_of_a_package_that_ops_import_from(text: str, imports: str, expected: list[str]) -> None:
    head = imports or "from kit.kernels import ExampleKernel\n"
    texts = files(op=f"{head}\n\n{OP}") | {"kit/kernels/__init__.py": f"{text}\nExampleKernel = 1\n"}
    assert [at for at, _ in found(lint("SRC105", texts))] == expected


def test_a_close_name_is_suggested() -> None:
    linted = lint("SRC105", files(op=f"from kit.kernels.example import ExampelKernel\n\n\n{OP}"))
    assert found(linted) == [
        ("ExampelKernel", "`kit/kernels/example.py` does not define `ExampelKernel`; did you mean `ExampleKernel`?")
    ]


MODULES = [
    ("from kit.kernels.exampel import ExampleKernel", ["the workspace has no module `kit.kernels.exampel`; "
      "`kit/kernels/example.py` defines `ExampleKernel`"]),
    ("from ..kernels.examples import ExampleKernel, Other", ["the workspace has no module `kit.kernels.examples`; "
      "`kit/kernels/example.py` defines `ExampleKernel`"]),
    ("from kit.kernels.examples import Other", []),
    ("from kit.kernels._example import ExampleKernel", []),
    ("from kit.kernels.example_c import ExampleKernel", []),
    ("try:\n    from kit.kernels.exampel import ExampleKernel\nexcept ImportError:\n    pass", []),
    ("from elsewhere.exampel import ExampleKernel", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), MODULES)
def test_modules_that_are_not_there(text: str, expected: list[str]) -> None:
    texts = files(op=f"{text}\n\n\n{OP}") | {"kit/kernels/example_c.so": ""}
    linted = lint("SRC105", texts)
    assert found(linted) == [("ExampleKernel", message) for message in expected]


# SRC106

FUNCTIONS = [
    ("kit.perf.formulas.example_roofline", []),
    ("kit.perf.formulas.imported", []),
    ("kit.perf.formulas.made", []),
    ("elsewhere.formulas.f", []),
    ("kit.perf.formulas.exemple_roofline", ["exemple_roofline: `kit/perf/formulas.py` defines no function "
      "`exemple_roofline`; did you mean `example_roofline`?"]),
    ("kit.perf.formulae.f", ["kit.perf.formulae: `roofline.func` names the module `kit.perf.formulae`, "
      "which the workspace does not have"]),
    ("kit.perf._generated.f", []),
    ("kit.perf.native.f", []),
    ("nothing", []),
    ("not a path", []),
    ("[a, b]", []),
]  # fmt: skip


@pytest.mark.parametrize(("function", "expected"), FUNCTIONS)
def test_roofline_functions(function: str, expected: list[str]) -> None:
    texts = files(roofline=f"func: {function}") | {
        "kit/perf/formulas.py": "from elsewhere import imported\n\nmade = make()\n\n\ndef example_roofline(op): ...\n",
        "kit/perf/native.so": "",
    }
    linted = lint("SRC106", texts)
    assert [f"{linted.text(item.place)}: {item.message}" for item in linted.diagnostics] == expected
