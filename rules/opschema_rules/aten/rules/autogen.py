"""The field ``autogen``: generated operators must be listed, and listed ones must be generated."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.source.text import Span
from opschema_cli.suggestions import nearest
from opschema_rules.aten.autogen import autogen_edits, is_asked_for, listed_names, obstacle, wanted_names
from opschema_rules.aten.differences import torn
from opschema_rules.aten.findings import found, respelling, yaml_fix
from opschema_rules.aten.groups import Group, Groups, groups_of
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.signatures import out_name, out_overload
from opschema_rules.aten.traits import autogen_of, is_structured


@rule("ATN331", "autogen-missing", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def autogen_missing(native: NativeFile) -> Iterator[Diagnostic]:
    """Operators that torchgen generates are not listed in `autogen`.

    For an in-place or mutable operator with an out variant but no functional one, torchgen generates the functional one; if
    `autogen` names an out variant, it generates the out variant and the functional one. It requires all of them to be
    listed, and prints the required line; the fix writes this line.

    Bad:

    ```yaml
    - func: scale_forward_(Tensor(a!) self, Scalar factor) -> Tensor(a!)
      dispatch:
        CPU: scale_forward_
    - func: scale_forward.out(Tensor self, Scalar factor, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: scale_forward_out
    ```

    Bad, one of two:

    ```yaml
    - func: scale_(Tensor(a!) self, Scalar factor) -> Tensor(a!)
      dispatch:
        CPU: scale_
      autogen: scale.out
    ```

    Good:

    ```yaml
    - func: scale_(Tensor(a!) self, Scalar factor) -> Tensor(a!)
      dispatch:
        CPU: scale_
      autogen: scale, scale.out
    ```

    Good, nothing is generated unless it is asked for:

    ```yaml
    - func: scale_(Tensor(a!) self, Scalar factor) -> Tensor(a!)
      dispatch:
        CPU: scale_
    ```
    """
    for group in _judged(groups_of(native)):
        base, names, given = group.base, wanted_names(group), listed_names(group)
        if base is None or not is_asked_for(group) or not groups_of(native).complete:
            continue
        missing = [name for name in names if name not in given]
        if not missing or _unknown(group, given):
            continue
        line = f"autogen: {', '.join(names)}"
        message = f"torchgen generates {listed(missing)} for `{base.name}`, and that must be listed: `{line}`"
        fix = yaml_fix(base, f"write `{line}`", partial(autogen_edits, base, names))
        node = base.get("autogen")
        yield found(base, node if node is not None else base.place.span, message, fix=fix)


def _judged(groups: Groups) -> Iterator[Group]:
    """Yield the complete groups, for which it is certain what torchgen generates."""
    for group in groups.all:
        if len(group.variants) == 1 and "autogen" not in next(iter(group.variants.values())).fields:
            continue  # nothing is listed, and nothing is generated
        if group in torn(groups) or not groups.knows_all(group.key[0].base):
            continue
        out = group.variants.get("out")
        if out is None or not is_structured(out) or "functional" in group.variants:
            yield group


def _unknown(group: Group, given: list[str]) -> list[str]:
    """Return names that are listed and not generated; torchgen allows them if it skips an operator, provided they are right."""
    if not given:
        return []
    known = [item.name for item in group.wanted]
    if group.skipped and not group.formed:
        known += [name for entry in group.entries for name in _names_of(entry)]
    return [name for name in given if name not in known]


def _names_of(entry: NativeEntry) -> Iterator[str]:
    """Names for the out variant and the functional one of an operator."""
    if entry.schema is not None:
        name, overload = out_name(entry.schema), entry.schema.overload
        yield f"{name}.{out_overload(entry.schema)}"
        for functional in (name, f"{name}_functional"):
            yield f"{functional}.{overload}" if overload else functional


@rule("ATN332", "autogen-unknown", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def autogen_unknown(native: NativeFile) -> Iterator[Diagnostic]:
    """`autogen` lists an operator that torchgen does not generate.

    A generated operator has a fixed name: the operator's name without the `_` of in-place ones, with the overload `out` or
    `OVERLOAD_out` for the out variant. torchgen compares the list with these names, but only if it can group the entries;
    if a misspelt name keeps it from generating anything, it reports nothing.

    Bad:

    ```yaml
    - func: tanh.wide(Tensor self, int width) -> Tensor
      dispatch:
        CPU: tanh_wide
      autogen: tanh.out
    ```

    Bad, the out variant is there already:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
      autogen: tanh.out
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: tanh_out
    ```

    Good:

    ```yaml
    - func: tanh.wide(Tensor self, int width) -> Tensor
      dispatch:
        CPU: tanh_wide
      autogen: tanh.wide_out
    ```
    """
    for group in _judged(groups_of(native)):
        wrong = _unknown(group, listed_names(group))
        for entry in group.entries if wrong else ():
            yield from _wrong_items(group, entry)


def _wrong_items(group: Group, entry: NativeEntry) -> Iterator[Diagnostic]:
    node = entry.get("autogen")
    items, given, wanted = autogen_of(entry), listed_names(group), wanted_names(group)
    missing = [item for item in wanted if item not in given]
    wrong = set(_unknown(group, given))
    for name, span in items:
        if node is None or name not in wrong:
            continue
        if name.replace(" ", "").split(",")[1:]:
            yield _unspaced(entry, items)
            return
        near = nearest(name, missing)
        meant = near or (missing[0] if len(missing) == 1 else None)
        why = "" if near else "the name that is listed is another one, and torchgen would generate this operator"
        what = f"; did you mean `{meant}`?" if meant else _instead(group, wanted)
        message = f"torchgen generates no `{name}` for `{entry.name}`{what}"
        fix = respelling(entry, node, span, meant, why_unsafe=why) if meant else None
        yield found(entry, entry.inner(node, span), message, entry.related(entry.place.span, "the operator"), fix=fix)


def _unspaced(entry: NativeEntry, items: list[tuple[str, Span]]) -> Diagnostic:
    """Return a finding on names separated by only a comma, or a comma and two spaces."""
    node = entry.get("autogen")
    names = [part.strip() for name, _ in items for part in name.split(",") if part.strip()]
    fix = yaml_fix(entry, "write `, ` between the names", partial(autogen_edits, entry, names))
    message = "the names in `autogen` have a comma and one space between them"
    return found(entry, node if node is not None else entry.place.span, message, fix=fix)


def _instead(group: Group, wanted: list[str]) -> str:
    if wanted:
        return f"; the line is `autogen: {', '.join(wanted)}`"
    return f"; it generates nothing here, for {group.skipped}" if group.skipped else "; all its variants are declared"


@rule("ATN333", "autogen-elsewhere", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def autogen_elsewhere(native: NativeFile) -> Iterator[Diagnostic]:
    """`autogen` is in an entry that torchgen does not generate from.

    torchgen generates from one variant: from the mutable one if there is one, else from the in-place, the out, the
    functional one. It looks for the name of an out variant in that entry's `autogen` alone. In another entry, it silently
    has no effect.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
      autogen: tanh.out
    - func: tanh_(Tensor(a!) self) -> Tensor(a!)
      dispatch:
        CPU: tanh_
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh_(Tensor(a!) self) -> Tensor(a!)
      dispatch:
        CPU: tanh_
      autogen: tanh.out
    ```
    """
    for group in _judged(groups_of(native)):
        base, names = group.base, {item.name for item in group.wanted if item.kind == "out"}
        if base is None or not names or group.generated:
            continue
        for entry in group.entries:
            node = entry.get("autogen")
            for name, span in autogen_of(entry) if node is not None and entry is not base else ():
                if node is None or name not in names:
                    continue
                message = (
                    f"torchgen generates from `{base.name}`, and reads `{name}` only in the `autogen` of that entry"
                )
                fix = yaml_fix(base, f"list it in `{base.name}`", partial(autogen_edits, base, wanted_names(group)))
                yield found(
                    entry, entry.inner(node, span), message, base.related(base.place.span, "it belongs here"), fix=fix
                )


@rule("ATN334", "autogen-repeated", pure=True)
def autogen_repeated(native: NativeFile) -> Iterator[Diagnostic]:
    """`autogen` lists an operator twice.

    torchgen accepts it; the second mention has no effect.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
      autogen: tanh.out, tanh.out
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
      autogen: tanh.out
    ```
    """
    for entry in native.having("autogen"):
        node, seen = entry.get("autogen"), set[str]()
        for name, span in autogen_of(entry):
            if node is not None and name in seen:
                yield found(entry, entry.inner(node, span), f"`{name}` is listed twice")
            seen.add(name)


@rule("ATN335", "autogen-impossible", pure=True, by_release=True)
def autogen_impossible(native: NativeFile) -> Iterator[Diagnostic]:
    """`autogen` asks for an out variant that torchgen cannot make.

    An out variant writes everything that the operator returns. torchgen cannot generate one for an operator that also
    returns something other than tensors, nor for one that writes `self`, or returns an argument that it writes, and is not
    in-place by its name: the result would not be a variant of that operator.

    Bad:

    ```yaml
    - func: fill(Tensor(a!) self, Scalar value) -> Tensor(a!)
      dispatch:
        CPU: fill
      autogen: fill.out
    ```

    Good:

    ```yaml
    - func: fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)
      dispatch:
        CPU: fill_
      autogen: fill, fill.out
    ```
    """
    for group in _judged(groups_of(native)):
        base, node = group.base, group.base.get("autogen") if group.base is not None else None
        outs = [item.name for item in group.generated if item.kind == "out"]
        why = obstacle(group) if outs else None
        if base is not None and node is not None and why is not None and base.schema_text is not None:
            span, what = why
            message = f"{what}, so that torchgen can make no `{outs[0]}` of `{base.name}`"
            yield found(base, base.schema_text.span(span), message, base.related(node, "which is asked for here"))
