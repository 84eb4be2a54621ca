"""Ops that are looked up, or named, by strings: `group-flags` refuses what it cannot rewrite, and lists what may be one."""

from __future__ import annotations

import pytest

from opschema_cli.testing import migrate_files
from opschema_rules.magi.examples import example_files
from opschema_rules.magi.pack import PACK
from tests.rules.magi.migrations.test_group_flags import OP, code, migrate, refused


@pytest.mark.parametrize(
    "lookup",
    [
        "getattr(torch.ops.kit, 'f')",
        "getattr(torch.ops.kit, 'f', None)",
        "getattr(getattr(torch.ops, 'kit'), 'f').default",
        "getattr(KIT, 'f')",
        "torch.ops.kit.__getattr__('f')",
        "getattr(ops, 'f')",
        "vars(ops)['f']",
        "ops.__dict__['f']",
        "importlib.import_module('kit.ops').f",
        "getattr(importlib.import_module('kit.ops'), 'f')",
        "sys.modules['kit.ops'].f",
    ],
)
def test_an_op_that_is_looked_up_by_a_string_is_left(lookup: str) -> None:
    caller = (
        f"import importlib\nimport sys\n\nimport torch\n\nfrom kit import ops\n\nKIT = torch.ops.kit\nrun = {lookup}\n"
    )
    done = migrate(OP, caller=caller, __init__="")
    refused(done, OP, "kit/caller.py:9: the op is looked up by a string here")


@pytest.mark.parametrize("lookup", ["getattr(SPACE, 'f')", 'vars(SPACE)["f"]'])
def test_its_namespace_may_have_another_name_in_another_file(lookup: str) -> None:
    caller = f"from .spaces import SPACE\n\nrun = {lookup}\n"
    done = migrate(OP, caller=caller, spaces="import torch\n\nSPACE = torch.ops.kit\n", __init__="")
    refused(done, OP, "kit/caller.py:3: the op is looked up by a string here")


@pytest.mark.parametrize(
    "other",
    [
        "getattr(torch.ops.kit, 'g')",
        "getattr(torch.ops.other, 'f')  # kit",
        "getattr(other, 'f')",
        "vars(other)['f']",
        "getattr(torch.ops.other, name)  # kit",
    ],
)
def test_something_else_of_its_name_is_not_the_op(other: str) -> None:
    caller = f"import torch\n\nfrom kit import ops, other\n\nname = 'f'\nrun = {other}\n"
    done = migrate(OP, caller=caller, other="def f(x, n):\n    return x\n", __init__="")
    assert done.files["kit/caller.py"] == caller
    assert code(done) != OP
    assert done.notes() == []


@pytest.mark.parametrize(
    "line", ["run = getattr(torch.ops.kit, name)", "run = getattr(made(), 'f')", "run = vars(made())['f']"]
)
def test_what_may_be_the_op_is_listed(line: str) -> None:
    done = migrate(OP, caller=f"import torch\n\nfrom kit.made import made, name\n\n{line}\n")
    assert done.notes() == ["kit/caller.py:5: this may be `kit::f`, which takes other arguments now"]
    assert code(done) != OP


@pytest.mark.parametrize(
    "line",
    [
        "run = attrgetter('f')(ops)",
        "run = operator.attrgetter('g', 'kit.f.default')(torch.ops)",
        "run = attrgetter('ops.kit.f')(torch)",
        "run = methodcaller('f', 1)(torch.ops.kit)",
        "run = globals()['f']",
        "run = globals().get('f', None)",
        "run = vars().get('f')",
        "run = vars(ops).get('f')",
        "run = ops.__dict__.pop('f')",
        "run = vars(sys.modules['kit.ops']).get('f')",
        "run = inspect.getattr_static(ops, 'f')",
        "run = object.__getattribute__(ops, 'f')",
        "monkeypatch.setattr(ops, 'f', None)",
        "mock.patch.object(ops, 'f')",
    ],
)
def test_lookups_in_several_steps_are_listed(line: str) -> None:
    caller = f"import sys\n\nimport torch\n\nfrom kit import ops\nfrom kit.ops import f\n\n{line}\n"
    done = migrate(OP, caller=caller, __init__="")
    assert done.notes() == ["kit/caller.py:8: this is `kit::f`, which takes other arguments now"]
    assert code(done) != OP


@pytest.mark.parametrize(
    "line",
    ["get = attrgetter('f')", "run = methodcaller('f', 1)(made())", "run = vars(made()).get('f')"],
)
def test_lookups_in_several_steps_in_something_unknown_are_listed(line: str) -> None:
    done = migrate(OP, caller=f"from kit.made import made\n\n{line}\n")
    assert done.notes() == ["kit/caller.py:3: this may be `kit::f`, which takes other arguments now"]


@pytest.mark.parametrize(
    "line",
    [
        "run = attrgetter('f')(other)",
        "run = attrgetter('other.f')(torch.ops)",
        "run = attrgetter('g')(ops)",
        "run = globals()['f']",
        "run = globals()[('f')[0]]",
        "run = globals().get(other, 'f')",
        "run = vars(other).get('f')",
        "run = table.get('f')",
        "setattr(ops, other, 'f')",
        "methodcaller('g', 'f', 'kit')(ops)  # and attrgetter",
    ],
)
def test_lookups_in_several_steps_of_something_else_are_not(line: str) -> None:
    caller = f"import torch\n\nfrom kit import ops, other\nfrom kit.other import f\n\n{line}\n"
    done = migrate(OP, caller=caller, other="def f(x, n):\n    return x\n", __init__="")
    assert done.notes() == []


@pytest.mark.parametrize(
    "line",
    [
        "torch.library.register_autocast('kit::f', 'cuda', torch.float16)",
        "mock.patch('kit.ops.f', None)",
        "# see kit::f",
        "op = find('torch.ops.kit.f')  # kit::f",
    ],
)
def test_mentions_of_its_qualified_name_are_listed(line: str) -> None:
    done = migrate(OP, caller=f"import torch\nfrom unittest import mock\n\n{line}\n")
    assert done.notes() == ["kit/caller.py:4: `kit::f`, which takes other arguments now, is named here"]


def test_mentions_in_other_files_are_listed() -> None:
    files = {**example_files([("python", OP)]), "README.md": "`torch.ops.kit.f` scales; `kit::g` does not.\n"}
    files["csrc/op.cpp"] = 'auto op = c10::Dispatcher::singleton().findSchemaOrThrow("kit::f", "");\n'
    done = migrate_files(PACK, "group-flags", files, ["op=kit::f", "flags=n,scale", "name=Cfg"])
    said = "`kit::f`, which takes other arguments now, is named here"
    assert done.notes() == [f"README.md:1: {said}", f"csrc/op.cpp:1: {said}"]
