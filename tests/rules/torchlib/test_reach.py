"""Which Python files are read: those that get hold of ``torch.library``, and those that import from them what registers."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.program import Program
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.torchlib.detection import TorchlibOptions, detect
from opschema_rules.torchlib.dialect import TORCH
from opschema_rules.torchlib.load import read_tree
from opschema_rules.torchlib.outlines import Words
from opschema_rules.torchlib.pack import PACK
from opschema_rules.torchlib.registrations import MAX_RECURSION, Walker

OPS = """import torch


@torch.library.custom_op("kit::f", mutates_args=())
def f(x: torch.Tensor) -> torch.Tensor:
    return x.clone()
"""
FAKE = "@{}.register_fake\ndef _(x):\n    return x\n"
OTHER = "class Module:\n    def register_kernel(self, kernel): ...\n    def register_fake(self, value): ...\n\n\nm = Module()\n"


def write(root: Path, files: dict[str, str]) -> Workspace:
    for path, text in {"kit/__init__.py": "", **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return Workspace(root)


def read(root: Path, files: dict[str, str]) -> tuple[list[int], set[str]]:
    """How many registrations each operator has, and the files that were parsed."""
    project = Project(write(root, files))
    tree = read_tree(project, TorchlibOptions())
    return [len(item.registrations) for item in tree.operators], {
        path for path, file in project._python.items() if file is not None
    }


@pytest.mark.parametrize(
    "code",
    [
        OPS.replace("torch.library", "torch. library"),
        OPS.replace("torch.library.", "torch . library . "),
        OPS.replace("torch.library", "torch.\\\n    library"),
        'import torch\nlib = torch. library.Library("kit", "DEF")\nlib.define("f(Tensor x) -> Tensor")\n',
        'import torch\nlib = torch\\\n    .library . Library ("kit", "DEF")\nlib.define("f(Tensor x) -> Tensor")\n',
    ],
)
def test_white_space_in_a_dotted_name_hides_nothing(tmp_path: Path, code: str) -> None:
    assert read(tmp_path, {"kit/ops.py": code}) == ([0], {"kit/ops.py"})


@pytest.mark.parametrize(
    "code", ["import torch\n# a library: custom_op\n", "from kit import library\nlibrary.define('f')\n"]
)
def test_a_word_alone_reaches_nothing(tmp_path: Path, code: str) -> None:
    assert not detect(Project(write(tmp_path, {"kit/ops.py": code})), TorchlibOptions())


@pytest.mark.parametrize(
    "fakes",
    [
        "from kit.ops import f\n" + FAKE.format("f"),
        "from kit import ops\n" + FAKE.format("ops.f"),
        "import kit.ops\n" + FAKE.format("kit.ops.f"),
        "from .ops import *\n" + FAKE.format("f"),
        'import torch\n@torch.library.register_fake("kit::f")\ndef _(x):\n    return x\n',
        'from torch.library import register_fake as fake\n@fake("kit::f")\ndef _(x):\n    return x\n',
        'import torch as t\n@t.library.register_fake("kit::f")\ndef _(x):\n    return x\n',
        'from torch import (\n    nn,\n    library,\n)\n@library.register_fake("kit::f")\ndef _(x):\n    return x\n',
    ],
)
def test_a_registration_in_another_file_is_found(tmp_path: Path, fakes: str) -> None:
    alone, _ = read(tmp_path / "alone", {"kit/ops.py": OPS})
    registrations, _ = read(tmp_path / "both", {"kit/ops.py": OPS, "kit/fakes.py": fakes})
    assert registrations == [alone[0] + 1]


def test_the_register_fake_of_another_library_is_not_read(tmp_path: Path) -> None:
    others = {f"kit/other{n}.py": OTHER + FAKE.format("m") for n in range(3)}
    operators, parsed = read(tmp_path, {"kit/ops.py": OPS, **others})
    assert (len(operators), parsed) == (1, {"kit/ops.py"})


@pytest.mark.parametrize("text", [OTHER, "custom_op = make()\ncustom_op.body.append(1)\n", "# a library of kernels\n"])
def test_a_tree_that_never_names_torch_library_is_not_the_packs(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.py").write_text(text)
    assert not detect(Project(Workspace(tmp_path)), TorchlibOptions())


def test_a_comment_on_torch_library_makes_nothing_be_read(tmp_path: Path) -> None:
    operators, parsed = read(tmp_path, {"kit/a.py": "# as torch.library.custom_op does\n", "kit/b.py": OTHER})
    assert (operators, parsed) == ([], {"kit/a.py"})


HELPER = """import torch

