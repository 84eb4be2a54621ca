"""The operators that a backend lists: their names, whether they exist, and whether they are repeated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from opschema_cli.lint.diagnostic import Diagnostic, Fix, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.source.yaml_edit import remove_item, set_value
from opschema_rules.aten.dialects import DIALECTS, OPERATOR_LIST, OPERATOR_LISTS, SCHEMA_LISTS
from opschema_rules.aten.findings import yaml_fix
from opschema_rules.aten.known_operators import (
    all_releases_text,
    certain_slip,
    is_known,
    operator_releases,
    releases_text,
)
from opschema_rules.aten.model import REFERENCE, BackendFile, BackendItem, Reference
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.rules.backend_dispatch import severity_of
from opschema_rules.aten.rules.backend_keys import is_strict

KERNELS = ("supported", "full_codegen")
"""The lists of operators registered under the backend's key."""

MAX_GUESSES = 25
"""Unknown operators for which candidates are sought."""

_PLAIN = re.compile(r"(?:\w+::)*\w+(?:\.\w+)*", re.ASCII)
_DUNDER_I = re.compile(r"__i(?!add__|sub__|mul__|div__|and__|or__|xor__|lshift__|rshift__|mod__|pow__)[^_]*__")


def operators_of(backend: BackendFile) -> list[BackendItem]:
    """The items of the lists that hold nothing but operators of ATen, those aside whose names torchgen cannot read."""
    lists = OPERATOR_LISTS if is_strict(backend) else DIALECTS[backend.dialect].aten
    return [item for item in backend.items if item.section in lists and not name_fault(item.name)]


def related_items(backend: BackendFile, items: Iterable[BackendItem]) -> tuple[Related, ...]:
    """Other places at which an operator is listed."""
    return tuple(backend.related(item.name_node, f"`{item.section}` lists it here") for item in items)


def name_fault(name: str) -> str:
    """The reason why a text cannot be an operator's name (``torchgen.model.OperatorName.parse``); empty if it can."""
    base = name.rpartition("::")[2].partition(".")[0]
    if "(" in name:
        return "an item is an operator's name, without its arguments"
    if not _PLAIN.fullmatch(name):
        return "a name has letters, digits and `_`, and a `.` before the overload"
    if base.endswith("_out"):
        return f"`_out` is for overloads: `{base.removesuffix('_out')}.out`"
    if _DUNDER_I.fullmatch(base):
        return "it is not an in-place operator of Python"
    return "an operator cannot be functional and in-place" if base.endswith("_functional_") else ""


@rule("ATN611", "backend-operator-name", fixable="unsafe", proof=WRITTEN, pure=True)
def backend_operator_name(backend: BackendFile) -> Iterator[Diagnostic]:
    """A backend's list contains text that cannot be an operator's name.

    torchgen expects a name and, after a dot, an overload: `add.Tensor`. Names that end with `_out` are reserved for
    overloads called `out`.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - add_out
      - relu(Tensor self) -> Tensor
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - add.out
      - relu
    ```
    """
    if not is_strict(backend):
        return
    for item in backend.items:
        fault = name_fault(item.name) if item.section in OPERATOR_LISTS else ""
        if fault:
            reference = backend.reference
            candidates = reference.catalogue.candidates(item.name) if reference is not None else ()
            fix = _respelling(backend, item, candidates)
            message = f"`{item.name[:80]}` is not an operator name: {fault}"
            yield Diagnostic(message, backend.at(item.name_node), fix=fix, ops=(item.name[:80],))


def _respelling(backend: BackendFile, item: BackendItem, candidates: Iterable[str]) -> Fix | None:
    """A fix that writes the only candidate."""
    names = list(candidates)
    if len(names) != 1 or item.name_node is not item.node:
        return None
    why = "" if names[0] == item.name.removeprefix("aten::") else "the name is a guess"
    return yaml_fix(backend, f"write `{names[0]}`", partial(set_value, backend.file, item.node, names[0]), why)


