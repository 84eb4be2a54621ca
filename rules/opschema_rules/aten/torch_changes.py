"""Changes of PyTorch's operators from one release to another, at the places of a tree that depend on them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

import msgspec

from opschema_cli.lint.builtin import TORCH_CHANGED, TORCH_REMOVED
from opschema_cli.lint.diagnostic import Diagnostic, Related, Severity
from opschema_cli.lint.torch_uses import TorchUse
from opschema_cli.phrases import quoted
from opschema_cli.project import Project
from opschema_cli.requirements import Version, dotted
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_changes import described, schema_changes
from opschema_cli.schema.schema_string import parse_schema
from opschema_cli.source.text import Source
from opschema_cli.source.yaml import YamlFile
from opschema_cli.source.yaml_compose import compose
from opschema_rules.aten.catalogue import Catalogue, Known
from opschema_rules.aten.cpp_types import CppSignature, kernel_signature
from opschema_rules.aten.generated import functions_of
from opschema_rules.aten.model import Function
from opschema_rules.aten.native import read_native
from opschema_rules.aten.native_table import differing_names, native_path, native_text, reduced_text
from opschema_rules.aten.signatures import base_name
from opschema_rules.aten.torch_call_changes import operators_used, refusal
from opschema_rules.aten.torch_calls import TorchCall, torch_calls
from opschema_rules.aten.torchgen_table import known_release, operators_of, torchgen_of
from opschema_rules.aten.traits import IMPLICIT, tags_of

_MODULES = ("linalg", "special", "fft")
"""Modules of torch whose operators have its name as a prefix: ``linalg_qr`` replaces the older ``qr``."""


def torch_changes(project: Project, uses: Sequence[TorchUse], old: str, new: str) -> Iterator[Diagnostic]:
    """A finding for each use of an operator that differs between two known releases."""
    versions = known_release(old), known_release(new)
    bases = {_base(use.name) for use in uses} & {_base(name) for name in differing_names(*versions)}
    sides = [_read_side(project, version, bases) for version in versions]
    comparison = _Releases(*sides)
    for use in dict.fromkeys(uses):
        if _base(use.name) in bases:
            yield from comparison.changes(use)
    yield from _call_changes(project, *versions)


def _call_changes(project: Project, old: Version, new: Version) -> Iterator[Diagnostic]:
    """A finding for each use in code that the newer release refuses."""
    differing = differing_names(old, new)
    written = {_base(name): name for name in differing}
    structs = {name.replace(".", "_"): _base(name) for name in operators_of(old)}
    calls = [
        (call, structs.get(call.name, "") if call.form == "struct" else _base(call.name))
        for call in torch_calls(project)
    ]
    calls = [(call, base) for call, base in calls if base in written]
    bases = {base for _, base in calls}
    sides = [_read_side(project, version, bases) for version in (old, new)] if bases else []
    for call, _ in calls:
        yield from _Releases(*sides).call_changes(call)


class _Side(msgspec.Struct, frozen=True):
    """One of the releases, with the operators that are compared."""

    version: Version
    functions: Mapping[str, Function]

    @property
    def origin(self) -> str:
        """Name for messages."""
        return f"torch {dotted(self.version)}"

    def related(self, function: Function) -> Related:
        """The declaration of an operator as the other side of a finding."""
        made = f", which is generated for `{function.entry.name}`" if function.generated else ""
        return Related(function.entry.place, f"{self.origin} has `{function.schema}`{made}")

    def candidates(self, name: str) -> Sequence[str]:
        """Operators that may take the place of a removed one."""
        operators = sorted(operators_of(self.version))
        base = name.partition(".")[0]
        moved = {f"{module}_{base}" for module in _MODULES}
        found = [other for other in operators if other.partition(".")[0] in moved] if base not in operators else []
        known = [Known(other) for other in operators]
        return found or Catalogue(known, [], complete=True, excerpt=False).candidates(name)


def _read_side(project: Project, version: Version, bases: Container[str]) -> _Side:
    """The operators of a release with these base names; nothing else of its native_functions.yaml is parsed."""
    path = project.workspace.provide(native_path(version), native_text(version))
    text = reduced_text(version, lambda name: _base(name) in bases)
    file = YamlFile(Source(path, text), compose(text))
    return _Side(version, functions_of(read_native(file, None, torchgen_of(version))))


def _base(name: str) -> str:
    """The part of a name that the variants of an operator share."""
    base = base_name(name.partition(".")[0]).base
    return base.removesuffix("_out").removesuffix("_copy")


class _Releases(msgspec.Struct, frozen=True):
    old: _Side
    new: _Side

    def changes(self, use: TorchUse) -> Iterator[Diagnostic]:
        before, now = self.old.functions.get(use.name), self.new.functions.get(use.name)
        if before is None or (use.schema and not _is_copy(use.schema, before.schema)):
            return
        if now is None:
            yield self._removed(use, before)
            return
        changed = _schema_changes(before, now)
        facts = [*changed, *_other_changes(before, now)]
        if facts:
            advice = _advice(use, before, now)
            message = f"`{use.name}` changes from {self.old.origin} to {self.new.origin}: {', '.join(facts)}"
            yield Diagnostic(
                f"{message}; {advice}" if advice else message,
                use.place,
                (self.old.related(before), self.new.related(now)) if changed else (self.new.related(now),),
                ops=(f"aten::{use.name}",),
                code=TORCH_CHANGED.code,
                severity=Severity.ERROR if advice else Severity.INFO,
            )

    def call_changes(self, call: TorchCall) -> Iterator[Diagnostic]:
        """Yield the parts of a use in code that the newer release rejects, if that is certain."""
        before, now = (operators_used(call, side.functions) for side in (self.old, self.new))
        if not before:
            return
        first = self.old.functions[before[0]]
        name = before[0] if len(before) == 1 else call.name
        if not now:
            yield self._removed(TorchUse(name, call.place), first, "it is used here")
        elif call.call is not None:
            schemas = {other: self.new.functions[other].schema for other in now}
            changed, said = refusal(call.call, [self.old.functions[other].schema for other in before], schemas)
            if said:
                message = f"`{changed}` changes from {self.old.origin} to {self.new.origin}: {said}"
                sides = (self.old.related(self.old.functions[changed]), self.new.related(self.new.functions[changed]))
                yield Diagnostic(message, call.place, sides, ops=(f"aten::{changed}",), code=TORCH_CHANGED.code)

    def _removed(self, use: TorchUse, before: Function, advice: str = "remove it here") -> Diagnostic:
        near = self.new.candidates(use.name)
        hint = f"; {self.new.origin} has {quoted(near[:3])}" if near else ""
        message = f"`{use.name}` is not an operator of {self.new.origin}; {advice}{hint}"
        kernel = (Related(use.place, "its kernel"),) if use.listed is not None else ()
        related = (*kernel, self.old.related(before))
        ops = (f"aten::{use.name}",)
        return Diagnostic(message, use.listed or use.place, related, ops=ops, code=TORCH_REMOVED.code)


def _is_copy(text: str, original: OperatorSchema) -> bool:
    """Whether a schema that a file has written down is the one of the release."""
    schema = parse_schema(text, "torchgen").schema
    return schema is not None and not any(schema_changes(schema, original))


def _schema_changes(before: Function, now: Function) -> list[str]:
    changes = schema_changes(before.schema, now.schema)
    return [described(item, before.schema, now.schema) for item in changes]


def _other_changes(before: Function, now: Function) -> Iterator[str]:
    """Yield changes of an entry other than of its schema."""
    traits = [_traits(item) for item in (before, now)]
    yield from (f"it is {name} now" for name in sorted(traits[1] - traits[0]))
    yield from (f"it is not {name} any more" for name in sorted(traits[0] - traits[1]))
    old, new = (set(tags_of(item.entry)) for item in (before, now))
    if gained := sorted(new - old):
        yield f"it has the tag{'s' if len(gained) > 1 else ''} {quoted(gained)} now"
    if lost := sorted(old - new):
        yield f"it lost the tag{'s' if len(lost) > 1 else ''} {quoted(lost)}"


def _traits(of: Function) -> set[str]:
    found = {"structured"} if of.entry.flag("structured") is True and not of.generated else set()
    return found | ({f"`{IMPLICIT}`"} if IMPLICIT in of.dispatch else set())


def _advice(use: TorchUse, before: Function, now: Function) -> str:
    """The line to write at a use; empty where nothing has to be written."""
    if use.schema:
        return f"write `{now.schema}`" if any(schema_changes(before.schema, now.schema)) else ""
    if use.kernel == "c++":
        old, new = (kernel_signature(item, symint=use.symint) for item in (before, now))
        same = old is not None and new is not None and _types(old) == _types(new)
        return "" if same or new is None else f"its kernel is now `{new}`"
    if use.kernel == "python":
        taken = [_parameters(item.schema) for item in (before, now)]
        return "" if taken[0] == taken[1] else f"its kernel takes `({_shown(now.schema)})` now"
    return ""


def _types(signature: CppSignature) -> tuple[str, ...]:
    return *(item.type for item in signature.parameters), signature.returns


def _parameters(schema: OperatorSchema) -> tuple[object, ...]:
    """Return the parameters of a Python kernel: the number of positional arguments, and the names of those after ``*``."""
    return len(schema.positional), sorted(item.name for item in schema.kwarg_only), len(schema.returns)


def _shown(schema: OperatorSchema) -> str:
    """The arguments as the parameters of a Python function."""
    words = [_word(item.name, item.default) for item in schema.positional]
    if schema.kwarg_only:
        words += ["*", *(_word(item.name, item.default) for item in schema.kwarg_only)]
    return ", ".join(words)


def _word(name: str, default: str | None) -> str:
    return name if default is None else f"{name}={default}"
