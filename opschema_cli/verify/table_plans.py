"""Plans of operators that no pack plans, from the operator table: where each is defined, and sample calls. Nothing is run here.

Their cells are not known yet: the operator is imported later, in a worker, and calls that it accepts are searched for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from opschema_cli.operators.model import Operator
from opschema_cli.session import Session
from opschema_cli.source.enclosing_functions import EnclosingFunction, enclosing_functions
from opschema_cli.source.inline_cpp import compilation
from opschema_cli.source.modules import Modules
from opschema_cli.verify.dispatch_keys import where
from opschema_cli.verify.model import Plan, Search, Target
from opschema_cli.verify.plan_names import BACKEND, on_backend

_OF_TORCH = ("aten", "prims", "prim")
_LOADS = re.compile(rb"\bcpp_extension\.load\s*\(|\bcpp_extension\s+import\b[^\n]*\bload\b")
_OF_MEMORY = re.compile(
    r"aten::(?:new_)?_?empty\w*|aten::(?:resize|set)_\w*|aten::(?:_copy_from|_reshape_alias|as_strided)\w*"
)
"""Operators that return uninitialized memory, those for tensors on two devices, and one that reads memory outside the elements
of its argument.
"""


def table_plans(session: Session, operators: Iterable[Operator], imports: Sequence[str]) -> list[Plan]:
    """Return the plans of operators of torch.library, each once. An operator that has a backend's kernel in addition to one that
    runs here has a second plan. ``imports`` are the user's additional imports: modules, or files and folders of built
    extensions.
    """
    modules = Modules(session.project().workspace.files)
    root = str(session.workspace.root)
    loaders = {} if imports else _loaders(session)
    found: dict[str, Plan] = {}
    for operator in operators:
        if operator.name not in found and "::" in operator.name and not operator.is_foreign:
            files = _python_files(operator) or _loading(operator, loaders)
            plan = _plan(operator, files, root, modules, imports)
            if plan.search is not None:
                plan = _with_nesting(plan, operator, files, session)
            found[operator.name] = plan
            if _has_backend(operator) and not plan.unplanned and not plan.target.backend:
                beside = _plan(operator, files, root, modules, imports, backend=True)
                found[on_backend(plan.op)] = msgspec.structs.replace(beside, op=on_backend(plan.op), search=plan.search)
    return list(found.values())


def _plan(
    operator: Operator,
    files: Sequence[str],
    root: str,
    modules: Modules,
    imports: Sequence[str],
    *,
    backend: bool = False,
) -> Plan:
    place = importable(files[0], modules) if files else None
    if isinstance(place, str):
        return _unplanned(operator, root, place)
    module, folder = place if place is not None else ("", ".")
    if not module and not imports:
        return _unplanned(operator, root, f"{_defined(operator)}; name the module that registers it with --import")
    backend = backend or (not _runs_here(operator) and _has_backend(operator))
    if operator.name.split("::")[0] in _OF_TORCH and not backend and not _runs_here(operator):
        return _unplanned(operator, root, f"its kernels are for neither the CPU, CUDA nor {BACKEND}")
    if backend and _OF_MEMORY.fullmatch(operator.name.partition(".")[0]):
        return _unplanned(operator, root, "it allocates, moves or reads memory as such: no result can be compared")
    beside = {found[0]: path for path in files[1:] if (found := _beside(path, module, modules)) is not None}
    places = {name: _places_of(operator, path) for name, path in beside.items()}
    here = {"here", "backend"} if backend else {"here"}
    needed = [name for name, runs in places.items() if runs & here]
    for_cuda = [name for name, runs in places.items() if not runs & here and "cuda" in runs]
    target = Target(
        root=root,
        module=module,
        name=operator.name,
        paths=tuple(dict.fromkeys([folder, *_package_folders(modules)])) if module else (folder,),
        operator=operator.name,
        operators=() if backend else (operator.name,),
        imports=tuple(dict.fromkeys([*imports, *filter(None, [module]), *needed])),
        cuda_imports=() if backend else tuple(for_cuda),
        backend=backend,
    )
    return Plan(op=operator.name, target=target, cells=(), search=Search(), schema=operator.declaration.schema)


def importable(path: str, modules: Modules) -> tuple[str, str] | str:
    """The module of a file and the folder to import it from, relative to the root; else why it cannot be imported.

    The folder is the one that holds the outermost package, ``src`` where that is the layout.
    """
    module = modules.module_name(path)
    names = module.split(".")
    if not all(name.isidentifier() for name in names):
        return f"`{path}` cannot be imported: `{module}` is not a module's name"
    depth = len(names) + (1 if path.endswith("/__init__.py") else 0)
    return module, "/".join(path.split("/")[:-depth]) or "."


def _package_folders(modules: Modules) -> list[str]:
    """The folders of the tree's own packages, which operators that are defined beside them (in tests, examples) import."""

    def is_package(name: str, folder: str) -> bool:
        return f"{folder}/{name}/__init__.py".lstrip("/") in modules.files

    own = {folder for name, folders in modules.roots.items() for folder in folders if is_package(name, folder)}
    return [folder or "." for folder in ("", "src", "python") if folder in own]


