"""The field ``ufunc_inner_loop``: kernels that torchgen generates from the body of a loop over elements."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.entry import string
from opschema_rules.aten.findings import found, respelling
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.rules.dispatch import keys_in
from opschema_rules.aten.rules.fields import kind_of
from opschema_rules.aten.vocabulary import slip

_FIELD = "ufunc_inner_loop"


@rule("ATN171", "ufunc-loop", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def ufunc_loop(native: NativeFile) -> Iterator[Diagnostic]:
    """An inner loop is not written as `name (dtypes)`, or its key or a dtype is unknown.

    The field contains one loop, which is `Generic`, or a loop for each key. Dtypes are those of `torchgen.model.ScalarType`
    and sets of them, such as `AllAndComplex`, separated by a comma and one space.

    Bad:

    ```yaml
    - func: mul.loop_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      ufunc_inner_loop:
        Generics: mul (All, Haf)
        ScalarOnly: mul(Bool)
    ```

    Good:

    ```yaml
    - func: mul.loop_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      ufunc_inner_loop:
        Generic: mul (All, Half)
        ScalarOnly: mul (Bool)
    ```
    """
    for entry in native.having(_FIELD):
        node = entry.get(_FIELD)
        if string(node) is not None and node is not None:
            yield from _loop(entry, node)
        for key, value in node.pairs() if node is not None else ():
            yield from _key(entry, key)
            loop = entry.file.document.follow(value)
            if string(loop) is not None:
                yield from _loop(entry, loop)
            else:
                place = loop if loop.start < loop.end else key
                yield found(entry, place, f"a loop is text of the form `name (dtypes)`, and this is {kind_of(loop)}")


def _key(entry: NativeEntry, key: Node) -> Iterator[Diagnostic]:
    known = entry.owner.torchgen.vocabulary.ufunc_keys
    if key.kind == "scalar" and (key.value not in known or string(key) is None) and key.value != "__line__":
        certain = slip(key.value, known)
        fix = respelling(entry, key, Span(0, len(key.value)), certain) if certain is not None else None
        yield found(
            entry,
            key,
            f"torchgen has no kind of loop `{key.value}`{did_you_mean(nearest(key.value, known))}",
            fix=fix,
        )


_LOOP = re.compile(r"(?P<name>[A-Za-z_]\w*) \((?P<dtypes>.*)\)", re.ASCII | re.DOTALL)
_LOOSE = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*\((?P<dtypes>[\w\s,]*)\)\s*", re.ASCII)


def _loop(entry: NativeEntry, node: Node) -> Iterator[Diagnostic]:
    text = node.value
    match = _LOOP.fullmatch(text)
    loose = _LOOSE.fullmatch(text)
    names = [name.strip() for name in loose["dtypes"].split(",")] if loose is not None else []
    meant = f"{loose['name']} ({', '.join(names)})" if loose is not None else ""
    if match is None or (loose is not None and meant != text):
        fix = respelling(entry, node, Span(0, len(text)), meant) if all(names) and meant else None
        yield found(entry, node, f"an inner loop has the form `name (dtype, dtype)`, and this is `{text}`", fix=fix)
    else:
        yield from _dtypes(entry, node, match["dtypes"], match.start("dtypes"))


def _dtypes(entry: NativeEntry, node: Node, text: str, start: int) -> Iterator[Diagnostic]:
    vocabulary = entry.owner.torchgen.vocabulary
    known = vocabulary.scalar_types | vocabulary.dtype_classes
    at = start
    for name in text.split(", "):
        span = Span(at, at + len(name))
        at += len(name) + 2
        if name not in known:
            certain = slip(name, known)
            fix = respelling(entry, node, span, certain) if certain is not None else None
            what = (
                f"torchgen has no dtype `{name}`{did_you_mean(nearest(name, known))}" if name else "a dtype is missing"
            )
            yield found(entry, entry.inner(node, span), what, fix=fix)


@rule("ATN172", "ufunc-dispatch", pure=True, by_release=True)
def ufunc_dispatch(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator with an inner loop is not structured, or has its own kernel for CPU or CUDA.

    The kernels for CPU and CUDA are generated from the loop.

    Bad:

    ```yaml
    - func: mul.loop_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      ufunc_inner_loop: mul (All)
      dispatch:
        CPU, MPS: mul_out
    ```

    Good:

    ```yaml
    - func: mul.loop_out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      ufunc_inner_loop: mul (All)
      dispatch:
        MPS: mul_out
    ```
    """
    for entry in native.having(_FIELD):
        key, node = entry.fields[_FIELD]
        if not (string(node) is not None or (node.is_mapping and node.items)):
            continue
        if entry.flag("structured") is False:
            yield found(entry, key, f"`{_FIELD}` needs `structured: True`")
        for name, table_key, span in keys_in(entry, native.torchgen.vocabulary.ufunc):
            related = entry.related(key, "the loop")
            message = f"the kernel for `{name}` is made from the inner loop"
            yield found(entry, entry.inner(table_key, span), message, related)