@rule("ATN612", "unknown-backend-operator", fixable="unsafe", proof=WRITTEN, pure=True, needs=(REFERENCE,))
def unknown_backend_operator(backend: BackendFile) -> Iterator[Diagnostic]:
    """A backend lists an operator that PyTorch does not have.

    The operators are those of the native_functions.yaml that the configuration names, of the one in the tree, or of the
    installed torch, with what torchgen generates for them (`autogen`). torchgen stops at the first unknown name in
    `supported`, `full_codegen` and `autograd`, and silently accepts any text in `symint` and `ir_gen`. If the installed
    torch may not be the version that the tree is built with, this is a warning.

    A name that no known release has, and that is one letter off an operator, is an error in any case, without any torch, too.
    For an operator that other releases have the message names these. The lists of torch_musa and torch_mlu, which have no schemas,
    may hold operators of their own: there, only overloads that ATen's operator does not have are warned of.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - rleu
    ```

    Bad, which torchgen accepts silently:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - expand
    symint:
      - exapnd
    ```

    Bad, without the overload:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - add
    ```

    Good:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - add.Tensor
      - relu.out
    ```
    """
    for number, (name, items) in enumerate(_unknown(backend).items()):
        found = _certain(backend, name, items) or _unlisted(backend, name, items, search=number < MAX_GUESSES)
        if found is not None:
            yield found


def _unknown(backend: BackendFile) -> dict[str, list[BackendItem]]:
    """The operators that the reference does not have, or without one no known release."""
    reference = backend.reference
    if reference is not None and not reference.catalogue.complete:
        return {}
    known = reference.catalogue.by_name if reference is not None else operator_releases()
    own = {item.name for item in backend.items if item.section in SCHEMA_LISTS}
    unknown: dict[str, list[BackendItem]] = {}
    for item in operators_of(backend):
        if item.name not in known and (is_strict(backend) or item.name not in own):
            unknown.setdefault(item.name, []).append(item)
    return unknown


def _certain(backend: BackendFile, name: str, items: Sequence[BackendItem]) -> Diagnostic | None:
    """A slip, which is an error whatever release the tree is built with."""
    reference, meant = backend.reference, certain_slip(name)
    if meant is None or (reference is not None and not reference.version):
        return None
    origin = reference.origin if reference is not None else all_releases_text()
    message = f"`{name}` is not an operator of {origin}; did you mean `{meant}`?"
    fix = _respelling(backend, items[0], [meant])
    return Diagnostic(message, backend.at(items[0].name_node), related_items(backend, items[1:]), fix, (name,))


def _unlisted(backend: BackendFile, name: str, items: Sequence[BackendItem], *, search: bool) -> Diagnostic | None:
    """Return a finding on an operator that the reference does not have, with the probable meaning, or the releases that have it."""
    reference = backend.reference
    if reference is None:
        return _of_no_release(backend, name, items) if backend.dialect == OPERATOR_LIST.name else None
    candidates = reference.catalogue.candidates(name) if search else ()
    if backend.dialect == OPERATOR_LIST.name and not _is_meant_for_aten(reference, name):
        return None
    releases = releases_text(name)
    advice = f"; {releases} {'have' if ' to ' in releases else 'has'} it" if releases else _advice(name, candidates)
    message = f"`{name}` is not an operator of {reference.origin}{advice}"
    fix = _respelling(backend, items[0], () if releases else candidates)
    place, related = backend.at(items[0].name_node), related_items(backend, items[1:])
    severity = severity_of(reference) if is_strict(backend) else Severity.WARNING
    return Diagnostic(message, place, related, fix, (name,), severity=severity)


def _of_no_release(backend: BackendFile, name: str, items: Sequence[BackendItem]) -> Diagnostic | None:
    """Return a finding on an operator of a vendor's list that no known release has, although they have other overloads of it."""
    base = name.partition(".")[0]
    overloads = sorted(other for other in operator_releases() if other.partition(".")[0] == base)
    if not overloads:
        return None
    message = f"`{name}` is not an operator of {all_releases_text()}{_advice(name, overloads[:5])}"
    place, related = backend.at(items[0].name_node), related_items(backend, items[1:])
    return Diagnostic(message, place, related, ops=(name,), severity=Severity.WARNING)


