"""`structured-port`: an operator's out, functional and in-place entries become one structured kernel and its delegates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError, Site, migration
from opschema_cli.phrases import listed
from opschema_cli.source.yaml_edit import YamlEditError
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.groups import Group, groups_of
from opschema_rules.aten.migrations.remove_field import lost_comments
from opschema_rules.aten.migrations.scopes import ENTRIES
from opschema_rules.aten.migrations.structured_edits import delegate_edits, set_structured
from opschema_rules.aten.migrations.structured_groups import COMPOSITE, dropped_items, is_ported, outs_of, refusal
from opschema_rules.aten.model import DispatchItem, NativeEntry, NativeFile
from opschema_rules.aten.proofs import KEPT
from opschema_rules.aten.signatures import full_name

_MANY = 5
"""Maximum number of overloads to name if a name lacks one."""


class StructuredPort(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``op`` names the operators by any of their variants, ``inherits`` is the base of the meta class.

    ``keep`` are composite dispatch keys that the delegates keep.
    """

    op: list[str]
    inherits: str = ""
    keep: list[str] = []


class _Port(msgspec.Struct, frozen=True):
    """A group and its file; ``named`` is the entry by which it was selected."""

    native: NativeFile
    group: Group
    named: NativeEntry


def find(draft: Draft, options: StructuredPort) -> Iterator[Site]:
    """The operators that are not structured yet."""
    for port in _ports(draft, options):
        if not is_ported(port.native, port.group, options.keep):
            out = port.group.variants.get("out", port.named)
            others = listed([entry.name for entry in _delegates(port.group)])
            title = f"make `{out.name}` structured{f', and {others} delegate to it' if others else ''}"
            yield Site(out.place, title, tuple(entry.name for entry in port.group.entries), subject=port)


@migration(
    "structured-port",
    find=find,
    options=StructuredPort,
    scope=ENTRIES,
    settled="the operators are structured already",
    proof=KEPT,
)
def structured_port(draft: Draft, sites: Sequence[Site], options: StructuredPort) -> Iterator[Note]:
    """Port operators to structured kernels: their out, functional and in-place entries together.

    The out entry gets `structured: True`, and `structured_inherits:` of `-o inherits=`; its siblings get
    `structured_delegate:`, and lose the dispatch keys that the structured kernel generates, `CompositeExplicitAutograd`
    and the like with them. Their other keys (sparse, quantized) stay, and so do composite ones that `-o keep=` names.

    An operator is left unchanged, with a note that gives the reason, if torchgen would reject it: no functional or out
    entry, a mutable variant, a composite out kernel, `TensorOptions` or lists of tensors as outputs, `device_guard: False`,
    `Meta` kernels of its own. The same applies if a sibling has a kernel for a key that the out entry lacks, since it would
    be lost.

    Notes also list what must be written in C++, and kernels that are no longer called.

        opschema migrate structured-port -o op=sin.out,cos.out -o inherits=TensorIteratorBase
    """
    uses = Counter(item.kernel for native in _natives(draft) for entry in native.entries for item in entry.dispatch())
    for site in sites:
        port = site.subject
        if not isinstance(port, _Port):
            continue
        reason = refusal(port.native, port.group, options.keep)
        if not reason:
            try:
                notes = _apply(draft, port, options, uses)
            except (YamlEditError, ValueError) as error:
                reason = f"port it by hand: {error}"
            else:
                yield from notes
        if reason:
            yield Note(site.place, reason, leaves_site=True)


def _meant(name: str, names: set[str]) -> str:
    """The probable meaning: an overload, where the name has none."""
    overloads = sorted(other for other in names if other.partition(".")[0] == name)
    return f"; there are {listed(overloads[:_MANY])}" if overloads else did_you_mean(nearest(name, names))


def _ports(draft: Draft, options: StructuredPort) -> Iterator[_Port]:
    """The group of each operator that is named, once.

    Raises:
        OptionError: there is no such operator, or none is named.
    """
    natives = _natives(draft)
    names = {entry.name for native in natives for entry in native.entries}
    if not options.op:
        raise OptionError("-o op= names no operator")
    for key in options.keep:
        if key not in COMPOSITE:
            raise OptionError(
                f"-o keep={key}: it is not one of {listed(COMPOSITE)}, the only keys that would be removed"
            )
    for name in options.op:
        if natives and name not in names:
            raise OptionError(f"-o op={name}: there is no such entry{_meant(name, names)}")
    for native in natives:
        seen: list[Group] = []
        for entry in (entry for entry in native.entries if entry.name in options.op):
            group = groups_of(native).by_entry.get(entry)
            if group is not None and all(group is not other for other in seen):
                seen.append(group)
                yield _Port(native, group, entry)


def _natives(draft: Draft) -> list[NativeFile]:
    return [item for item in draft.loaded.subjects if isinstance(item, NativeFile)]


def _delegates(group: Group) -> list[NativeEntry]:
    return [group.variants[kind] for kind in ("functional", "inplace") if kind in group.variants]


def _apply(draft: Draft, port: _Port, options: StructuredPort, uses: Counter[str]) -> list[Note]:
    """Draft the port of one group. Return the notes on what remains to do.

    Raises:
        YamlEditError, ValueError: the editor refuses.
    """
    out, group = port.group.variants["out"], port.group
    edits = set_structured(out, options.inherits)
    removed: list[DispatchItem] = []
    notes: list[Note] = []
    for entry in _delegates(group):
        items = dropped_items(port.native, entry, options.keep)
        removed += items
        own = delegate_edits(entry, _name(out), items)
        edits += own
        lost = lost_comments(entry.file, own)
        notes += (Note(entry.place, f"a comment went with `dispatch` of `{entry.name}`: `{text}`") for text in lost)
        text = _changed(port, entry, items)
        if text:
            notes.append(Note(entry.place, text))
    draft.edit(out.file.path, edits)
    return [Note(out.place, _in_cpp(port, removed, uses)), *notes]


def _changed(port: _Port, entry: NativeEntry, items: Sequence[DispatchItem]) -> str:
    """Describe work that the delegate did for all backends, and does no more."""
    composites = [item.key for item in items if item.key in COMPOSITE]
    if composites:
        return f"`{entry.name}` had {listed(composites)}; the generated code instead calls `{port.group.variants['out'].name}`"
    implicit = entry.get("dispatch") is None and entry.get("structured_delegate") is None
    if implicit and entry is port.group.variants["functional"]:
        return f"`{entry.name}` was CompositeImplicitAutograd: it needs a derivative of its own now"
    return ""


def _in_cpp(port: _Port, removed: Sequence[DispatchItem], uses: Counter[str]) -> str:
    """Edits to make in C++, and kernels that no entry uses any more."""
    functional, out = port.group.variants["functional"], port.group.variants["out"]
    base, _, overload = _name(functional).partition(".")
    meta = f"TORCH_META_FUNC2({base}, {overload})" if overload else f"TORCH_META_FUNC({base})"
    uses.subtract(item.kernel for item in removed)
    unused = sorted({item.kernel for item in removed if not uses[item.kernel]})
    kernels = [f"TORCH_IMPL_FUNC({name})" for name in outs_of(port.native, out)]
    text = f"write {listed([meta, *kernels])} in C++"
    return f"{text}; {listed(unused)} may go there" if unused else text


def _name(entry: NativeEntry) -> str:
    """The operator as torchgen names it."""
    return full_name(entry.schema) if entry.schema is not None else entry.name
