"""The words of torchgen: those built in are the installed version's, and a tree's own count more."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
import torchgen
from torchgen import model
from torchgen.packaged.autograd import gen_python_functions

from opschema_cli.requirements import read_version
from opschema_cli.suggestions import nearest
from opschema_cli.testing import lint_files
from opschema_rules.aten.pack import PACK
from opschema_rules.aten.torchgen_table import torchgen_of
from opschema_rules.aten.vocabulary import read_vocabulary, slip
from tests.rules.aten.entry_findings import entry, lines

FOLDER = Path(torchgen.__file__).parent
MODEL = (FOLDER / "model.py").read_text(encoding="utf-8")
OF_TABLE = torchgen_of(read_version(version("torch")) or (0, 0))


def test_the_table_has_the_words_of_the_installed_version() -> None:
    words = OF_TABLE.vocabulary
    assert words.dispatch_keys == set(model.DispatchKey.__members__)
    assert words.supported == {key.name for key in model.dispatch_keys}
    assert words.structured == {key.name for key in model.STRUCTURED_DISPATCH_KEYS}
    assert words.ufunc == {key.name for key in model.UFUNC_DISPATCH_KEYS}
    assert words.ufunc_keys == set(model.UfuncKey.__members__)
    assert words.types == set(model.BaseTy.__members__)
    assert words.scalar_types == set(model.ScalarType.__members__)
    assert words.dtype_classes == set(model.DTYPE_CLASSES)


def test_what_is_read_of_a_model_is_what_it_says() -> None:
    assert read_vocabulary(MODEL) == OF_TABLE.vocabulary


def test_a_file_without_dispatch_keys_is_no_model() -> None:
    assert read_vocabulary("class Other(Enum):\n    CPU = auto()\n") is None


def test_the_bindings_are_the_installed_version() -> None:
    assert OF_TABLE.bindings.skipped == set(gen_python_functions._SKIP_PYTHON_BINDINGS)
    source = (FOLDER / "api/python.py").read_text(encoding="utf-8")
    assert all(f'"{name}"' in source for name in OF_TABLE.bindings.returned)
    body = source.partition("SUPPORTED_RETURN_TYPES = {")[2].partition("}")[0]
    assert len(OF_TABLE.bindings.returned) == body.count('",')


OLD = """\
class DispatchKey(Enum):
    CPU = auto()
    Math = auto()
    # DispatchKey.CUDA = auto()
    FPGA = auto()

    def lower(self):
        other = 1

dispatch_keys = [
    DispatchKey.CPU,
    # DispatchKey.FPGA,
    DispatchKey.Math,
]

class BaseTy(Enum):
    Tensor = auto()
    Dimname = auto()

class NativeFunction:
    def from_yaml(e):
        e.pop('func')
        e.pop("dispatch", None)
        e.pop(
            "use_c10_dispatcher", None)
"""


@pytest.mark.parametrize("path", ["torchgen/model.py", "tools/codegen/model.py", "third_party/torch/torchgen/model.py"])
def test_the_words_of_the_tree_count(path: str) -> None:
    text = entry("use_c10_dispatcher: full\nvariants: method\ndispatch: {CUDA: a, FPGA: b, Math: c}")
    text += entry("", "rand(Tensor self, Dimname dim) -> Tensor")
    assert lines(text, {path: OLD}) == [
        "ATN102 'variants': torchgen has no field `variants`",
        "ATN131 'CUDA': torchgen has no dispatch key `CUDA`",
        "ATN131 'FPGA': native_functions.yaml takes no dispatch key `FPGA`",
    ]


def test_the_torchgen_that_lies_nearest_above() -> None:
    files = {
        "a/torchgen/model.py": OLD,
        "b/torchgen/model.py": MODEL,
        "a/native_functions.yaml": entry("dispatch: {CUDA: a}"),
        "b/native_functions.yaml": entry("dispatch: {Math: a}"),
    }
    found = lint_files([PACK], files, ["ATN131"]).diagnostics
    assert [(item.place.path, item.message.split("`")[1]) for item in found] == [
        ("a/native_functions.yaml", "CUDA"),
        ("b/native_functions.yaml", "Math"),
    ]


def test_bindings_of_the_tree() -> None:
    files = {
        "torchgen/model.py": MODEL,
        "torchgen/api/python.py": 'SUPPORTED_RETURN_TYPES = {\n    "at::Tensor",\n    "std::vector<double>",\n}\n',
        "tools/autograd/gen_python_functions.py": '_SKIP_PYTHON_BINDINGS = [\n    "skipped.*",  # a word\n    "(x",\n]\n',
    }
    text = entry("", "f(Tensor self) -> int") + entry("", "g(Tensor self) -> float[]") + entry("", "skipped_f() -> int")
    assert lines(text, files) == []  # one of its patterns cannot be read, so that nothing is known
    sound = files | {"tools/autograd/gen_python_functions.py": '_SKIP_PYTHON_BINDINGS = [\n    "skipped.*",\n]\n'}
    assert lines(text, sound) == ["ATN214 'int': a Python binding cannot return `int`"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *(("CPUU", "CPU"), ("CP", "CPU"), ("cpu", "CPU"), ("CUAD", "CUDA"), ("MPPS", "MPS")),
        *(("XYZ", None), ("CUBA", None), ("", None), ("CPUMPS", None)),
    ],
)
def test_slips(name: str, meant: str | None) -> None:
    assert slip(name, ["CPU", "CUDA", "MPS"]) == meant


def test_a_slip_that_may_mean_two_is_none() -> None:
    assert slip("XPU", ["CPU", "HPU"]) is None
    assert slip("PU", ["CPU", "HPU"]) is None
    assert nearest("Cuba", ["CPU", "CUDA"]) == "CUDA"
