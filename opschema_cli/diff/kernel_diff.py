"""Changes of kernels and backends: dispatch keys, what backends list, kernels' names and C++ signatures, composite operators."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.diff.entries import ALL_KEYS, Entry
from opschema_cli.diff.model import Change
from opschema_cli.phrases import listed
from opschema_cli.schema.cpp_spelling import spelling
from opschema_cli.source.text import Place


def kernel_changes(old: Entry, new: Entry) -> Iterator[Change]:
    """Changes of dispatch keys, backends, kernels and of how the operator is implemented."""
    if not {"kernel", "registrations", "decomposition"} & {*old.unknown, *new.unknown}:
        before, now = set(old.keys.get("kernel", ())), set(new.keys.get("kernel", ()))
        lost, gained = sorted(before - now - {ALL_KEYS}), sorted(now - before - {ALL_KEYS})
        if lost and ALL_KEYS not in now:
            yield Change("kernel-keys", old.name, f"it has no kernel for {listed(lost)} any more", hits=("backends",))
        if gained and ALL_KEYS not in before:
            yield Change("kernel-keys", old.name, f"it now has a kernel for {listed(gained)}")
    for name in sorted({*old.backends} - {*new.backends}):
        yield Change("backend", old.name, f"`{name}` does not list it any more", hits=("backends",))
    for name in sorted({*new.backends} - {*old.backends}):
        yield Change("backend", old.name, f"`{name}` lists it now")
    for name in sorted({*old.traits} ^ {*new.traits}):
        verb = "is now" if name in new.traits else "is not"
        tail = "" if name in new.traits else " any more"
        yield Change("structured", old.name, f"it {verb} {name}{tail}", hits=("backends",))
    yield from _signatures(old, new)


def _signatures(old: Entry, new: Entry) -> Iterator[Change]:
    """Yield kernels of one key with another name in a dispatch table, or other parameters in C++ for the same schema."""
    after = {item.key: item for item in new.kernels}
    pairs = [(item, after[item.key]) for item in old.kernels if item.key in after]
    found: dict[tuple[str, Place | None, Place | None], list[str]] = {}
    for item, other in pairs:
        if item.symbol and other.symbol and item.symbol != other.symbol:
            found.setdefault((f"`{other.symbol}`; it was `{item.symbol}`", item.place, other.place), []).append(
                item.key
            )
        elif old.schema == new.schema and _differs(item.types, other.types):
            text = f"`({', '.join(other.types or ())})`; it took `({', '.join(item.types or ())})`"
            found.setdefault((text, item.place, other.place), []).append(item.key)
    for (text, before, now), keys in found.items():
        verb = "is now" if "; it was" in text else "now takes"
        message = f"its kernel for {listed(keys)} {verb} {text}"
        yield Change("kernel-signature", old.name, message, before, now, ("backends",))


def _differs(old: tuple[str, ...] | None, new: tuple[str, ...] | None) -> bool:
    """Whether lists of C++ types are known to differ: in length, or in types with known spellings."""
    if old is None or new is None or old == new:
        return False
    pairs = [
        (spelling(one, any_version=True), spelling(other, any_version=True))
        for one, other in zip(old, new, strict=False)
    ]
    return len(old) != len(new) or any(one != other for one, other in pairs if one is not None and other is not None)
