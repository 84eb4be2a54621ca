"""Finds the packs (entry points and configured plugins), and resolves rule codes and names."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path

import msgspec

from opschema_cli.authoring import described, failure
from opschema_cli.cache import Cache
from opschema_cli.config_places import WordError
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.builtin import BUILTIN_RULES, PAGES
from opschema_cli.lint.collisions import collision, rules_of
from opschema_cli.lint.installed import InstalledPack, installed_packs
from opschema_cli.lint.lazy_pack import AnyPack, LazyPack
from opschema_cli.lint.loading import BrokenPack, guarded, imported, load_packs
from opschema_cli.lint.pack import Pack, nothing_read
from opschema_cli.lint.pack_calls import finds
from opschema_cli.lint.rule import Rule
from opschema_cli.plugins import Plugin
from opschema_cli.project import Project
from opschema_cli.suggestions import did_you_mean, nearest

_CODE = re.compile(r"[A-Za-z]{3}\d")
_DIGITS = str.maketrans("oOlIsSB", "0011558")
"""Letters that look like digits."""

PART = 40
"""Number of files to pass to the parser processes while a pack looks for more."""


class Registry(msgspec.Struct, frozen=True, dict=True):
    """The packs of this run and all their rules; ``partial`` if plugins were left out, so that a name may be theirs.

    ``used`` names the packs that find something, so that no other is imported: of the others only the names of rules are
    known. None stands for all. ``unloaded`` are packs that are installed and could not be loaded; ``installed`` are the entry
    points of the others, by name.
    """

    all_packs: Sequence[AnyPack]
    partial: bool = False
    used: frozenset[str] | None = None
    unloaded: tuple[BrokenPack, ...] = ()
    installed: Mapping[str, InstalledPack] = msgspec.field(default_factory=dict)

    @cached_property
    def packs(self) -> tuple[Pack, ...]:
        """The imported packs in use, without broken ones."""
        return tuple(item for item in self._imported if isinstance(item, Pack))

    @property
    def broken(self) -> list[BrokenPack]:
        """Return the installed packs that cannot be used, as far as they were imported."""
        return [*self.unloaded, *(item for item in self._imported if isinstance(item, BrokenPack))]

    def check_needed(self) -> None:
        """Fail if a required pack cannot be used.

        Raises:
            OpschemaError: a pack that the configuration names, or that finds something, cannot be used.
        """
        for pack in self.broken:
            if pack.needed:
                raise OpschemaError(f"{pack.message} ({pack.hint})")

    @cached_property
    def _imported(self) -> list[Pack | BrokenPack]:
        return [self._import(pack) for pack in self.all_packs if self.used is None or pack.name in self.used]

    def _import(self, pack: AnyPack) -> Pack | BrokenPack:
        if isinstance(pack, Pack):
            return pack
        point = self.installed.get(pack.name) or InstalledPack(pack.name, pack.module)
        return guarded(point, lambda: imported(pack), needed=self.used is not None)

    @property
    def unused(self) -> list[AnyPack]:
        """The packs that are not used, or cannot be."""
        used = {pack.name for pack in self.packs}
        return [pack for pack in self.all_packs if pack.name not in used]

    def narrowed(self, used: Iterable[str]) -> Registry:
        """Return the same registry with only these packs in use."""
        return msgspec.structs.replace(self, used=frozenset(used))

    def found_in(
        self, project: Project, options: Mapping[str, object], *, prefetch: bool = False, but: Container[str] = ()
    ) -> Registry:
        """Return the same registry with only those packs in use that find something in a project, ``but`` some that are not asked.

        With ``prefetch`` the Python files that these ask for in any case are parsed from now on, while packs are imported.
        """
        found: list[str] = []
        # First those for which most is to be parsed, so that this begins early.
        for pack in sorted(self.all_packs, key=lambda pack: (not pack.speed.along, pack.speed.reads is nothing_read)):
            if pack.name not in but and _finds(pack, project, options[pack.name]):
                found.append(pack.name)
                if prefetch:
                    _prefetch(pack, project, options[pack.name])
            if prefetch:
                project.pump()  # no process that parses waits for more texts
        return self.narrowed(found)

    def prefetch(self, project: Project, options: Mapping[str, object]) -> None:
        """Have the Python files parsed that the packs in use always request."""
        for pack in self.all_packs:
            if self.used is None or pack.name in self.used:
                _prefetch(pack, project, options[pack.name])

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """Every rule by code, the engine's own included.

        Raises:
            OpschemaError: two packs claim one code or name.
        """
        found = {item.code: item for item in BUILTIN_RULES}
        names = {item.name for item in BUILTIN_RULES}
        packs: list[AnyPack] = []
        # Those of plugins last: they are the ones to change.
        for pack in sorted((*self.packs, *self.unused), key=lambda pack: pack.name not in self.installed):
            for item in rules_of(pack):
                if item.code in found or item.name in names:
                    shared = (
                        collision(pack, packs)
                        or f"its rule {item.code} `{item.name}` has the code or name of one of opschema"
                    )
                    raise OpschemaError(f"the pack `{pack.name}`: {shared}; choose another")
                found[item.code] = item
                names.add(item.name)
            packs.append(pack)
        return dict(sorted(found.items()))

    @cached_property
    def owners(self) -> dict[str, str]:
        """The name of the pack of each rule by its code; ``opschema`` for the engine's own."""
        owned = {item.code: pack.name for pack in self.all_packs for item in rules_of(pack)}
        return {code: owned.get(code, "opschema") for code in self.rules}

    def described(self, codes: Collection[str]) -> Iterator[tuple[Rule, str]]:
        """The rules with these codes, with their pages, and the address of each page, if it has one. Of the packs only those are
        imported that have one of the rules; all of them if a catalogue lacks one.
        """
        if not codes:
            return
        yield from ((item, PAGES.format(code=item.code)) for item in BUILTIN_RULES if item.code in codes)
        listed = {item.code for rules in (BUILTIN_RULES, *map(rules_of, self.all_packs)) for item in rules}
        outdated = not listed.issuperset(codes)
        for pack in self.all_packs:
            if outdated or any(item.code in codes for item in rules_of(pack)):
                own = self._import(pack)
                found = (item for item in rules_of(own if isinstance(own, Pack) else pack) if item.code in codes)
                yield from ((item, pack.pages.format(code=item.code)) for item in found)

    def find(self, selector: str) -> list[Rule]:
        """The rules of a code, a name, or a code's prefix (``SIG``, ``SIG2``); ``ALL`` is every rule."""
        if selector == "ALL":
            return list(self.rules.values())
        prefix = selector[:1].isupper() and selector.isalnum()
        found = self.exact([selector])
        return found or [item for item in self.rules.values() if prefix and item.code.startswith(selector)]

    def exact(self, selectors: Sequence[str]) -> list[Rule]:
        """The rules that ``selectors`` name one by one, by code or name."""
        codes = {
            self._codes[word] for selector in selectors for word in (selector, selector.upper()) if word in self._codes
        }
        return [self.rules[code] for code in sorted(codes)]

    @cached_property
    def _codes(self) -> dict[str, str]:
        """The code of each rule by its code and by its name."""
        return {word: item.code for item in self.rules.values() for word in (item.code, item.name)}

    def expand(self, selectors: Iterable[str], where: str = "") -> frozenset[str]:
        """Return the codes that ``selectors`` stand for; ``where`` names the option that contains them, for messages.

        Raises:
            WordError: one of them names no rule; with a suggestion.
        """
        codes: set[str] = set()
        for selector in selectors:
            found = self.find(selector)
            if not found:
                message = f"{where}{': ' * bool(where)}no rule is called `{selector}`{self.hint(selector)}"
                raise WordError(message, selector)
            codes.update(item.code for item in found)
        return frozenset(codes)

    def configured(self, selectors: Iterable[str], where: str) -> frozenset[str]:
        """Return the codes that ``selectors`` in the configuration stand for; one that matches no rule may belong to a plugin.

        Raises:
            WordError: one of them names no rule, and no plugin was left out; with a suggestion.
        """
        return self.expand((item for item in selectors if not self.partial or self.find(item)), where)

    def hint(self, selector: str) -> str:
        """Return a suggestion for a wrong code or name, to append to a message."""
        letters = selector[:3].upper()
        is_known = (selector.upper() == letters or _CODE.match(selector)) and self.find(letters)
        near = self.near(selector) if selector.upper() != letters or not is_known else None
        return did_you_mean(near) or f"; `opschema rules{f' {letters}' if is_known else ''}` lists them"

    def near(self, selector: str) -> str | None:
        """Return the code or name closest to a wrong one; None if none is close. A code may differ by one character; text that
        does not begin like a code is compared with names.
        """
        if not _CODE.match(selector):
            return nearest(selector, [item.name for item in self.rules.values()], 0.5)
        words = [word for item in self.rules.values() for word in (item.code, item.name)]
        alike = f"{selector[:3]}{selector[3:].translate(_DIGITS)}".upper()
        if alike in words:
            return alike
        if self.partial:  # that of a plugin has letters of its own
            words = [word for word in words if word.startswith(selector[:3].upper())]
        return nearest(selector, words, 0.8)


