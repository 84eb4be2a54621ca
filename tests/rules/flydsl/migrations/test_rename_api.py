"""Names of FlyDSL that were renamed: each use as the release calls it, whatever it is called here."""

from __future__ import annotations

import pytest
from packaging.version import Version

from opschema_cli.errors import OpschemaError
from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.flydsl.api_renames import RENAMED, Renamed
from opschema_rules.flydsl.api_table import has
from opschema_rules.flydsl.contract import RELEASES
from opschema_rules.flydsl.examples import HEAD, KERNELS_PATH, example_files
from opschema_rules.flydsl.pack import PACK

LINES = HEAD.count("\n")
ADAPTOR = "from flydsl.compiler.jit_argument import TensorAdaptor"


def migrate(text: str, version: str = "0.2.0", to: str = "0.4.2", **others: str) -> Migrated:
    files = example_files([("toml", f'[flydsl]\nversion = "{version}"\n'), ("python", text)])
    files |= {f"kit/{name}.py": HEAD + other for name, other in others.items()}
    return migrate_files(PACK, "rename-api", files, [f"to={to}"])


def code(done: Migrated) -> str:
    return done.files[KERNELS_PATH].removeprefix(HEAD)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("t = flyc.from_dlpack(a).mark_layout_dynamic()\n", "t = flyc.from_torch_tensor(a).mark_layout_dynamic()\n"),
        ("wrap = flyc.from_dlpack\n", "wrap = flyc.from_torch_tensor\n"),
        (
            "import flydsl\n\nt = flydsl.compiler.from_dlpack(a)\n",
            "import flydsl\n\nt = flydsl.compiler.from_torch_tensor(a)\n",
        ),
        (
            "from flydsl.compiler import from_dlpack\n\nt = from_dlpack(a)\n",
            "from flydsl.compiler import from_torch_tensor\n\nt = from_torch_tensor(a)\n",
        ),
        (
            "from flydsl.compiler import from_dlpack as wrap\n\nt = wrap(a)\n",
            "from flydsl.compiler import from_torch_tensor as wrap\n\nt = wrap(a)\n",
        ),
        (
            "def f(a):\n    from flydsl.compiler import from_dlpack, jit\n\n    return [from_dlpack(x) for x in a]\n",
            "def f(a):\n    from flydsl.compiler import from_torch_tensor, jit\n\n"
            "    return [from_torch_tensor(x) for x in a]\n",
        ),
        (
            f"{ADAPTOR}, TorchTensorJitArg\n\nx = [TensorAdaptor(a), TorchTensorJitArg(b)]\n",
            "from flydsl.compiler.jit_argument import TorchTensorJitArg\n\nx = [TorchTensorJitArg(a), TorchTensorJitArg(b)]\n",
        ),
        (
            "from flydsl.expr import *\n\nx = fx.block_product(a, b)\n",
            "from flydsl.expr import *\n\nx = fx.blocked_product(a, b)\n",
        ),
    ],
)
def test_a_name_is_renamed_where_it_is_used(before: str, after: str) -> None:
    done = migrate(before)
    assert code(done) == after
    assert done.notes() == []


METHODS = """\
class Pair:
    def __fly_values__(self):
        return [*self.a.__fly_values__(), *self.b.__fly_values__()]

    def is_pair(self, other):
        return hasattr(other, "__fly_values__")
"""


def test_methods_are_renamed_wherever_they_are() -> None:
    done = migrate(METHODS, "0.1.5", "0.1.7")
    assert code(done) == METHODS.replace("__fly_values__", "__extract_to_ir_values__")
    assert done.notes() == []


@pytest.mark.parametrize(
    "text",
    [
        "from torch.utils.dlpack import from_dlpack\n\nt = from_dlpack(a)\n",
        "import numpy\n\nt = numpy.from_dlpack(a)\n",
        "t = flyc.from_torch_tensor(a)\n",
        "def from_dlpack(a):\n    return a\n\n\nt = from_dlpack(a)\n",
        "x.from_dlpack(a)\n",
    ],
)
def test_other_things_have_such_names_too(text: str) -> None:
    assert migrate(text).sites() == []


