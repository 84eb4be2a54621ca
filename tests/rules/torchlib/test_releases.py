"""Functions of ``torch.library`` by release: the table against the installed torch, and what the rule makes of it."""

from __future__ import annotations

import inspect

import pytest

from opschema_cli.requirements import read_version
from opschema_cli.testing import lint_files
from opschema_rules.torchlib.api_table import functions_of, parameters
from opschema_rules.torchlib.pack import PACK

TORCH_2_6 = "torch==2.6.0\n"


def messages(code: str, requirements: str = TORCH_2_6) -> list[str]:
    head = "import torch\nfrom torch import Tensor\n"
    files = {"ops.py": head + code, "requirements.txt": requirements}
    return [item.message for item in lint_files([PACK], files, ["REG122"]).diagnostics]


OP = """
@torch.library.custom_op("demo::twice", mutates_args=())
def twice(x: Tensor) -> Tensor:
    return x + x
"""


def test_the_table_is_what_the_installed_torch_has() -> None:
    torch = pytest.importorskip("torch")
    version = read_version(torch.__version__)
    assert version is not None
    table = functions_of(version)
    assert len(table) > 20
    for name, text in table.items():
        owner: object = torch._library.custom_ops if ".CustomOpDef." in name else torch.library
        function = owner
        for part in name.removeprefix("torch.library.").split("."):
            function = getattr(function, part)
        found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
        assert parameters(text) == {item.name for item in found if item.kind is not item.POSITIONAL_ONLY}, name


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (
            OP + 'torch.library.register_autocast("demo::twice", "cuda", torch.float16)\n',
            "torch 2.6 (`requirements.txt`) has no `torch.library.register_autocast`; torch 2.7 is the first that does",
        ),
        (
            OP + 'twice.register_autocast("cuda", torch.float16)\n',
            "torch 2.6 (`requirements.txt`) has no `torch.library.CustomOpDef.register_autocast`; torch 2.7 is the first that does",
        ),
        (
            OP.replace("mutates_args=()", "mutates_args=(), tags=()"),
            "`torch.library.custom_op` of torch 2.6 (`requirements.txt`) takes no keyword `tags`; torch 2.8 is the first that does",
        ),
        (
            OP.replace("mutates_args=()", "mutates_args=(), device_type='cpu'"),
            "`torch.library.custom_op` of torch 2.6 (`requirements.txt`) takes no keyword `device_type`; "
            "did you mean `device_types`?",
        ),
        (
            'lib = torch.library.Library("demo", "DEF")\nlib.define("f(Tensor x) -> Tensor")\n'
            'lib.impl("f", lambda x: x + 1, "CPU", allow_override=True)\n',
            "`torch.library.Library.impl` of torch 2.6 (`requirements.txt`) takes no keyword `allow_override`; "
            "torch 2.8 is the first that does",
        ),
    ],
)
def test_what_the_release_lacks(code: str, found: str) -> None:
    assert messages(code) == [found]
    assert messages(code, "torch==2.3.0\n") == []  # no release that is known


CALL = 'torch.library.register_autocast("demo::twice", "cuda", torch.float16)\n'


@pytest.mark.parametrize(
    "code",
    [
        'if not hasattr(torch.library, "register_autocast"):\n    raise RuntimeError\n' + CALL,
        'import sys\nif torch.__version__ < "2.7":\n    sys.exit(0)\n' + CALL,
        'import pytest\nif torch.__version__ < "2.7":\n    pytest.skip("old", allow_module_level=True)\n' + CALL,
        'import pytest\npytest.importorskip("torch", minversion="2.7")\n' + CALL,
        'hasattr(torch.library, "register_autocast") and ' + CALL,
        f'x = {CALL.strip()} if hasattr(torch.library, "register_autocast") else None\n',
        "import contextlib\nwith contextlib.suppress(AttributeError):\n    " + CALL,
        "torch.library.register_autocast = lambda *given: None\n" + CALL,
    ],
)
def test_calls_that_the_release_does_not_reach(code: str) -> None:
    assert messages(OP + code) == []