def load_registry(
    plugins: Sequence[Plugin] = (),
    only: Sequence[str] = (),
    *,
    partial: bool = False,
    cache: Cache | None = None,
) -> Registry:
    """The installed packs, and those of the plugins that config names; of these only ``only``, if it names some. An installed pack
    that cannot be loaded is left out, and what the configuration says of it passed over.
    ``partial`` says that config names plugins that are not among ``plugins``; ``cache`` remembers what is installed.

    Raises:
        OpschemaError: a plugin cannot be loaded, or ``only`` names none.
    """
    points = installed_packs(cache or Cache(None))
    added = [_plugin(plugin) for plugin in plugins]
    known = [*dict.fromkeys([*(point.name for point in points), *(pack.name for pack in added)])]
    for name in only:
        if name not in known and not partial:
            raise WordError(unknown_pack(name, known), name)
    packs, broken = load_packs([point for point in points if not only or point.name in only], needed=bool(only))
    _check_names(packs, added)
    packs += [pack for pack in added if not only or pack.name in only]
    return Registry(
        tuple(packs),
        partial or bool(broken),
        unloaded=tuple(broken),
        installed={point.name: point for point in reversed(points)},
    )


def unknown_pack(name: str, known: Collection[str]) -> str:
    """Return the message on an unknown pack, with a suggestion from ``known``."""
    return f"no pack is called `{name}`" + (did_you_mean(nearest(name, known)) or f"; known packs: {', '.join(known)}")


