"""Finds the packs (entry points, and plugins that config names) and answers for rule codes and names."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path

import msgspec

from opschema_cli.cache import Cache
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.builtin import BUILTIN_RULES, PAGES
from opschema_cli.lint.installed import installed_packs
from opschema_cli.lint.pack import Pack, PackHead, nothing_read
from opschema_cli.lint.rule import Rule
from opschema_cli.plugins import Plugin
from opschema_cli.project import Project


class Registry(msgspec.Struct, frozen=True, dict=True):
    """The packs of this run and all their rules; ``partial`` if plugins were left out, so that a name may be theirs.

    ``used`` names the packs that find something, so that no other is imported: of the others only the names of rules are
    known. None stands for all.
    """

    heads: Sequence[Pack | PackHead]
    partial: bool = False
    used: frozenset[str] | None = None

    @cached_property
    def packs(self) -> tuple[Pack, ...]:
        """The packs that are used, imported.

        Raises:
            OpschemaError: one of them cannot be loaded.
        """
        return tuple(_imported(head) for head in self.heads if self.used is None or head.name in self.used)

    @property
    def unused(self) -> list[Pack | PackHead]:
        """The packs that are not used."""
        return [head for head in self.heads if self.used is not None and head.name not in self.used]

    def narrowed(self, used: Iterable[str]) -> Registry:
        """The same, with these packs alone in use."""
        return Registry(self.heads, self.partial, frozenset(used))

    def found_in(
        self, project: Project, options: Mapping[str, object], *, prefetch: bool = False, but: Container[str] = ()
    ) -> Registry:
        """The same, with those packs alone in use that find something in a project, ``but`` some that are not asked.

        With ``prefetch`` the Python files that these ask for in any case are parsed from now on, while packs are imported.
        """
        found: list[str] = []
        for head in sorted(self.heads, key=lambda head: head.reads is nothing_read):  # so that it begins early
            if head.name not in but and _finds(head, project, options[head.name]):
                found.append(head.name)
                if prefetch:
                    _prefetch(head, project, options[head.name])
        return self.narrowed(found)

    def prefetch(self, project: Project, options: Mapping[str, object]) -> None:
        """Have the Python files parsed that the packs in use ask for in any case."""
        for head in self.heads:
            if self.used is None or head.name in self.used:
                _prefetch(head, project, options[head.name])

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """Every rule by code, the engine's own included.

        Raises:
            OpschemaError: two packs claim one code or name, or a pack cannot be loaded.
        """
        found: dict[str, Rule] = {}
        names: dict[str, str] = {}
        for item in (*BUILTIN_RULES, *(rule for pack in (*self.packs, *self.unused) for rule in pack.rules)):
            if item.code in found or item.name in names:
                raise OpschemaError(f"two packs define the rule {item.code} ({item.name})")
            found[item.code] = item
            names[item.name] = item.code
        return dict(sorted(found.items()))

    def described(self, codes: Collection[str]) -> Iterator[tuple[Rule, str]]:
        """The rules with these codes, with their pages, and the address of each page, if it has one. Of the packs only those are
        imported that have one of the rules.

        Raises:
            OpschemaError: a pack cannot be loaded.
        """
        if not codes:
            return
        yield from ((item, PAGES.format(code=item.code)) for item in BUILTIN_RULES if item.code in codes)
        for head in self.heads:
            if any(item.code in codes for item in head.rules):
                found = (item for item in _imported(head).rules if item.code in codes)
                yield from ((item, head.pages.format(code=item.code)) for item in found)

    def find(self, selector: str) -> list[Rule]:
        """The rules of a code, a name, or a code's prefix (``SIG``, ``SIG2``); ``ALL`` is every rule."""
        if selector == "ALL":
            return list(self.rules.values())
        prefix = selector[:1].isupper() and selector.isalnum()
        found = self.exact([selector])
        return found or [item for item in self.rules.values() if prefix and item.code.startswith(selector)]

    def exact(self, selectors: Sequence[str]) -> list[Rule]:
        """The rules that ``selectors`` name one by one, by code or name."""
        codes = [selector.upper() for selector in selectors]
        return [item for item in self.rules.values() if item.code in codes or item.name in selectors]

    def expand(self, selectors: Iterable[str], where: str) -> frozenset[str]:
        """The codes that ``selectors`` stand for.

        Raises:
            OpschemaError: one of them names no rule; with a suggestion.
        """
        codes: set[str] = set()
        for selector in selectors:
            found = self.find(selector)
            if not found:
                raise OpschemaError(f"{where}: no rule is called `{selector}`{self.hint(selector)}")
            codes.update(item.code for item in found)
        return frozenset(codes)

    def configured(self, selectors: Iterable[str], where: str) -> frozenset[str]:
        """The codes that ``selectors`` of the configuration stand for; one that names no rule may be that of a plugin.

        Raises:
            OpschemaError: one of them names no rule, and no plugin was left out; with a suggestion.
        """
        return self.expand((item for item in selectors if not self.partial or self.find(item)), where)

    def hint(self, selector: str) -> str:
        """A suggestion for a wrong code or name, ready to append to a message."""
        import difflib  # not at the top: most runs do without

        words = [word for item in self.rules.values() for word in (item.code, item.name)]
        close = difflib.get_close_matches(selector, words, 1, 0.5)
        return f"; did you mean `{close[0]}`?" if close else "; `opschema rules` lists them"


