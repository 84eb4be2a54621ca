"""Uses of a module in code that allows a missing name or a failing call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Generic

import msgspec

from opschema_cli.evaluation.expected_errors import allows_any_error, allows_failure
from opschema_cli.extension_modules.extensions import Extensions
from opschema_cli.extension_modules.model import M, Target
from opschema_cli.source.bodies import Bodies, Body, params_for
from opschema_cli.source.guarded_code import Asked, asked_attributes

_SETS_MODULES = re.compile(
    r"\bsys\.modules(?:\[[^\]\n]*\]\s*=(?!=)|\.(?:setdefault|update)\()|\bpatch\.dict\(\s*[\"']?sys\.modules[\"']?\s*,"
)

_PATCHED = re.compile(r"\b(?:patch|setattr)\(\s*[\"']([\w.]+)(?=[\"'])")
"""An object that is replaced by its full name, which may be a module."""

_QUOTED = re.compile(r"[\"']([\w.]+)(?=[\"'])")


class Guards(msgspec.Struct, Generic[M], frozen=True, eq=False, dict=True):
    """The names in its modules that the Python code of a tree tests or sets."""

    extensions: Extensions[M]

    def allows_absence(self, body: Body, at: int, target: Target[M]) -> bool:
        """Whether the code allows a missing name: it tests for it, sets it, handles its absence or expects a failure."""
        if any(not names.isdisjoint((target.name, "")) for names in self._names(target, is_set=False)):
            return True
        return self.is_mocked(body, target) or allows_any_error(self.extensions.bodies, body, at)

    def allows_failure(self, body: Body, at: int) -> bool:
        """Whether the code allows a call to raise: a handler catches it, a test expects it, or it is for another release."""
        return allows_failure(self.extensions.bodies, body, at)

    def is_asked(self, target: Target[M]) -> bool:
        """Whether Python looks up a name of a module by a string, as ``hasattr`` does."""
        return any(target.name in self._asked.get((id(module), False), ()) for module in target.modules)

    def is_replaced(self, target: Target[M]) -> bool:
        """Whether Python may set a name of a module, so that its binding is not the function that is called."""
        return any(not names.isdisjoint((target.name, "")) for names in self._names(target, is_set=True))

    def is_mocked(self, body: Body, target: Target[M]) -> bool:
        """Whether code of the same folder, or of one around it, may replace a module as a whole."""
        return any(body.file.path.startswith(self._mocked.get(id(module), ())) for module in target.modules)

    def _names(self, target: Target[M], *, is_set: bool) -> Iterator[set[str]]:
        for module in target.modules:
            yield self._asked.get((id(module), True), set())
            if not is_set:
                yield self._asked.get((id(module), False), set())

    @cached_property
    def _mocked(self) -> dict[int, tuple[str, ...]]:
        """The folders with a file that replaces each module (``sys.modules["kit._C"] = ...``, ``patch("kit._C")``)."""
        found: dict[int, tuple[str, ...]] = {}
        for file in self.extensions.bodies.files:
            text = file.source.text
            sets = "sys.modules" in text and _SETS_MODULES.search(text) is not None
            for name in set((_QUOTED if sets else _PATCHED).findall(text)):
                for module in self._modules(self.extensions.names.full_meaning(name)):
                    found[id(module)] = (*found.get(id(module), ()), file.path.rpartition("/")[0])
        return found

    @cached_property
    def _asked(self) -> dict[tuple[int, bool], set[str]]:
        """The names by the ids of modules and whether they are set; an empty name if any name may be set."""
        found: dict[tuple[int, bool], set[str]] = {}
        bodies = self.extensions.bodies
        for body in (body for file in bodies.files for body in bodies.of(file)):
            for asked in (*asked_attributes(body), *self._set_by_functions(body)):
                for module, name in self._named(body, asked):
                    found.setdefault((id(module), asked.is_set), set()).add(name)
        return found

    def _set_by_functions(self, body: Body) -> Iterator[Asked]:
        """Yield what functions of the tree set on the modules that a body passes to them."""
        bodies, meaning = self.extensions.bodies, self.extensions.meaning
        for call in body.scope.calls:
            names = (item for item in call.items[1:] if item.kind == "name")
            held = [item for item in names if self._modules(meaning(body, item.text))]
            called = bodies.called(body, call.callee) if held else None
            for item, param in zip(call.items[1:], params_for(call, called.params) if called else (), strict=False):
                if called is not None and param is not None and item in held:
                    yield from (one._replace(holder=item) for one in _set_on(bodies, called, param.name))

    def _named(self, body: Body, asked: Asked) -> Iterator[tuple[M, str]]:
        """Yield the modules, with the name in each, that code tests or sets."""
        names, full = self.extensions.names, asked.holder.value
        if isinstance(full, str):
            target = names.full_meaning(f"{full}.{asked.name}")
            yield from ((module, target.name) for module in target.modules if target.name) if target else ()
        else:
            yield from ((module, asked.name) for module in self._modules(names.value(body, asked.holder)))

    @staticmethod
    def _modules(target: Target[M] | None) -> tuple[M, ...]:
        """Return the modules that are meant; none for a name in them."""
        return target.modules if target is not None and not target.name else ()


@lru_cache(maxsize=256)
def _set_on(bodies: Bodies, function: Body, name: str) -> list[Asked]:
    """The attributes that a function and those in it set on the object of a name."""
    asked = (item for inner in bodies.inside(function) for item in asked_attributes(inner))
    return [item for item in asked if item.is_set and item.holder.text == name]
