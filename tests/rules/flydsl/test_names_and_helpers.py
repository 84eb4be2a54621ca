"""FLY240 and FLY241: programs that look wrong and are right."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import BASE_FILES, HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK

USING = "@flyc.kernel\ndef use(A: fx.Tensor, n: fx.Int32):\n    A[0] = n + tile\n"
STORE = "def store(tensor, index, value):\n    tensor[index] = value\n\n\n"
STORING = "@flyc.kernel\ndef fill(A: fx.Tensor, n: fx.Int32):\n    store(A, n)\n"
OWN_TOOLS = "class tools:\n    @staticmethod\n    def contextmanager(function):\n        return print\n\n\n"
OWN_CACHE = "def cache(function):\n    return lambda *values: function(*values, 1)\n\n\n"


def codes(text: str, files: dict[str, str] | None = None) -> list[str]:
    files = {**BASE_FILES, **(files or {}), KERNELS_PATH: f"{HEAD}{text}"}
    return lint_files([PACK], files, ["FLY240", "FLY241"]).codes()


def test_an_undefined_name_and_a_missing_argument() -> None:
    assert codes(USING) == ["FLY241"]
    assert codes(STORE + STORING) == ["FLY240"]
    assert codes(f"import functools\n\n\n@functools.cache\n{STORE}{STORING}") == ["FLY240"]
    assert codes(f"from functools import lru_cache as kept\n\n\n@kept(4)\n{STORE}{STORING}") == []


@pytest.mark.parametrize(
    "before",
    [
        "def setup():\n    global tile\n    tile = 4\n",
        "def setup():\n    global tile\n    from kit.other import tile\n",
        "def setup():\n    global tile\n    for tile in range(4):\n        pass\n",
        "def setup():\n    global tile\n\n    def tile():\n        pass\n",
        "print(tile := 4)\n",
        "flags = [tile := item for item in (1, 2)]\n",
        "match 3, 4:\n    case 3, tile:\n        pass\n",
        "import contextlib\n\nwith contextlib.nullcontext((3, 4)) as (tile, other):\n    pass\n",
        "for index, (left, *tile) in []:\n    pass\n",
        "(first, [*tile]) = 1, [2]\n",
        "TYPE_CHECKING = True\n\nif TYPE_CHECKING:\n    from math import pi as tile\n",
        "type tile = list[int]\n",
        "type tile[T: list[int]] = dict[str, T]\n",
        "type tile[T = int, *Ts = *tuple[int, ...]] = dict[T, Ts]\n",
        "type tile[\n    T,  # of x[0]]\n    U,\n] = dict[T, U]\n",
        "type tile \\\n    = list[int]\n",
        "import sys\n\nsys.modules[__name__].tile = 4\n",
        "import sys\n\nthis = sys.modules[__name__]\nthis.tile = 4\n",
        "import inspect\n\ninspect.currentframe().f_globals['tile'] = 4\n",
        "def put(function):\n    function.__globals__['tile'] = 4\n    return function\n",
        "names = globals\nnames()['tile'] = 4\n",
    ],
)
def test_names_that_are_bound_in_other_ways(before: str) -> None:
    assert codes(f"{before}\n\n{USING}") == []


@pytest.mark.parametrize("name", ["__builtins__", "__cached__", "__annotations__", "WindowsError"])
def test_names_of_other_systems_and_of_every_module(name: str) -> None:
    assert codes(USING.replace("tile", name)) == []


@pytest.mark.parametrize(
    "parameters", ["[tile: (int, float)]", "[T: (int, list[int]), tile]", "[  # ]\n    T, tile]", " \\\n    [tile]"]
)
def test_parameters_of_types(parameters: str) -> None:
    inner = "".join(f"    {line}\n" for line in USING.splitlines())
    assert codes(f"def make{parameters}(value):\n{inner}") == []
    assert codes(f"class Make{parameters}:\n    pass\n\n\n{USING}") == []


def test_types_that_are_imported_for_tools_alone() -> None:
    text = "TYPE_CHECKING = False\n\nif TYPE_CHECKING:\n    from math import pi as tile\n\n\n"
    assert codes(text + USING) == ["FLY241"]


@pytest.mark.parametrize(
    "before",
    [
        f"{OWN_CACHE}@cache\n{STORE}",
        f"from kit.other import cache\n\n\n@cache\n{STORE}",
        f"{OWN_TOOLS}@tools.contextmanager\n{STORE}",
        f"{STORE}store.__defaults__ = (0,)\n\n\n",
        f"import sys\n\n\n{STORE}sys.modules[__name__].store = print\n\n\n",
        f"import sys\n\n\n{STORE}setattr(sys.modules[__name__], 'store', print)\n\n\n",
        f"{STORE}match print:\n    case store:\n        pass\n\n\n",
        f"{STORE}if store := print:\n    pass\n\n\n",
        f"{STORE}def setup():\n    global store\n\n    def store(tensor, index):\n        pass\n\n\n",
        "from kit.other import replaced as store\n\n\n",
    ],
)
def test_helpers_that_take_other_arguments(before: str) -> None:
    replaced = f"{STORE.replace('store', 'replaced')}for name in ['replaced']:\n    globals()[name] = print\n"
    assert codes(before + STORING, {"kit/other.py": OWN_CACHE + replaced}) == []


@pytest.mark.parametrize("value", ["np.arange(4)", "Mine()", "[Mine()][0]"])
def test_a_product_with_an_instance_whose_class_may_have_operators(value: str) -> None:
    before = f"import numpy as np\n\n\nclass Mine:\n    def __rmul__(self, other):\n        return []\n\n\nBASE = {value}\n\n\n"
    text = "@flyc.kernel\ndef use(A: fx.Tensor, n: fx.Int32):\n    part = n * BASE\n    A[0] = part.index(n)\n"
    files = {**BASE_FILES, KERNELS_PATH: f"{HEAD}{before}{text}"}
    assert lint_files([PACK], files, ["FLY233"]).codes() == []
    number = {**files, KERNELS_PATH: f"{HEAD}BASE = int('4') * 2\n\n\n{text}"}
    assert lint_files([PACK], number, ["FLY233"]).codes() == ["FLY233"]
