"""Subclasses of ``torch.autograd.Function``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opschema_cli.source.bodies import Body
from opschema_cli.source.program import ClassRef
from opschema_cli.source.python import Class, Expr, Function, PythonFile
from opschema_rules.torchlib.model import AutogradFunction, Tree
from opschema_rules.torchlib.ops_words import FUNCTIONS

_BASES = ("torch.autograd.Function", "torch.autograd.function.Function")
_TRANSPARENT = frozenset(
    {"staticmethod", "once_differentiable", "custom_fwd", "custom_bwd", "no_grad", "amp_custom_fwd"}
)
"""Decorators that leave the parameters and the result unchanged."""


def autograd_functions(tree: Tree, modules: Iterable[str]) -> Iterator[AutogradFunction]:
    """The classes of some files with a ``forward`` and a ``backward`` of their own whose only base is autograd's."""
    project = tree.project
    paths = [path for path, found in project.scan(FUNCTIONS, modules) if found]
    project.load_python(paths)
    for file in filter(None, map(project.python, paths)):
        for cls in file.body.classes:
            found = _read(tree, file, cls)
            if found is not None:
                yield found


def _read(tree: Tree, file: PythonFile, cls: Class) -> AutogradFunction | None:
    body = tree.bodies.cls(ClassRef(file, cls))
    if body is None or len(cls.bases) != 1 or cls.decorators or cls.bases[0].kind != "name":
        return None
    if tree.bodies.external(body, cls.bases[0].text) not in _BASES:
        return None
    methods = {item.name: _method(tree, file, cls, item.name) for item in cls.body.functions}
    forward, backward = methods.get("forward"), methods.get("backward")
    setup = methods.get("setup_context")
    if forward is None or backward is None or "vjp" in methods or ("setup_context" in methods and setup is None):
        return None
    return AutogradFunction(tree, cls.name, forward, backward, setup)


def _method(tree: Tree, file: PythonFile, cls: Class, name: str) -> Body | None:
    """A method that is defined once and that no decorator changes."""
    found = [item for item in cls.body.functions if item.name == name]
    plain = len(found) == 1 and found[0].sure and _is_transparent(found[0])
    assigned = any(item.target == name for item in cls.body.assigns)
    return tree.bodies.defined(file, found[0]) if plain and not assigned else None


def _is_transparent(function: Function) -> bool:
    names = [_decorator(item) for item in function.decorators]
    return "staticmethod" in names and _TRANSPARENT.issuperset(names)


def _decorator(item: Expr) -> str:
    named = item.items[0] if item.kind == "call" else item
    return named.text.rpartition(".")[2]