lib = torch.library.Library("kit", "DEF")


class Registry:
    def __init__(self, schema):
        lib.define(schema)


def register(schema):
    return Registry(schema)
"""
SCHEMA = "f(Tensor x) -> Tensor"


@pytest.mark.parametrize(
    "text",
    [
        'from kit.helper import register\nregister("{}")\n',
        'from kit import helper\nhelper.register("{}")\n',
        'from kit.helper import register as make\nmake("{}")\n',
        'from .helper import *\nregister("{}")\n',
        'from kit.helper import Registry\nRegistry("{}")\n',
        'from functools import partial\nfrom kit.helper import register\nmake = partial(register, "{}")\nmake()\n',
    ],
)
def test_a_file_that_uses_a_helper_is_read(tmp_path: Path, text: str) -> None:
    operators, _ = read(tmp_path, {"kit/helper.py": HELPER, "kit/user.py": text.format(SCHEMA)})
    assert len(operators) == 1


@pytest.mark.parametrize(
    "text",
    [
        "from kit.helper import register, Registry\n",
        "from kit.helper import Registry\n\n\ndef show(item: Registry) -> bool:\n    return isinstance(item, Registry)\n",
        "import kit.helper\n\n\ndef register_other(): ...\n",
    ],
)
def test_a_file_that_only_names_a_helper_is_not_read(tmp_path: Path, text: str) -> None:
    _, parsed = read(tmp_path, {"kit/helper.py": HELPER, "kit/user.py": text})
    assert parsed == {"kit/helper.py"}


def test_a_parameter_with_the_name_of_a_helper_is_none(tmp_path: Path) -> None:
    user = f'from kit.helper import Registry\n\n\ndef run(register):\n    register()\n\n\nRegistry("{SCHEMA}")\n'
    project = Project(write(tmp_path, {"kit/helper.py": HELPER, "kit/user.py": user}))
    words = Words(project)
    words.add(filter(None, map(project.python, ["kit/helper.py", "kit/user.py"])))
    assert {"Registry"} <= words.of("kit/user.py")
    assert words.of("kit/user.py").isdisjoint({"register", "run"})


def test_a_function_that_calls_itself_in_many_places_is_followed_a_few_times(tmp_path: Path) -> None:
    body = "    make(schema[0])\n" * 6
    user = f"from kit.helper import register\n\n\ndef make(schema):\n    register(schema)\n{body}\n\nmake('{SCHEMA}')\n"
    project = Project(write(tmp_path, {"kit/helper.py": HELPER, "kit/user.py": user}))
    paths = project.workspace.files
    evaluator = TreeEvaluator(Bodies(Program(paths, project.python, paths), paths), (TORCH,))
    words = Words(project)
    files = [file for file in map(project.python, ["kit/helper.py", "kit/user.py"]) if file is not None]
    words.add(files)
    assert len(Walker(evaluator, files, words).walk_all()) <= MAX_RECURSION + 2


WRITTEN = '"f(Tensor x) -> Tensor"'
LIBRARY = 'import torch\nlib = torch.library.Library("kit", "DEF")\n'
DEFINER = "def register(name, schema, impl):\n    lib.define(name + schema)\n    lib.impl(name, impl, 'CPU')\n"


@pytest.mark.parametrize(
    "files",
    [
        {"kit/ops.py": f"from kit.lib import lib\nlib.define({WRITTEN})\nlib.impl('f', f, 'CPU')\n"},
        {"kit/ops.py": f"from kit import lib\nlib.lib.define({WRITTEN})\nlib.lib.impl('f', f, 'CPU')\n"},
        {"kit/ops.py": f"import kit.lib\nkit.lib.lib.define({WRITTEN})\nkit.lib.lib.impl('f', f, 'CPU')\n"},
        {"kit/ops.py": f"from .lib import lib as own\nown.define({WRITTEN})\nown.impl('f', f, 'CPU')\n"},
        {
            "kit/ops.py": "from kit.lib import lib\nfor k, s in {'f': '(Tensor x) -> Tensor'}.items():\n"
            "    lib.define(k + s)\n    lib.impl(k, f, 'CPU')\n"
        },
        {
            "kit/lib.py": f"from functools import partial\n{LIBRARY}{DEFINER}add_op = partial(register, impl=f)\n",
            "kit/ops.py": "from kit.lib import add_op\nadd_op('f', '(Tensor x) -> Tensor')\n",
        },
        {
            "kit/lib.py": f"{LIBRARY}{DEFINER}add_op = register\n",
            "kit/ops.py": "from kit.lib import add_op\nadd_op('f', '(Tensor x) -> Tensor', f)\n",
        },
    ],
)
def test_a_library_or_helper_of_another_file(tmp_path: Path, files: dict[str, str]) -> None:
    registrations, parsed = read(tmp_path, {"kit/lib.py": LIBRARY, **files})
    assert registrations == [1]
    assert "kit/ops.py" in parsed


def test_methods_of_something_else_are_not_those_of_a_library(tmp_path: Path) -> None:
    other = "from kit.models import model\nmodel.define(1)\nmodel.impl('f')\nlib = 1\n"
    _, parsed = read(tmp_path, {"kit/lib.py": LIBRARY, "kit/models.py": "model = Model()\n", "kit/other.py": other})
    assert "kit/other.py" not in parsed


def test_an_operator_whose_library_is_of_another_file_is_defined(tmp_path: Path) -> None:
    files = {
        "kit/__init__.py": "",
        "kit/lib.py": LIBRARY,
        "kit/ops.py": f"from kit.lib import lib\nlib.define({WRITTEN})\n",
        "kit/fakes.py": 'import torch\n@torch.library.register_fake("kit::f")\ndef _(x):\n    return x.clone()\n',
    }
    assert lint_files([PACK], files).diagnostics == []


WRAPPED = """\
import torch
from kit.utils import op_of

