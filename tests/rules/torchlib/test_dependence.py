"""The registrations of a helper may depend on its arguments; the files that call it are then read."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.source.python import PythonFile
from opschema_cli.source.python_facts import collect
from opschema_cli.source.text import Source
from opschema_cli.workspace import Workspace
from opschema_rules.torchlib.dependence import dependent_calls
from opschema_rules.torchlib.detection import TorchlibOptions
from opschema_rules.torchlib.mentions import Helper, is_used
from opschema_rules.torchlib.outlines import dependent_words, outline_of
from opschema_rules.torchlib.search import Search


@pytest.mark.parametrize(
    ("code", "dependent"),
    [
        ("def f(x):\n    use(x)\n    other(1)", {"use"}),
        ("def f(x):\n    y = g(x)\n    use(y.name)", {"g", "use"}),
        ("def f(x):\n    for y in x.items:\n        use(y)\n        other()", {"use", "other"}),
        ("def f(x):\n    a, b = x\n    use(b)", {"use"}),
        ("def f(x):\n    with open_it() as y:\n        use(y)", {"use"}),
        ("def f(x):\n    return lambda y: use(y)", {"use"}),
        ("def f(x):\n    @register\n    def g(y): return y\n    use(1)", set()),
        ("def f(x):\n    @register\n    def g(y): return x(y)\n    use(1)", {"register", "x"}),
        ("def f(x):\n    @register\n    def g(y=x): ...", {"register"}),
        ("def f(x):\n    def g(y): return x\n    use(g)", {"use"}),
        ("def f(x):\n    def g(fn): use(fn)\n    return g", {"use"}),
        ("def f(x):\n    if x:\n        use(1)\n    else:\n        other(1)\n    third(1)", {"use", "other"}),
        ("def f(x):\n    if x: return\n    use(1)", {"use"}),
        ("def f(x):\n    if y: return\n    use(1)", set()),
        ("def f(x):\n    class C(x): ...\n    use(C)", {"use"}),
        ("def f(self):\n    self.use(1)", {"self.use"}),
        ("def f(*args, **more):\n    use(*args)\n    other(**more)", {"use", "other"}),
    ],
)
def test_calls_that_depend_on_parameters(code: str, dependent: set[str]) -> None:
    file = PythonFile(Source("a.py", code), collect(code))
    (function,) = file.body.functions
    found = dependent_calls(function, code, lambda inner: inner.peek_body())
    assert {item.callee or item.text for item in found} == dependent


LIBRARY = 'import torch\nlib = torch.library.Library("ns", "DEF")\n'
HELPERS = {
    "by name": "def register(name):\n    lib.define(f'{name}(Tensor x) -> Tensor')\n",
    "by function": "def register(fn):\n    lib.impl('f', fn, 'CPU')\n",
    "by the attribute": "class register:\n    def __init__(self, name):\n        self.name = name\n        self.make()\n"
    "    def make(self):\n        lib.define(self.name)\n",
    "under a condition": "def register(on):\n    if on:\n        lib.define('f(Tensor x) -> Tensor')\n",
    "always the same": "def register(comm):\n    lib.define('f(Tensor x) -> Tensor')\n    comm.start()\n",
    "of another": "def register(comm):\n    once()\n    comm.start()\n\ndef once():\n    lib.define('f(Tensor x) -> Tensor')\n",
}
CALLERS = {
    "at import": "from kit.ops import register\nregister('f')\n",
    "in a function": "from kit.ops import register\ndef main():\n    register('f')\n",
}


@pytest.mark.parametrize("helper", HELPERS)
@pytest.mark.parametrize("caller", CALLERS)
def test_callers_are_read_if_that_may_change_what_is_registered(helper: str, caller: str, tmp_path: Path) -> None:
    files = {"kit/__init__.py": "", "kit/ops.py": LIBRARY + HELPERS[helper], "kit/main.py": CALLERS[caller]}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    paths, _ = Search(Project(Workspace(tmp_path)), TorchlibOptions()).finish()
    same = helper in ("always the same", "of another")
    assert ("kit/main.py" in paths) is (caller == "at import" or not same)


SAME = Helper("kit.py", "register", dependent=False)


@pytest.mark.parametrize(
    ("code", "used"),
    [
        ("register(1)", True),
        ("if x:\n    register(1)", True),
        ("class A:\n    x = register(1)", True),
        ("try:\n    pass\nexcept E:\n    register(1)", True),
        ("def f():\n    register(1)", False),
        ("async def f():\n  if x:\n    register(1)", False),
        ("class A:\n    def f(\n        self,\n    ) -> None:\n        register(1)", False),
        ("def f(\n    x,\n) -> None:\n    y = [\n        x\n    ]\n\n    register(1)", False),
        ("def f(): ...\n\nregister(1)", True),
        ("def f():\n    pass\n\nif x:\n    # register is called\n    register(1)", True),
        ("x = [\n    register(1)\n]", True),
    ],
)
def test_a_helper_that_registers_the_same_matters_where_a_module_calls_it(code: str, used: bool) -> None:
    assert is_used(code, SAME) is used
    assert is_used(code, Helper("kit.py", "register"))


def test_words_that_depend_are_listed_in_the_order_of_the_outline() -> None:
    text = (
        "def outer(name):\n    def inner(): impl(name)\n    fixed()\n    define(name)\n"
        "class Kit:\n    def add(self, op):\n        def later(): pass\n        register(op)\n"
        "def same():\n    fixed()\n"
    )
    file = PythonFile(Source("kit.py", text), collect(text))
    found = [item.name for item in sorted(outline_of(file).functions, key=lambda item: item.number)]
    assert dict(zip(found, dependent_words(file), strict=True)) == {
        "inner": frozenset(),  # it has no parameters of its own
        "outer": {"define", "impl"},
        "later": frozenset(),
        "add": {"register"},
        "same": frozenset(),
    }
