"""The names in a manifest: ops, and an entry's names of its inputs, params and promises."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.program import ClassRef
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import remove_key
from opschema_rules.tileops.drift import yaml_fix
from opschema_rules.tileops.model import Manifest, OpEntry
from opschema_rules.tileops.op_keys import is_name, misnomer
from opschema_rules.tileops.proofs import VALIDATOR

RESERVED_KEYS = ("dtypes", "label")
"""Keys of a workload row that are not params."""


@rule("MAN102", "duplicate-op")
def duplicate_op(manifest: Manifest) -> Iterator[Diagnostic]:
    """An op is declared twice.

    The loader merges all files of the manifest by op name. It raises for a name that two files declare, so nothing loads;
    within one file YAML keeps the last entry, and the first one is lost silently.

    Bad:

    ```yaml kit/manifest/other.yaml
    ExampleFwdOp:
      signature: {inputs: {x: {dtype: float16}}, outputs: {y: {dtype: float16}}}
      workloads: []
      roofline: {}
    ```

    Good:

    ```yaml kit/manifest/other.yaml
    ExampleBwdOp:
      signature: {inputs: {x: {dtype: float16}}, outputs: {y: {dtype: float16}}}
      workloads: []
      roofline: {}
    ```
    """
    for name, entries in manifest.by_name.items():
        named = [entry for entry in entries if is_name(entry.key)]
        for entry in named[1:]:
            first = named[0]
            effect = "YAML keeps only the last" if entry.file is first.file else "the loader refuses two"
            message = f"`{name}` is declared a second time; {effect}, so remove or rename one"
            yield Diagnostic(message, entry.place, (Related(first.place, "first declared here"),), ops=(name,))


@rule("MAN103", "op-key-format")
def op_key_format(entry: OpEntry) -> Iterator[Diagnostic]:
    """An op's name puts its direction in the wrong place, or leaves it out.

    A key is `{Name}[Fwd|Bwd]Op`: a word that distinguishes variants belongs to the name and precedes the direction. The
    direction may be omitted only if the manifest does not declare both directions of the op. The key is the class's name,
    so rename the class with it.

    This is checked if the tree's specification states the format.

    Bad:

    ```yaml kit/manifest/example.yaml
    MaxPoolFwdOpIndices:
      signature: {inputs: {x: {dtype: float16}}, outputs: {y: {dtype: float16}}}
      workloads: []
      roofline: {}
    ```

    Bad, the direction is needed because there is a backward op:

    ```yaml kit/manifest/example.yaml
    MaxPoolOp:
      signature: {inputs: {x: {dtype: float16}}, outputs: {y: {dtype: float16}}}
      workloads: []
      roofline: {}
    MaxPoolBwdOp:
      signature: {inputs: {x: {dtype: float16}}, outputs: {y: {dtype: float16}}}
      workloads: []
      roofline: {}
    ```

    Good:

    ```yaml kit/manifest/example.yaml
    MaxPoolIndicesFwdOp:
      signature: {inputs: {x: {dtype: float16}}, outputs: {y: {dtype: float16}}}
      workloads: []
      roofline: {}
    FwdOpsOp:
      signature: {inputs: {x: {dtype: float16}}, outputs: {y: {dtype: float16}}}
      workloads: []
      roofline: {}
    ```
    """
    found = misnomer(entry)
    if found is not None:
        sibling = [Related(found.sibling.place, "its sibling")] if found.sibling is not None else []
        yield Diagnostic(found.reason, entry.place, (*sibling, *_class(entry)), ops=(entry.name,))


def _class(entry: OpEntry) -> Iterator[Related]:
    found = entry.op_class
    if isinstance(found, ClassRef):
        yield Related(Place(found.file.path, found.cls.span), "the class has the same name")


@rule("MAN104", "name-collision", pure=True)
def name_collision(entry: OpEntry) -> Iterator[Diagnostic]:
    """Two parts of an entry have the same name.

    Inputs, params and `static_dims` share a namespace: shape rules and formulas read them by name, and the code takes them
    as arguments. A param named `dtypes` or `label` cannot be given in a workload row, where these keys are reserved (for an
    op with one input, `workload-keys` reports it). An output may have the name of the input it overwrites.

    Bad:

    ```yaml
    signature:
      params:
        x: {type: float, default: 0.5}
    ```

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        y: {dtype: "same_as(x)"}
      params:
        label: {type: str, default: "a"}
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        y: {dtype: "same_as(x)"}
      outputs:
        y: {dtype: "same_as(x)"}
    ```
    """
    seen: dict[str, tuple[str, Node]] = {tensor.name: ("input", tensor.key) for tensor in entry.inputs}
    others = [("param", param.key) for param in entry.params]
    others += [("static dim", key) for key in _static_dims(entry)]
    for kind, key in others:
        if key.value not in seen:
            seen[key.value] = (kind, key)
        elif seen[key.value][0] != kind:
            first, other = seen[key.value]
            message = f"the {kind} `{key.value}` has the name of {_a(first)}; rename one of them"
            yield Diagnostic(message, entry.at(key), (entry.related(other, f"the {first}"),), ops=(entry.name,))
    if len(entry.inputs) != 1 and entry.manifest.spec.knows("workload-keys"):
        for param in entry.params:
            if param.name in RESERVED_KEYS:
                message = f"the param `{param.name}` cannot be given in a workload row, where `{param.name}` is reserved; rename it"
                yield Diagnostic(message, entry.at(param.key), ops=(entry.name,))


def _static_dims(entry: OpEntry) -> list[Node]:
    owner = entry.get("signature", "static_dims")
    return [key for key, _ in owner.pairs() if is_name(key)] if owner is not None else []


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


@rule("MAN105", "status-promise", fixable="unsafe", pure=True, proof=VALIDATOR)
def status_promise(entry: OpEntry) -> Iterator[Diagnostic]:
    """A `spec-only` entry makes a promise about its implementation.

    `torch_compile_fullgraph: true` promises that the implementation can be captured as one graph; a `spec-only` entry has
    no implementation that could. Either the status is out of date, or the promise is premature.

    Bad:

    ```yaml
    status: spec-only
    torch_compile_fullgraph: true
    ```

    Good:

    ```yaml
    status: implemented
    torch_compile_fullgraph: true
    ```
    """
    if entry.status != "spec-only" or not entry.manifest.spec.knows("fullgraph"):
        return
    key, status = entry.key_of("torch_compile_fullgraph"), entry.get("status")
    if key is not None and entry.data_at("torch_compile_fullgraph") is True:
        yield Diagnostic(
            "`torch_compile_fullgraph` promises something of the implementation, and the entry is `spec-only`; remove one of them",
            entry.at(key),
            (entry.related(status, "it claims no implementation"),) if status is not None else (),
            yaml_fix(
                entry,
                "remove `torch_compile_fullgraph`",
                lambda: remove_key(entry.file, entry.node, "torch_compile_fullgraph"),
                "perhaps the op is implemented, and its status should change",
            ),
            ops=(entry.name,),
        )


@rule("MAN106", "variant-of")
def variant_of(entry: OpEntry) -> Iterator[Diagnostic]:
    """`variant_of` names an entry that does not exist, is a variant itself, or is implemented elsewhere.

    `variant_of` links an entry to the primary form of the same op: one level deep, with the same `source.kernel` and
    `source.op`.

    This is checked if the tree's specification describes `variant_of`; newer ones do not have it.

    Bad:

    ```yaml kit/manifest/example.yaml
    ExampleOutFwdOp:
      variant_of: ExampelFwdOp
      signature: {inputs: {x: {dtype: float16}}, outputs: {y: {dtype: float16}}}
      workloads: []
      roofline: {}
    ```

    ```markdown docs/manifest.md
    An entry has a status, a signature, workloads, shape_rules and a roofline. A variant names its primary in `variant_of`.
    ```

    ```yaml opschema.toml
    [tileops]
    ```

    Good, a specification that does not describe it:

    ```yaml
    variant_of: ExampelFwdOp
    ```
    """
    target = entry.get("variant_of")
    if target is None or not entry.manifest.spec.mentions("variant_of"):
        return
    name = entry.text_at("variant_of")
    primaries = entry.manifest.by_name.get(name or "", [])
    if name is None:
        message = "`variant_of` must be the name of an op"
        yield Diagnostic(message, entry.at(target), ops=(entry.name,))
    elif not primaries:
        message = f"`variant_of` names `{name}`, which the manifest does not declare"
        yield Diagnostic(message, entry.at(target), ops=(entry.name,))
    else:
        yield from _variant(entry, primaries[0], target)


def _variant(entry: OpEntry, primary: OpEntry, target: Node) -> Iterator[Diagnostic]:
    chained = primary.get("variant_of")
    if chained is not None:
        message = f"`variant_of` names `{primary.name}`, which is a variant itself; name its primary"
        yield Diagnostic(message, entry.at(target), (primary.related(chained, "its own primary"),), ops=(entry.name,))
    for key in ("kernel", "op"):
        own, theirs = entry.get("source", key), primary.get("source", key)
        if own is None or theirs is None or entry.data_of(own) == primary.data_of(theirs):
            continue
        message = f"`source.{key}` is not that of `{primary.name}`, of which this is a variant"
        yield Diagnostic(message, entry.at(own), (primary.related(theirs, "the primary's"),), ops=(entry.name,))
