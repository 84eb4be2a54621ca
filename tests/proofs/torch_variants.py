"""Generated modules of torch.library operators, right ones and such with one slip, with what each fix makes of them.

The modules are those of the pack's differential test; their bodies show in the result, or in its shape, every argument.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Collection, Iterator, Mapping

from opschema_cli.lint.pack import Pack
from opschema_cli.proof import Case, case_of
from opschema_cli.testing import lint_files
from tests.rules.torchlib.case_collector import CaseCollector
from tests.rules.torchlib.cases import fakes, kernels, make, vmaps

REVEAL = """

def reveal(*values):
    shown = [list(item.shape if hasattr(item, "shape") else item) if hasattr(item, "__len__") else item for item in values]
    return float(sum(place * ord(letter) for place, letter in enumerate(repr(shown), 1)) % 97)
"""


def modules(seeds: Collection[int] = ()) -> dict[str, tuple[str, str]]:
    """Titles and texts by path: those of the differential test, and more for each seed."""
    collector = CaseCollector()
    for seed in seeds:
        rng = random.Random(seed)
        fakes(collector, rng, 12)
        kernels(collector, rng, 12)
        vmaps(collector, rng, 6)
    found = {f"kit/{case.name}.py": (case.title, case.source) for case in make()}
    drawn = {
        f"kit/drawn_{case.name}.py": (
            case.title,
            case.source.replace(f"{case.name}::", f"drawn_{case.name}::").replace(
                f'"{case.name}"', f'"drawn_{case.name}"'
            ),
        )
        for case in collector.cases
    }
    own = {path: (path, source) for path, source in default_modules()}
    return own | {path: (title, revealing(source)) for path, (title, source) in (found | drawn).items()}


_DEFAULTS = (
    ("int[2] a=[1,2]", ("(2, 1)", "[1, 2, 3]", "")),
    ("int[2] a=1", ("(1, 2)", "( 2, 2 )", "")),
    ("SymInt[3] a=0", ("(1, 0, 0)", "")),
    ("bool[2] a=True", ("(True, False)", "")),
    ("float[2] a=1", ("(2.0, 1.0)", "")),
    ("int[] a=[]", ("(1,)", "")),
    ("float a=1", ("2.0", "")),
    ("float a=-.5", ("0.5", "")),
    ("str a='mean'", ('"sum"', "")),
    ("bool a=1", ("False", "")),
    ("Scalar a=1.5", ("2", "")),
    ("ScalarType a=half", ("torch.float32", "")),
    ("int? a=3", ("2", "")),
)
"""Arguments as a schema writes them, and defaults that a function may have instead; empty: none."""


_KERNEL_OF = """
import torch

torch.library.define("{name}::f", "(Tensor x, int b, {argument}, *, bool c=False) -> Tensor")


@torch.library.impl("{name}::f", "cpu")
def f(x, b, {param}, *, c=False):
    return x + reveal(b, a, c)
"""


def default_modules() -> Iterator[tuple[str, str]]:
    """Kernels with other defaults than the schema's, or without."""
    for number, (argument, texts) in enumerate(_DEFAULTS):
        for which, text in enumerate(texts):
            name, param = f"n{number}_{which}", f"a={text}" if text else "a"
            yield f"kit/{name}.py", _KERNEL_OF.format(name=name, argument=argument, param=param) + REVEAL


def revealing(source: str) -> str:
    """A module whose functions that only return ``x.clone()`` return what shows their other arguments, too."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source
    lines = source.splitlines(keepends=True)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.unparse(node.body[-1]) == "return x.clone()" and _names(node):
            at = node.body[-1].lineno - 1
            lines[at] = lines[at].replace("x.clone()", f"x + reveal({', '.join(_names(node))})")
    changed = "".join(lines)
    return changed + REVEAL if changed != source else source


def _names(node: ast.FunctionDef) -> list[str]:
    """The parameters but for ``x``."""
    return [item.arg for item in (*node.args.args, *node.args.kwonlyargs) if item.arg != "x"]


def generated_cases(
    pack: Pack, codes: Collection[str], found: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[str, Case]]:
    """What each fix of some rules makes of generated modules, with the rule's code. All stand in one tree."""
    texts = {path: source for path, (_, source) in found.items()}
    for item in lint_files([pack], texts, codes).diagnostics:
        path = item.place.path
        if item.fix is not None and path in texts:
            yield item.code, case_of(f"{item.code} {found[path][0]} ({path})", {path: texts[path]}, item.fix)


def _change(title: str, before: str, after: str) -> Case:
    head = "import torch\n\n"
    return Case(title, {"kit/ops.py": head + before}, {"kit/ops.py": head + after}, cures=False)


_DEFINED = 'torch.library.define("kit::f", "(Tensor x, bool zero=False, int[2] k=1) -> Tensor")\n'
_INTS = 'torch.library.define("kit::f", "(Tensor x, int a=1, int b=2) -> Tensor")\n'
_KERNEL = '@torch.library.impl("kit::f", "cpu")\ndef f({}):\n    return {}\n'

SMALL = (
    _change(
        "an argument that is ignored",
        _DEFINED + _KERNEL.format("x", "x + 1"),
        _DEFINED + _KERNEL.format("x, zero=False", "x + 1"),
    ),
    _change(
        "another default",
        _DEFINED + _KERNEL.format("x, zero=False, k=(1, 1)", "x + (1 if zero else 2) * k[1]"),
        _DEFINED + _KERNEL.format("x, zero=True, k=(1, 1)", "x + (1 if zero else 2) * k[1]"),
    ),
    _change(
        "an integer for a list",
        _DEFINED + _KERNEL.format("x, zero=False, k=(1, 1)", "x + (1 if zero else 2) * k[1]"),
        _DEFINED + _KERNEL.format("x, zero=False, k=(1)", "x + (1 if zero else 2) * k[1]"),
    ),
    _change(
        "the wrong order",
        _INTS + _KERNEL.format("x, *, a=1, b=2", "x * a + b"),
        _INTS + _KERNEL.format("x, b=2, a=1", "x * a + b"),
    ),
)
"""Changes that an oracle must not let pass: each is what a fix may do wrong."""