def load_registry(
    plugins: Sequence[Plugin] = (),
    only: Sequence[str] = (),
    *,
    partial: bool = False,
    cache: Cache | None = None,
) -> Registry:
    """The installed packs, and those of the plugins that config names; of these only ``only``, if it names some.
    ``partial`` says that config names plugins that are not among ``plugins``; ``cache`` remembers what is installed.

    Raises:
        OpschemaError: a plugin or pack cannot be loaded, or ``only`` names none.
    """
    points = installed_packs(cache or Cache(None))
    added = [_plugin(plugin) for plugin in plugins]
    known = [*points, *(pack.name for pack in added)]
    for name in only:
        if name not in known and not partial:
            raise OpschemaError(f"no pack is called `{name}`; known packs: {', '.join(known)}")
    installed = [_installed(name, where) for name, where in points.items() if not only or name in only]
    return Registry((*installed, *(pack for pack in added if not only or pack.name in only)), partial)


def code_of_packs(cache: Cache | None = None) -> set[Path]:
    """Where the code of the installed packs lies, found without importing it: top packages as folders, modules as files."""
    found: set[Path] = set()
    for name in {where.partition(":")[0].partition(".")[0] for where in installed_packs(cache or Cache(None)).values()}:
        spec = importlib.util.find_spec(name)
        if spec is None:  # it is told when it is imported
            continue
        folders = spec.submodule_search_locations
        found.update(map(Path, folders if folders else filter(None, [spec.origin])))
    return {path for path in found if path.exists()}


def _finds(head: Pack | PackHead, project: Project, options: object) -> bool:
    """Whether a pack finds something of its kind; one that fails does, so that the run tells of it."""
    try:
        return head.detect(project, options)
    except OpschemaError:
        raise
    except Exception:  # foreign code
        return True


def _prefetch(head: Pack | PackHead, project: Project, options: object) -> None:
    with suppress(Exception):  # foreign code; it fails again where that is told
        project.load_python(head.reads(project, options), ahead=True)


def _imported(head: Pack | PackHead) -> Pack:
    if isinstance(head, Pack):
        return head
    try:
        return head.pack
    except Exception as error:
        # Foreign code runs here, and may raise whatever it likes.
        what = f"the pack `{head.name}` ({head.module}) cannot be loaded"
        raise OpschemaError(f"{what}: {type(error).__name__}: {error}") from error


def _installed(name: str, where: str) -> Pack | PackHead:
    module, _, attribute = where.partition(":")
    try:
        pack = _checked(getattr(import_module(module), attribute), where)
    except OpschemaError:
        raise
    except Exception as error:
        # Foreign code runs here, and may raise whatever it likes.
        what = f"the pack `{name}` ({where}) cannot be loaded"
        raise OpschemaError(f"{what}: {type(error).__name__}: {error}") from error
    if pack.name != name:
        raise OpschemaError(f"the pack `{pack.name}` is installed as `{name}`; it must have one name")
    return pack


def _plugin(plugin: Plugin) -> Pack | PackHead:
    try:
        pack = plugin.run().PACK
    except Exception as error:
        # Foreign code runs here, and may raise whatever it likes.
        raise OpschemaError(f"the plugin `{plugin.name}` cannot be loaded: {type(error).__name__}: {error}") from error
    return _checked(pack, plugin.name)


def _checked(pack: object, name: str) -> Pack | PackHead:
    if not isinstance(pack, Pack | PackHead):
        raise OpschemaError(f"`{name}` is not a pack: expected an `opschema_cli.lint.pack.Pack`")
    return pack
