"""Names that are taken from modules of the workspace and are not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.program import Folded, Missing, ModuleRef, Resolution, ValueRef
from opschema_cli.source.python import Import, PythonFile, Scope
from opschema_cli.source.text import Span
from opschema_cli.suggestions import did_you_mean, near_name, near_names
from opschema_rules.tileops.model import Manifest, OpEntry


@rule("SRC105", "import-undefined")
def import_undefined(manifest: Manifest) -> Iterator[Diagnostic]:
    """A module of the ops imports a name that its module does not define.

    Such an import fails as soon as it runs, so no op of the module can be imported. The rule checks the modules that
    implement ops and those beside them, and their imports from modules of the workspace. Where they import from a package,
    its `__init__.py` is checked too. Imports in `try` or under a
    condition (such as `if TYPE_CHECKING`), and modules that create their names at run time, are not reported. A missing
    module may be generated; it is reported only if one beside it has nearly the same name and defines the imported name.

    Bad:

    ```python
    from kit.kernels.example import ExampleBwdKernel


    class ExampleFwdOp(Op):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return ExampleBwdKernel()(x)
    ```

    Bad, the package that the ops import from:

    ```python kit/kernels/__init__.py
    from kit.kernels.example import ExampleFwdKernel
    ```

    ```python
    from kit.kernels import ExampleFwdKernel


    class ExampleFwdOp(Op):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return ExampleFwdKernel()(x)
    ```

    Good:

    ```python
    from kit.kernels import example
    from somewhere_else import Unknown

    try:
        from kit.kernels.example import FastKernel
    except ImportError:
        FastKernel = example.ExampleKernel


    class ExampleFwdOp(Op):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return FastKernel()(x)
    ```
    """
    taken = list(_taken(manifest, manifest.program.package_files))
    packages = _packages(manifest, taken)
    manifest.project.load_python(packages)
    taken += _taken(manifest, packages)
    doubtful = list(_doubtful(manifest, taken))
    manifest.project.load_python(sorted({item.module for item in doubtful}))
    for item in doubtful:
        found = manifest.program.resolve(item.file, item.wanted.name, (item.scope,))
        if isinstance(found, Missing) and found.module == item.module and found.name == item.wanted.attr:
            yield _undefined(manifest, item)
    yield from _missing_modules(manifest, taken)


class _Taken(msgspec.Struct, frozen=True):
    """An import that always runs, the scope that contains it, and the full name of the module that it imports from."""

    file: PythonFile
    scope: Scope
    wanted: Import
    dotted: str


class _Doubt(msgspec.Struct, frozen=True):
    """An import of a name that the text of its module does not plainly define."""

    file: PythonFile
    scope: Scope
    wanted: Import
    module: str


def _packages(manifest: Manifest, taken: Iterable[_Taken]) -> list[str]:
    """The files of the packages beside the ops' own that names are taken from."""
    modules = dict.fromkeys(item.dotted for item in taken if item.wanted.attr)
    paths = {path for path in map(manifest.program.module_path, modules) if path is not None}
    own = set(manifest.program.package_files)
    return sorted(path for path in paths - own if path.rpartition("/")[2] == "__init__.py")


def _taken(manifest: Manifest, paths: Iterable[str]) -> Iterator[_Taken]:
    for file in filter(None, map(manifest.project.python, paths)):
        for scope in _importing(file, file.body):
            for item in scope.imports:
                dotted = None if item.guarded else manifest.program.absolute_module(file, item)
                if dotted:
                    yield _Taken(file, scope, item, dotted)


def _importing(file: PythonFile, scope: Scope) -> Iterator[Scope]:
    """Yield a scope and its nested scopes, except functions without imports."""
    yield scope
    for function in scope.functions:
        if file.source.text.find("import", *function.outer) >= 0:
            yield from _importing(file, function.body)
    for cls in scope.classes:
        yield from _importing(file, cls.body)


def _doubtful(manifest: Manifest, taken: Iterable[_Taken]) -> Iterator[_Doubt]:
    program = manifest.program
    parsed = {path: manifest.project.python(path) for path in program.package_files}
    for item in taken:
        name = item.wanted.attr
        module = program.module_path(item.dotted) if name not in ("", "*") else None
        if module is None or _binds(manifest, parsed.get(module), module, name):
            continue
        if program.module_path(f"{item.dotted}.{name}") is None:
            yield _Doubt(item.file, item.scope, item.wanted, module)


def _binds(manifest: Manifest, file: PythonFile | None, path: str, name: str) -> bool:
    """Whether a module is known to bind a name: by its facts if it is parsed anyway, otherwise by its text."""
    if file is not None:
        return name in file.classes or name in file.functions or name in file.imports or name in file.assigns
    return manifest.definitions.binds(path, name)