LIB = torch.library.Library("kit", "FRAGMENT")
register = op_of(LIB)


@register
def _f(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@op_of(LIB)
def g(x: torch.Tensor) -> torch.Tensor:
    return x.clone()
"""
INFERRING = """\
def op_of(lib):
    def decorator(fn):
        from torch._library.infer_schema import infer_schema

        name = fn.__name__
        if name[0] == "_":
            name = name[1:]
        lib.define(name + infer_schema(fn, mutates_args={}))
        lib.impl(name, fn, "CompositeImplicitAutograd")
        return fn

    return decorator
"""
PLAIN = """\
def op_of(lib):
    def decorator(fn):
        lib.define(f"{fn.__name__.lstrip('_')}(Tensor x) -> Tensor")
        lib.impl(fn.__name__.lstrip("_"), fn, "CPU")
        return fn

    return decorator
"""


@pytest.mark.parametrize("helper", [INFERRING, PLAIN])
def test_a_helper_in_a_file_that_does_not_import_torch_library(tmp_path: Path, helper: str) -> None:
    project = Project(write(tmp_path, {"kit/utils.py": helper, "kit/ops.py": WRAPPED}))
    operators = read_tree(project, TorchlibOptions()).operators
    assert sorted(min(item.names or {""}) for item in operators) == ["kit::f", "kit::g"]
    assert [len(item.registrations) for item in operators] == [1, 1]