@pytest.mark.parametrize(
    ("given", "torch_tensor"),
    [
        ("torch.empty(4)", True),
        ("torch.empty(4).cuda().view(2, 2)", True),
        ("a", True),
        ("b", False),
        ("c", False),
        ("c.cuda()", False),
        ("a[0]", True),
        ("load(a)", False),
        ("torch.utils.dlpack.to_dlpack(a)", False),
        ("torch.load('a')", False),
    ],
)
def test_since_0_2_2_from_dlpack_stays_for_what_is_no_tensor_of_torch(given: str, torch_tensor: bool) -> None:
    text = (
        f"import numpy\n\na = torch.zeros(4)\nb = numpy.zeros(4)\n\n\ndef f(c):\n    return flyc.from_dlpack({given})\n"
    )
    done = migrate(text, "0.2.2")
    assert code(done) == (text.replace("flyc.from_dlpack", "flyc.from_torch_tensor") if torch_tensor else text)


def test_a_parameter_may_say_what_it_is() -> None:
    text = "def f(a: torch.Tensor, b):\n    return flyc.from_dlpack(a), flyc.from_dlpack(b)\n"
    assert code(migrate(text, "0.3.1")) == text.replace("from_dlpack(a)", "from_torch_tensor(a)")


def test_before_the_release_nothing_is_renamed() -> None:
    text = "t = flyc.from_dlpack(fx.block_product(a, b))\n"
    assert code(migrate(text, to="0.1.8")) == text
    assert code(migrate(text, to="0.2.0")) == text.replace("block_product", "blocked_product")
    assert code(migrate(text)) == "t = flyc.from_torch_tensor(fx.blocked_product(a, b))\n"


@pytest.mark.parametrize(
    ("text", "version", "reason"),
    [
        (f"{ADAPTOR}\n\nt = TensorAdaptor(a)\n", "0.1.8", "a tensor that it wrapped had a static layout there"),
        (
            "class A:\n    def __get_c_pointers__(self): ...\n",
            "0.2.0",
            "`__c_abi_spec__` is used in another way: it gives slots",
        ),
        (
            "class A:\n    def __fly_ptrs__(self): ...\n",
            "0.1.6",
            "`__c_abi_spec__` is used in another way: it gives slots",
        ),
        (
            "from flydsl.expr.meta import traced_op\n\n\n@traced_op\ndef f(): ...\n",
            "0.2.0",
            "it does not turn arguments",
        ),
        (
            f"{ADAPTOR}\n\nTorchTensorJitArg = 1\nt = TensorAdaptor(a)\n",
            "0.2.0",
            "`TorchTensorJitArg` is bound to something else here",
        ),
    ],
)
def test_what_may_mean_something_else_is_left(text: str, version: str, reason: str) -> None:
    done = migrate(text, version)
    assert code(done) == text
    assert {item.status for item in done.result.sites} == {"left"}
    assert reason in " ".join(done.notes())


def test_between_two_eras_the_tensor_was_dynamic() -> None:
    init = "class TensorAdaptor:\n    def __init__(self, tensor):\n        self.mark_layout_dynamic(-1, 1)\n"
    files = {
        "python/flydsl/compiler/__init__.py": "from .jit_argument import TensorAdaptor, from_dlpack\n",
        "python/flydsl/compiler/jit_argument.py": init + "\n\ndef from_dlpack(tensor): ...\n",
        "python/flydsl/__init__.py": "",
        "examples/add.py": HEAD + "t = flyc.from_dlpack(a)\nu = flyc.jit_argument.TensorAdaptor(a)\n",
    }
    done = migrate_files(PACK, "rename-api", files)
    assert done.files["examples/add.py"] == files["examples/add.py"].replace("TensorAdaptor", "TorchTensorJitArg")
    assert "a tensor that it wrapped had a dynamic layout there" in " ".join(done.notes())


