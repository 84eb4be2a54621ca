"""Selects the unreadable files to report: those that a pack recognizes as its own, and modules that these import.

Packs search entire trees for words, so they come across files that have nothing to do with operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from functools import cached_property

from opschema_cli.file_kinds import is_python
from opschema_cli.importing_files import IMPORTED, leading_to
from opschema_cli.lint.lazy_pack import AnyPack
from opschema_cli.project import Project
from opschema_cli.source.modules import Modules
from opschema_cli.source.python import Import, PythonFile


class Recognition:
    """The files of a project that some packs recognize. ``meant`` are those that each pack claimed when it read them."""

    def __init__(
        self,
        project: Project,
        packs: Iterable[AnyPack],
        options: Mapping[str, object],
        meant: Mapping[str, Set[str]],
    ) -> None:
        self._project = project
        self._packs = tuple(packs)
        self._options = options
        self._meant = meant
        self._known: dict[str, bool] = {}

    def reported(self, path: str) -> bool:
        """Whether to report that a file cannot be read or parsed."""
        return self.recognised(path) or (is_python(path) and self._is_imported(path))

    def recognised(self, path: str) -> bool:
        """Whether a pack recognizes a file as its own: by name, place, configuration, or content."""
        if path not in self._known:
            self._known[path] = any(self._claims(pack, path) for pack in self._packs)
        return self._known[path]

    def _claims(self, pack: AnyPack, path: str) -> bool:
        if path in self._meant.get(pack.name, ()):
            return True
        try:
            return pack.claims(self._project, self._options[pack.name], path)
        except Exception:  # foreign code
            return True

    def _is_imported(self, path: str) -> bool:
        led = leading_to(self._modules, self._imported, self._imported.keys() - {path}, [path])
        importing = sorted(item for item in led if self.recognised(item))
        self._project.load_python(importing)
        files = filter(None, map(self._project.python, importing))
        return any(self._names(file, item, path) for file in files for item in file.body.imports)

    def _names(self, file: PythonFile, item: Import, path: str) -> bool:
        module = self._modules.absolute_module(file, item)
        dotted = (module, f"{module}.{item.attr}" if item.attr else None)
        return any(name is not None and self._modules.module_path(name) == path for name in dotted)

    @cached_property
    def _imported(self) -> dict[str, list[tuple[str, str]]]:
        """The imports of each Python file, read from its text, so that the result does not depend on which files are parsed."""
        return dict(self._project.scan(IMPORTED, filter(is_python, self._project.workspace.files)))

    @cached_property
    def _modules(self) -> Modules:
        return Modules(self._project.workspace.files)