def _is_meant_for_aten(reference: Reference, name: str) -> bool:
    """Whether an operator of a vendor's list is not its own: ATen has other overloads of it, or had it."""
    return reference.certain if is_known(name) else name.partition(".")[0] in reference.catalogue.overloads


def _advice(name: str, candidates: Iterable[str]) -> str:
    names = list(candidates)
    if not names:
        return ""
    bare = "." not in name and all(other.partition(".")[0] == name for other in names)
    return f"; it needs an overload: {listed(names, 'or')}" if bare else f"; did you mean {listed(names, 'or')}?"


@rule("ATN613", "repeated-backend-operator", fixable="unsafe", proof=WRITTEN, pure=True)
def repeated_backend_operator(backend: BackendFile) -> Iterator[Diagnostic]:
    """A backend lists an operator twice.

    torchgen accepts this silently. If an operator is listed twice in one list, one entry remains when somebody removes the
    other. If it is listed under `supported` and `full_codegen`, it would have both a hand-written and a generated kernel.

    Bad:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    supported:
      - add.Tensor
      - add.Tensor
    ```

    Bad, in two lists:

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    full_codegen:
      - relu
    supported:
      - relu
    ```

    Good (what `ir_gen` lists has its kernel in `supported`, and `symint` adds to it):

    ```yaml xla_native_functions.yaml
    backend: XLA
    cpp_namespace: torch_xla
    ir_gen:
      - expand
    supported:
      - expand
      - add.Tensor
    symint:
      - expand
    ```
    """
    if backend.dialect == "op-plugin":  # which has an entry for each range of versions
        return
    first: dict[tuple[str, str], BackendItem] = {}
    places: dict[str, dict[int, int]] = {}
    for item in backend.items:
        if item.section in SCHEMA_LISTS:
            continue
        earlier = first.setdefault((item.section, item.name), item)
        if earlier is not item:
            under = f" under `{item.section}`" if backend.get(item.section) is not None else ""
            message = f"`{item.name}` is listed twice{under}; remove one"
            related = (backend.related(earlier.name_node, "it appears here first"),)
            if item.section not in places:
                node = backend.get(item.section)
                places[item.section] = {id(one): at for at, one in enumerate(node.items)} if node is not None else {}
            fix = _removal(backend, earlier, item, places[item.section].get(id(item.node)))
            yield Diagnostic(message, backend.at(item.name_node), related, fix, (item.name,))
    yield from _in_two_lists(backend, first) if is_strict(backend) else ()


def _in_two_lists(backend: BackendFile, first: dict[tuple[str, str], BackendItem]) -> Iterator[Diagnostic]:
    for other, severity, what in (
        ("supported", Severity.ERROR, "its kernel is generated, or written by hand, not both"),
        ("ir_gen", Severity.WARNING, "`full_codegen` generates its node, too"),
    ):
        for item in backend.section(other):
            twin = first.get(("full_codegen", item.name))
            if twin is not None and first.get((other, item.name)) is item:
                message = f"`{item.name}` is listed under `{other}` and under `full_codegen`; {what}"
                related = related_items(backend, [twin])
                yield Diagnostic(message, backend.at(item.name_node), related, ops=(item.name,), severity=severity)


def _removal(backend: BackendFile, earlier: BackendItem, item: BackendItem, index: int | None) -> Fix | None:
    """A fix that removes the second of two equal items, at an index of its list; unsafe where a comment goes with it."""
    text = backend.file.source.text
    written = [text[node.start : node.end] for node in (earlier.node, item.node)]
    node = backend.get(item.section)
    if written[0] != written[1] or node is None or index is None:
        return None
    title = f"remove the second `{item.name}`"
    fix = yaml_fix(backend, title, partial(remove_item, backend.file, node, index))
    if fix is not None and any("#" in text[slice(*edit.edit.span)] for edit in fix.edits):
        return yaml_fix(backend, title, partial(remove_item, backend.file, node, index), "a comment goes with it")
    return fix