def module_files(target: Target) -> list[str]:
    """The paths that the file of a target's module may have, relative to the root."""
    stem = target.module.replace(".", "/")
    folders = ["" if path == "." else f"{path}/" for path in target.paths or (".",)]
    return [f"{folder}{stem}{tail}" for folder in folders for tail in (".py", "/__init__.py")] if stem else []


def _unplanned(operator: Operator, root: str, reason: str) -> Plan:
    target = Target(root=root, module="", name=operator.name, operator=operator.name)
    return Plan(op=operator.name, target=target, cells=(), unplanned={operator.name: reason})


def _python_files(operator: Operator) -> list[str]:
    """The Python files that define and register an operator, the definition's first."""
    return list(dict.fromkeys(path for path in _paths(operator) if path.endswith(".py")))


def _loaders(session: Session) -> dict[str, str]:
    """The Python files that compile C++ files with ``torch.utils.cpp_extension.load``, with their texts."""
    workspace = session.workspace
    python = (path for path in workspace.files if path.endswith(".py"))
    texts = ((path, workspace.peek(path)) for path in python)
    return {path: data.decode("utf-8", "replace") for path, data in texts if _LOADS.search(data)}


def _loading(operator: Operator, loaders: Mapping[str, str]) -> list[str]:
    """Return the Python file that compiles the C++ file of an operator, if there is exactly one."""
    names = {path.rpartition("/")[2] for path in _paths(operator) if not path.endswith(".py")}
    words = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, sorted(names)))})(?![\w.-])") if names else None
    found = [path for path, text in loaders.items() if words is not None and words.search(text)]
    return found if len(found) == 1 else []


def _paths(operator: Operator) -> Iterator[str]:
    definitions = [item.place for item in operator.registrations if item.role == "definition"]
    registered = [item.registered for item in operator.implementations]
    places = [*definitions, operator.declaration.place, *registered, *operator.places()]
    yield from (place.path for place in places if place is not None and not place.is_foreign)


def _defined(operator: Operator) -> str:
    path = next(_paths(operator), "")
    return f"it is defined in `{path}`, which cannot be imported" if path else "no file of the tree defines it"


def _runs_here(operator: Operator) -> bool:
    keys = _keys(operator)
    return not keys or any(where(key) in ("here", "cuda") for key in keys)


def _has_backend(operator: Operator) -> bool:
    return any(where(key) == "backend" for key in _keys(operator))


def _beside(path: str, module: str, modules: Modules) -> tuple[str, str] | None:
    """The module of a file that registers more of an operator, with its folder, if it is of the package of ``module``."""
    found = importable(path, modules)
    return None if isinstance(found, str) or _package(found[0]) != _package(module) else found


def _places_of(operator: Operator, path: str) -> set[str]:
    """Return where the kernels run that a file registers (:func:`~opschema_cli.verify.dispatch_keys.where`). Unknown ones run
    here. A file that registers nothing is imported by one that does.
    """
    registered = [(item.place, item.keys) for item in operator.registrations]
    registered += [(item.registered, item.keys) for item in operator.implementations]
    keys = [keys for place, keys in registered if place is not None and place.path == path]
    return {where(key) for group in keys for key in group or ("CPU",)}


def _keys(operator: Operator) -> list[str]:
    return [key for item in operator.registrations for key in item.keys or ()]


def _with_nesting(plan: Plan, operator: Operator, files: Sequence[str], session: Session) -> Plan:
    """A plan that says in which function an operator is defined, if it is not at the top level of its Python module. Functions that
    compile it and take no argument are called once the module is imported.
    """
    place = operator.declaration.place
    if not files or not plan.target.module:
        return plan
    if place is None or not place.path.endswith(".py") or _is_cpp(operator):
        found = compilation(session.workspace.source(files[0]).text)
        if found.at_top_level or not (found.functions or (place is not None and place.path.endswith(".py"))):
            return plan
        ready = tuple(item.name for item in found.functions if item.takes_nothing and not item.name.startswith("test"))
        target = msgspec.structs.replace(plan.target, compiling=ready)
        return msgspec.structs.replace(plan, target=target, search=_nested(found.functions))
    text = session.workspace.source(place.path).text
    if not text[text.rfind("\n", 0, place.span.start) + 1 : place.span.start + 1][:1].isspace():
        return plan
    return msgspec.structs.replace(plan, search=_nested(enclosing_functions(text, [place.span.start])))


def _nested(functions: Sequence[EnclosingFunction]) -> Search:
    return Search(is_nested=True, within=functions[0].name if len(functions) == 1 else "")


def _is_cpp(operator: Operator) -> bool:
    return any(item.role == "definition" and item.form == "cpp" for item in operator.registrations)


def _package(module: str) -> str:
    return module.partition(".")[0]