def _undefined(manifest: Manifest, item: _Doubt) -> Diagnostic:
    owner = manifest.project.python(item.module)
    defined = _public_names(owner) if owner is not None else []
    hint = did_you_mean(near_name(item.wanted.attr, defined, 0.6))
    text = f"`{item.module}` does not define `{item.wanted.attr}`{hint}"
    related = (Related(Place(item.module, Span(0, 0)), "the module"),)
    ops = tuple(entry.name for entry in manifest.entries if entry.op_file is item.file)
    return Diagnostic(text, Place(item.file.path, item.wanted.span), related, ops=ops)


def _missing_modules(manifest: Manifest, taken: Iterable[_Taken]) -> Iterator[Diagnostic]:
    """The first import from each module whose name is a slip of the pen."""
    program, seen = manifest.program, set[tuple[str, str]]()
    for item in taken:
        file, wanted = item.file, item.wanted
        if wanted.attr in ("", "*") or (file.path, item.dotted) in seen or not program.is_local(item.dotted):
            continue
        meant = _meant(manifest, item.dotted, wanted.attr)
        if meant is not None:
            seen.add((file.path, item.dotted))
            text = f"the workspace has no module `{item.dotted}`; `{meant}` defines `{wanted.attr}`"
            related = (Related(Place(meant, Span(0, 0)), "the module"),)
            ops = tuple(entry.name for entry in manifest.entries if entry.op_file is file)
            yield Diagnostic(text, Place(file.path, wanted.span), related, ops=ops)


def _meant(manifest: Manifest, dotted: str, name: str) -> str | None:
    """Return the module beside a missing one that has a similar name and defines ``name``."""
    program, (package, _, last) = manifest.program, dotted.rpartition(".")
    home = program.module_path(package) if package and program.module_path(dotted) is None else None
    if home is None or not home.endswith("/__init__.py") or program.may_exist(dotted):
        return None
    folder = home.removesuffix("__init__.py")
    below = manifest.project.workspace.under(folder, ".py")
    beside = {path.removeprefix(folder).partition("/")[0].removesuffix(".py") for path in below}
    for close in near_names(last, sorted(beside), 3, 0.75):
        path = program.module_path(f"{package}.{close}")
        if path is not None and _binds(manifest, None, path, name):
            return path
    return None


def _public_names(file: PythonFile) -> list[str]:
    return sorted({*file.classes, *file.functions, *file.imports, *(name for name in file.assigns if "." not in name)})


@rule("SRC106", "roofline-func")
def roofline_func(manifest: Manifest) -> Iterator[Diagnostic]:
    """`roofline.func` does not name a function of the workspace.

    The dotted path is imported to compute a roofline. Its module must exist, and define a function, or a class, of that
    name. Functions of other packages are not checked. A finding in a `spec-only` entry is a warning.

    Bad:

    ```yaml
    roofline:
      func: kit.perf.formulas.exmaple_roofline
    ```

    Bad:

    ```yaml
    roofline:
      func: kit.perf.no_such_module.example_roofline
    ```

    Good:

    ```yaml
    roofline:
      func: kit.perf.formulas.example_roofline
    ```
    """
    for entry in manifest.entries:
        dotted = entry.text_at("roofline", "func")
        if dotted is not None and _is_dotted(dotted):
            yield from _check_function(entry, dotted)


def _is_dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _check_function(entry: OpEntry, dotted: str) -> Iterator[Diagnostic]:
    manifest, (module, _, name) = entry.manifest, dotted.rpartition(".")
    program, node = manifest.program, entry.get("roofline", "func")
    if node is None or not module or not program.is_local(module):
        return
    path = program.module_path(module)
    if path is None:
        if not program.may_exist(module):
            place = entry.at(entry.inner(node, (0, len(module))))
            text = f"`roofline.func` names the module `{module}`, which the workspace does not have"
            yield Diagnostic(text, place, ops=(entry.name,), severity=entry.severity)
    elif not manifest.definitions.binds(path, name) and _is_no_function(manifest, program.module_member(path, name)):
        owner = manifest.project.python(path)
        hint = did_you_mean(near_name(name, _public_names(owner) if owner is not None else [], 0.6))
        place = entry.at(entry.inner(node, (len(module) + 1, len(dotted))))
        related = (Related(Place(path, Span(0, 0)), "the module"),)
        text = f"`{path}` defines no function `{name}`{hint}"
        yield Diagnostic(text, place, related, ops=(entry.name,), severity=entry.severity)


def _is_no_function(manifest: Manifest, found: Resolution) -> bool:
    if isinstance(found, ValueRef) and found.assign.value is not None:
        return isinstance(manifest.evaluator.fold(found.file, found.assign.value), Folded)
    return isinstance(found, Missing | ModuleRef)
