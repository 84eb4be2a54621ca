"""Files of modules, from the paths of a workspace alone."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from opschema_cli.source.python import Import, PythonFile, Scope
from opschema_cli.source.resolution import bindings_of


class Modules:
    """The Python modules among the files of a workspace."""

    def __init__(self, files: Iterable[str]) -> None:
        self.all_files = tuple(files)
        self._possible: dict[str, bool] = {}
        self._paths: dict[str, str | None] = {}
        self._module_names: dict[str, str] = {}

    @cached_property
    def files(self) -> frozenset[str]:
        """The files that are modules."""
        return frozenset(path for path in self.all_files if path.endswith(".py"))

    def share_names(self, other: Modules) -> None:
        """Share name lookups with the modules of the same files."""
        self.roots, self.files = other.roots, other.files
        self._possible, self._paths, self._module_names = other._possible, other._paths, other._module_names

    @cached_property
    def roots(self) -> dict[str, list[str]]:
        """Folders from which modules are imported, by the first name below them."""
        packages = {path.rpartition("/")[0] for path in self.files if path.endswith("__init__.py")}
        found: dict[str, set[str]] = {}
        for path in self.files:
            folder, _, name = path.rpartition("/")
            while folder in packages and folder:
                folder, _, name = folder.rpartition("/")
            found.setdefault(name.removesuffix(".py"), set()).add(folder)
        return {name: sorted(folders) for name, folders in found.items()}

    def module_path(self, dotted: str) -> str | None:
        """Return the file of a module; None if the workspace has none of that name, or several. In one folder, Python imports a
        package rather than the file of the same name beside it.
        """
        if dotted not in self._paths:
            self._paths[dotted] = self._find_module(dotted)
        return self._paths[dotted]

    def _find_module(self, dotted: str) -> str | None:
        first, _, rest = dotted.partition(".")
        tail = rest.replace(".", "/")
        found = []
        for folder in self.roots.get(first, []):
            base = "/".join(filter(None, (folder, first, tail)))
            found += [path for path in (f"{base}/__init__.py", f"{base}.py") if path in self.files][:1]
        return found[0] if len(found) == 1 else None

    def may_exist(self, dotted: str) -> bool:
        """Whether the workspace contains anything that may become a module of that name: a file of any kind or a folder. Private
        modules may be generated.
        """
        first, _, rest = dotted.partition(".")
        if any(part.startswith("_") for part in dotted.split(".")):
            return True
        if dotted not in self._possible:
            self._possible[dotted] = self._holds(first, rest)
        return self._possible[dotted]

    def _holds(self, first: str, rest: str) -> bool:
        stems = ["/".join(filter(None, (folder, first, *rest.split(".")))) for folder in self.roots.get(first, [])]
        return any(path.startswith((f"{stem}/", f"{stem}.")) for stem in stems for path in self.all_files)

    def is_local(self, dotted: str) -> bool:
        """Whether a module's top-level package is a package of the workspace, not a single script."""
        first = dotted.partition(".")[0]
        return any(
            "/".join(filter(None, (folder, first, "__init__.py"))) in self.files for folder in self.roots.get(first, [])
        )

    def module_name(self, path: str) -> str:
        """Return the dotted name under which a file is imported."""
        if path not in self._module_names:
            self._module_names[path] = self._name_of(path)
        return self._module_names[path]

    def _name_of(self, path: str) -> str:
        parts = [path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]]
        folder = path.rpartition("/")[0]
        if path.endswith("/__init__.py"):
            folder = folder.rpartition("/")[0]
        while folder and f"{folder}/__init__.py" in self.files:
            folder, _, name = folder.rpartition("/")
            parts.append(name)
        return ".".join(reversed(parts))

    def absolute_module(self, file: PythonFile, item: Import) -> str | None:
        """Return the full name of the module in an import; None if its dots leave the package."""
        return self.absolute_name(file.path, item.level, item.module)

    def absolute_name(self, path: str, level: int, module: str) -> str | None:
        """Return the full name of a module that a file names with that many leading dots."""
        if not level:
            return module
        parts = self.module_name(path).split(".")
        drop = level - (1 if path.endswith("__init__.py") else 0)
        if drop > len(parts) or (drop == len(parts) and not module):
            return None
        return ".".join([*parts[: len(parts) - drop], *filter(None, [module])])

    def as_name(self, item: Import, module: str) -> str:
        """Return the full name of the object that ``import module`` binds to a name: the module, or its top-level package."""
        return module.partition(".")[0] if module.partition(".")[0] == item.name else module

    def imported_from(self, file: PythonFile, dotted: str, scopes: tuple[Scope, ...] = ()) -> tuple[str, str] | None:
        """Return the file of another module, and the dotted name in it that a name refers to, if a single import binds its first
        word; the dotted name is empty for the module itself. The other module is not opened.
        """
        first, _, rest = dotted.partition(".")
        for scope in (*scopes, file.body):
            if first in scope.deleted:
                return None
            bindings = bindings_of(scope, first)
            if bindings:
                bound = bindings[0]
                led = self._imported_path(file, bound) if len(bindings) == 1 and isinstance(bound, Import) else None
                return (led[0], ".".join(filter(None, (led[1], rest)))) if led and led[0] != file.path else None
        return None

    def _imported_path(self, file: PythonFile, item: Import) -> tuple[str, str] | None:
        module = self.absolute_module(file, item)
        if module is None:
            return None
        path = self.module_path(module if item.attr or item.name == module else self.as_name(item, module))
        if path is not None or not item.attr:
            return (path, item.attr) if path is not None else None
        inner = self.module_path(f"{module}.{item.attr}") if module else None
        return (inner, "") if inner is not None else None

    def may_hold(self, package: str, name: str) -> bool:
        """Whether a package may contain a submodule that is not Python: a plain folder, an extension, a stub."""
        folder = package.rpartition("/")[0]
        return name.startswith("_") or any(
            path.startswith((f"{folder}/{name}/", f"{folder}/{name}.")) for path in self.all_files
        )