def code_of_packs(cache: Cache | None = None) -> set[Path]:
    """Return the paths of the installed packs' code, found without importing it: top packages as folders, modules as files."""
    found: set[Path] = set()
    for name in {point.top for point in installed_packs(cache or Cache(None))}:
        spec = importlib.util.find_spec(name)
        if spec is None:  # it is reported when it is imported
            continue
        folders = spec.submodule_search_locations
        found.update(map(Path, folders if folders else filter(None, [spec.origin])))
    return {path for path in found if path.exists()}


def _finds(pack: AnyPack, project: Project, options: object) -> bool:
    """Whether a pack finds something of its kind; a failing one does, so that the run reports it."""
    try:
        return finds(pack, project, options)
    except OpschemaError:
        raise
    except Exception:  # foreign code
        return True


def _prefetch(pack: AnyPack, project: Project, options: object) -> None:
    with suppress(Exception):  # foreign code; the failure is reported when it is called again
        paths = iter(pack.speed.reads(project, options))
        while part := list(islice(paths, PART)):  # while others are still looked for
            project.load_python(part, ahead=True, first=pack.speed.reads_first, along=pack.speed.along)


def _plugin(plugin: Plugin) -> AnyPack:
    try:
        pack = getattr(plugin.run(), "PACK", None)
    except Exception as error:
        # Foreign code runs here, and may raise whatever it likes.
        raise WordError(f"the plugin `{plugin.name}` cannot be loaded: {failure(error)}", plugin.name) from error
    if pack is None:
        raise WordError(
            f"the plugin `{plugin.name}` cannot be loaded: it has no `PACK`, the pack that opschema runs", plugin.name
        )
    if not isinstance(pack, Pack | LazyPack):
        raise WordError(
            f"the plugin `{plugin.name}` cannot be loaded: its `PACK` is {described(pack)}, not a `Pack`", plugin.name
        )
    return pack


def _check_names(packs: Sequence[AnyPack], plugins: Sequence[AnyPack]) -> None:
    """Check that all packs have different names.

    Raises:
        OpschemaError: the pack of a plugin has that of another.
    """
    known = {pack.name: "an installed pack" for pack in packs}
    for pack in plugins:
        if pack.name in known:
            raise OpschemaError(
                f"the pack `{pack.name}` of a plugin has the name of {known[pack.name]}; choose another"
            )
        known[pack.name] = "that of another plugin"
