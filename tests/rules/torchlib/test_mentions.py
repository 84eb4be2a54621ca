"""Files that are parsed because their text says that they may register operators, or call them."""

from __future__ import annotations

import pytest

from opschema_rules.torchlib.mentions import Helper, is_used
from tests.rules.torchlib.operators_of import tree_of

KIT = Helper("kit.py", "Kit", True, frozenset({"register", "add"}), frozenset({"size", "_made"}))


@pytest.mark.parametrize(
    ("code", "used"),
    [
        ("Kit()", True),
        ("Kit.register(f)", True),
        ("@Kit\ndef f(): ...", True),
        ("@Kit.register\ndef f(): ...", True),
        ("kit = other.Kit", True),
        ("make = partial(Kit, 1)", True),
        ("class Mine(Base, Kit): ...", True),
        ("Kit.registry.add(f)", True),
        ("n = Kit.size()", False),
        ("n = Kit.size() + Kit . _made", False),
        ("Kit.size()\nKit.add(f)", True),
        ("kit = Kit._made()\nkit.add(f)", True),
        ("def f(kit: Kit) -> Kit | None: ...", False),
        ("isinstance(x, Kit)", False),
        ("Kits.add(f)", False),
    ],
)
def test_a_class_is_used_by_what_may_register(code: str, used: bool) -> None:
    assert is_used(code, KIT) is used


@pytest.mark.parametrize(
    ("caller", "calls"),
    [
        ("import torch\ntorch.ops.ns.f(1)\n", 1),
        ("from kit.ops import f\nf(1)\n", 1),
        ("from kit.names import g\ng(1)\n", 1),
        ("from kit.names import h\nh(1)\n", 1),
        ("from kit.names import f\nf(1)\n", 0),
    ],
)
def test_calls_in_other_files(caller: str, calls: int) -> None:
    define = 'lib = torch.library.Library("ns", "DEF")\n' + "".join(
        f'lib.define("{name}(int x) -> int")\n' for name in "gh"
    )
    custom = '@torch.library.custom_op("ns::f", mutates_args=())\ndef f(x: int) -> int: ...\n'
    files = {
        "kit/__init__.py": "",
        "kit/ops.py": f"import torch\n{define}{custom}",
        "kit/names.py": "import torch\ng = torch.ops.ns.g\nh = (\n    torch.ops.ns.h\n)\ndef f(x): ...\n",
        "caller.py": caller,
    }
    tree = tree_of(files)
    assert sum(call.place.path == "caller.py" for item in tree.operators for call in item.calls) == calls
