"""Uses of a module in code that allows a missing name or a failing call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Generic

import msgspec

from opschema_cli.evaluation.expected_errors import allows_any_error, allows_failure
from opschema_cli.extension_modules.extensions import Extensions
from opschema_cli.extension_modules.model import M, Target
from opschema_cli.source.bodies import Body
from opschema_cli.source.guarded_code import asked_attributes

_SETS_MODULES = re.compile(
    r"\bsys\.modules(?:\[[^\]\n]*\]\s*=(?!=)|\.(?:setdefault|update)\()|\bpatch\.dict\(\s*[\"']?sys\.modules[\"']?\s*,"
)

_QUOTED = re.compile(r"[\"']([\w.]+)(?=[\"'])")


class Guards(msgspec.Struct, Generic[M], frozen=True, eq=False, dict=True):
    """The names in its modules that the Python code of a tree tests or sets."""

    extensions: Extensions[M]

    def allows_absence(self, body: Body, at: int, target: Target[M]) -> bool:
        """Whether the code allows a missing name: it tests for it, sets it, handles its absence or expects a failure."""
        if any(not names.isdisjoint((target.name, "")) for names in self._names(target, is_set=False)):
            return True
        if any(body.file.path.startswith(self._mocked.get(id(module), ())) for module in target.modules):
            return True
        return allows_any_error(self.extensions.bodies, body, at)

    def allows_failure(self, body: Body, at: int) -> bool:
        """Whether the code allows a call to raise: a handler catches it, a test expects it, or it is for another release."""
        return allows_failure(self.extensions.bodies, body, at)

    def is_asked(self, target: Target[M]) -> bool:
        """Whether Python looks up a name of a module by a string, as ``hasattr`` does."""
        return any(target.name in self._asked.get((id(module), False), ()) for module in target.modules)

    def is_replaced(self, target: Target[M]) -> bool:
        """Whether Python may set a name of a module, so that its binding is not the function that is called."""
        return any(not names.isdisjoint((target.name, "")) for names in self._names(target, is_set=True))

    def _names(self, target: Target[M], *, is_set: bool) -> Iterator[set[str]]:
        for module in target.modules:
            yield self._asked.get((id(module), True), set())
            if not is_set:
                yield self._asked.get((id(module), False), set())

    @cached_property
    def _mocked(self) -> dict[int, tuple[str, ...]]:
        """The folders with a file that replaces each module (``sys.modules["kit._C"] = ...``)."""
        found: dict[int, tuple[str, ...]] = {}
        for file in self.extensions.bodies.files:
            text = file.source.text
            sets = "sys.modules" in text and _SETS_MODULES.search(text) is not None
            names = set(_QUOTED.findall(text)) if sets else set[str]()
            for module in self.extensions.modules if names else ():
                if module.name in names:
                    found[id(module)] = (*found.get(id(module), ()), file.path.rpartition("/")[0])
        return found

    @cached_property
    def _asked(self) -> dict[tuple[int, bool], set[str]]:
        """The names by the ids of modules and whether they are set; an empty name if any name may be set."""
        found: dict[tuple[int, bool], set[str]] = {}
        bodies = self.extensions.bodies
        for body in (body for file in bodies.files for body in bodies.of(file)):
            for holder, name, is_set in asked_attributes(body):
                target = self.extensions.meaning(body, holder)
                for module in target.modules if target is not None and not target.name else ():
                    found.setdefault((id(module), is_set), set()).add(name)
        return found