@pytest.mark.parametrize(
    "code",
    [
        "if not torch.cuda.is_available():\n    raise RuntimeError\n" + CALL,
        'if hasattr(torch.library, "custom_op"):\n    print("new")\n' + CALL,
        "with torch.no_grad():\n    " + CALL,
        CALL + 'if torch.__version__ < "2.7":\n    raise RuntimeError\n',
    ],
)
def test_other_statements_beside_such_a_call(code: str) -> None:
    assert len(messages(OP + code)) == 1


@pytest.mark.parametrize(
    "code",
    [
        OP + "@twice.register_fake\ndef _(x):\n    return torch.empty_like(x)\n",
        OP + 'if hasattr(torch.library, "register_autocast"):\n'
        '    torch.library.register_autocast("demo::twice", "cuda", torch.float16)\n',
        OP + 'try:\n    torch.library.register_autocast("demo::twice", "cuda", torch.float16)\n'
        "except AttributeError:\n    pass\n",
        OP + "def late():\n    twice.register_autocast('cuda', torch.float16)\n",
        'lib = torch.library.Library("demo", "DEF")\ntorch.library.define("demo::f", "(Tensor x) -> Tensor", lib=lib)\n',
        'lib = torch.library.Library("demo", "DEF")\ntorch.library.define(lib, "f(Tensor x) -> Tensor", alias_analysis="")\n',
    ],
)
def test_what_may_be_meant_for_another_release(code: str) -> None:
    assert messages(code) == []


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        (".github/workflows/ci.yml", "env:\n  TORCH_VERSION: 2.6.0\n", True),
        ("uv.lock", '[[package]]\nname = "torch"\nversion = "2.6.0"\n', True),
        (".torch_commit", "2236df1770800ffea5697b11b0bb0d910b2e59e1\n", True),
        (".github/workflows/ci.yml", "        torch: [2.6.0, 2.9.0]\n", False),
        (".github/workflows/ci.yml", "- run: pip install torch==1.8.0\n", False),
        (".torch_commit", "b" * 40, False),
        ("setup.py", '"""Example::\n\n    pip install torch==2.6.0\n"""\nsetup(install_requires=["torch"])\n', False),
        (".github/workflows/ci.yml", "- run: pip install torch==2.6.0\n- run: pip install torch\n", False),
    ],
)
def test_without_a_requirement_the_only_pinned_release_counts(path: str, text: str, found: bool) -> None:
    code = "import torch\n" + OP.replace("Tensor", "torch.Tensor") + 'twice.register_autocast("cuda", torch.float16)\n'
    first = lint_files([PACK], {"ops.py": code, path: text}, ["REG122"]).diagnostics
    assert bool(first) is found
    required = {"ops.py": code, path: text, "requirements.txt": "torch>=2.7\n"}
    assert lint_files([PACK], required, ["REG122"]).diagnostics == []


def test_a_tag_that_the_release_lacks() -> None:
    code = """
lib = torch.library.Library("demo", "DEF")
lib.define("a(Tensor x) -> Tensor", tags=[torch.Tag.core, torch.Tag.reduction])
lib.define("b(Tensor x) -> Tensor", tags=torch.Tag.out)
lib.define("c(Tensor x) -> Tensor", tags=(torch.Tag.reduction,) if hasattr(torch.Tag, "reduction") else ())
if hasattr(torch.Tag, "reduction"):
    lib.define("d(Tensor x) -> Tensor", tags=(torch.Tag.reduction,))
TAGS = ()
try:
    TAGS = (torch.Tag.reduction,)
except AttributeError:
    pass
lib.define("e(Tensor x) -> Tensor", tags=TAGS)


def late():
    if not hasattr(torch.Tag, "reduction"):
        return
    lib.define("f(Tensor x) -> Tensor", tags=(torch.Tag.reduction,))


late()
"""
    assert messages(code) == [
        "torch 2.6 (`requirements.txt`) has no `torch.Tag.reduction`; torch 2.10 is the first that does",
        "torch 2.6 (`requirements.txt`) has no `torch.Tag.out`; torch 2.13 is the first that does",
    ]
    assert messages(code, "torch==2.10.0\n") == [
        "torch 2.10 (`requirements.txt`) has no `torch.Tag.out`; torch 2.13 is the first that does"
    ]
    assert messages(code, "torch==2.15.0\n") == []