def test_details_and_texts_come_back_as_notes() -> None:
    text = (
        "from flydsl.compiler.jit_function import FlyDSLCompileError\n\n"
        "try:\n    run()\nexcept FlyDSLCompileError as error:  # a FlyDSLCompileError\n    print(error)\n"
    )
    done = migrate(text)
    assert code(done) == text.replace("FlyDSLCompileError", "DSLCompileError").replace("# a DSL", "# a FlyDSL")
    assert done.notes() == [
        f"kit/kernels.py:{LINES + 1}: `DSLCompileError` differs: its `diagnostics` are records now, and were strings",
        f"kit/kernels.py:{LINES + 5}: `FlyDSLCompileError` is still mentioned here",
    ]


def test_private_attributes_come_back_as_notes() -> None:
    text = (
        f"{ADAPTOR}\n\nx = TensorAdaptor._slots(a), TensorAdaptor(a)._align, TensorAdaptor(a).__cache_signature__()\n"
    )
    done = migrate(text)
    assert code(done) == text.replace("TensorAdaptor", "TorchTensorJitArg")
    assert done.notes() == [
        f"kit/kernels.py:{LINES + 3}: `{name}` is private: what has the new name may not have it"
        for name in ("_slots", "_align")
    ]


def test_the_release_must_be_one() -> None:
    with pytest.raises(OpschemaError, match=r"-o to=new: a release is expected"):
        migrate("flyc.from_dlpack(a)\n", to="new")


def before(release: str) -> Version:
    return max(item for item in RELEASES if item < Version(release))


@pytest.mark.parametrize("row", [row for row in RENAMED if not row.is_method], ids=lambda row: row.old)
def test_the_table_is_that_of_the_wheels(row: Renamed) -> None:
    assert [has(row.new, before(row.since)), has(row.new, Version(row.since))] == [False, True]
    if row.removed:
        assert [has(row.old, before(row.removed)), has(row.old, Version(row.removed))] == [True, False]
    else:
        assert has(row.old, max(RELEASES))


def test_the_table_names_releases_and_no_name_twice() -> None:
    assert {Version(row.since) for row in RENAMED} <= set(RELEASES)
    assert all(Version(row.removed) in RELEASES for row in RENAMED if row.removed)
    assert all(row.remark for row in RENAMED if not row.same)
    assert len({row.old for row in RENAMED}) == len(RENAMED)


@pytest.mark.parametrize(
    "text",
    [
        'if hasattr(flyc, "from_torch_tensor"):\n    wrap = flyc.from_torch_tensor\nelse:\n    wrap = flyc.from_dlpack\n',
        'wrap = flyc.from_torch_tensor if hasattr(flyc, "from_torch_tensor") else flyc.from_dlpack\n',
        "try:\n    wrap = flyc.from_torch_tensor\nexcept AttributeError:\n    wrap = flyc.from_dlpack\n",
        "try:\n    from flydsl.compiler import from_torch_tensor as wrap\n"
        "except ImportError:\n    from flydsl.compiler import from_dlpack as wrap\n",
        "import flydsl\n\nif flydsl.__version__ < '0.2':\n    wrap = flyc.from_dlpack\nelse:\n    from kit import wrap\n",
        'def wrap(t):\n    if hasattr(flyc, "from_torch_tensor"):\n        return flyc.from_torch_tensor(t)\n'
        "    return flyc.from_dlpack(t)\n",
    ],
)
def test_code_that_chooses_between_the_names_stays(text: str) -> None:
    done = migrate(text)
    assert code(done) == text
    said = "the code around chooses between `from_dlpack` and `from_torch_tensor`"
    assert [note.rpartition("by hand: ")[2] for note in done.notes()] == [said]


def test_other_conditions_choose_no_name() -> None:
    text = "def wrap(t, n):\n    if n:\n        return flyc.from_dlpack(t)\n    try:\n        return flyc.from_dlpack(n)\n{}"
    end = "    except TypeError:\n        return None\n"
    done = migrate(text.format(end))
    assert code(done) == text.format(end).replace("from_dlpack", "from_torch_tensor")
