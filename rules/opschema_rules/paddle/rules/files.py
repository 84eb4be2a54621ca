"""Operators that are declared in two files, and other files that name operators."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.rule import rule
from opschema_cli.sequences import grouped
from opschema_cli.source.pieces import Piece
from opschema_cli.source.yaml import Node
from opschema_cli.suggestions import did_you_mean, nearest, suggested
from opschema_rules.aten.entry import string
from opschema_rules.aten.findings import found, unknown
from opschema_rules.aten.kinds import items_of
from opschema_rules.paddle.detection import home
from opschema_rules.paddle.model import OpEntry, OtherFile, OtherItem, Tree

_PARTS = {"inputs": "input", "attrs": "attribute", "outputs": "output"}
_TYPES = {"scalar": "Scalar", "int_array": "IntArray"}
_ACTIONS = [
    "fix_bug",
    *(f"{verb}_{part}" for verb in ("add", "delete", "modify") for part in ("input", "output", "attr")),
]


@rule("PDL401", "declared-again")
def declared_again(tree: Tree) -> Iterator[Diagnostic]:
    """An operator that is declared twice.

    The generators write one function and one class for each entry, once from `ops.yaml`, `fused_ops.yaml` and
    `inconsistent/dygraph_*.yaml` together, and once from `ops.yaml` and `inconsistent/static_*.yaml` together. If two entries have
    the same name, the generated code does not compile, or the second entry replaces the first. Sparse operators and operators of
    the old static graph have files of their own, in which a name may be declared again.

    Bad:

    ```yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
    ```

    ```yaml inconsistent/dygraph_ops.yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
    ```

    Good:

    ```yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
    ```

    ```yaml sparse_ops.yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half_coo}
    ```
    """
    first: dict[tuple[str, str, str], OpEntry] = {}
    for entry in tree.entries:
        group, part = entry.listed.group, entry.listed.part
        both = group in ("", "fused") and part not in ("dygraph", "legacy")
        keys = [(home(entry.file.path), one, entry.name) for one in (("", "pir") if both else (group,))]
        before = [first.setdefault(key, entry) for key in keys if entry.name]
        other = next((item for item in before if item is not entry), None)
        if other is not None:
            message = f"`{entry.name}` is already declared; the generated code would define it twice"
            yield found(entry, entry.place, message, other.related(other.place, "the first entry"))


@rule("PDL402", "unknown-compat-name", severity="warning")
def unknown_compat_name(other: OtherFile) -> Iterator[Diagnostic]:
    """A name in `op_compat.yaml` that does not exist in the operator YAML.

    The file maps names of operators, arguments and outputs to those of the old static graph. The generators ignore a name that no
    entry has, and a name in the wrong part: an attribute that is listed under `inputs` keeps its name in the operator, but its
    kernel asks for the mapped name. The new static graph ignores a second entry for an operator. Names that `extra` adds and
    operators that are written by hand are not reported.

    Bad:

    ```yaml
    - op : half
      args : (Tensor x, int axis)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
    ```

    ```yaml op_compat.yaml
    - op : half
      inputs : {x : X, axis : dim}
      outputs : {output : Out}
      backward : half_grad
    ```

    Good:

    ```yaml
    - op : half_
      args : (Tensor x, int axis)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
    ```

    ```yaml op_compat.yaml
    - op : half (halve)
      inputs : {x : X}
      attrs : {axis : dim, scale : Scale}
      outputs : {out : Out}
      extra : {attrs : [float Scale = 1.0f]}
    - op : while
      extra : {attrs : [bool is_test = false]}
    ```
    """
    seen: dict[str, Node] = {}
    items = [item for item in other.items if item.name] if other.kind == "compat" else []
    mapped = {item.name for item in items}
    for item in items:
        node = item.get("op") or item.node
        before = seen.setdefault(item.name, node)
        if before is not node:
            message = f"`{item.name}` has two entries; the new static graph reads only the first"
            yield found(item, node, message, item.related(before, "the first entry"))
        entries = other.tree.by_name.get(item.name.rstrip("_"), [])
        if entries:
            yield from _compat_names(other.tree, item, entries)
            continue
        free = (one for one in other.tree.by_name if one not in mapped and f"{one}_" not in mapped)
        near = nearest(item.name, free, 0.85)
        if near is not None:
            yield found(item, node, f"no entry declares `{item.name}`{did_you_mean(near)}")


def _compat_names(tree: Tree, item: OtherItem, entries: list[OpEntry]) -> Iterator[Diagnostic]:
    everything = list(entries)
    for name, place in item.names("backward"):
        own = name.partition("(")[0].strip()
        gradients = tree.by_name.get(own.rstrip("_"), [])
        everything += gradients
        if own and not gradients:
            known = [text for one in entries if (text := one.text("backward"))]
            yield unknown(item, place, own, known, f"no entry declares the gradient `{own}`")
    signatures = [signature for entry in everything for signature in (entry.signature, entry.forward)]
    names = {part: {one.name for each in signatures for one in each.parts[what]} for part, what in _PARTS.items()}
    for part, what in _PARTS.items():
        for key in _unmapped(item, part, names[part]):
            where = next((one for one in _PARTS if key.value in names[one]), None)
            near = nearest(key.value, names[part] - {one.value for one in item.keys(part)})
            message = f"`{item.name}` has no {what} `{key.value}`"
            message += f"; move it to `{where}`" if where is not None else did_you_mean(near)
            yield found(item, key, message, entries[0].declared())
    attributes = grouped((arg.name, arg.type) for each in signatures for arg in each.attributes)
    for part, type_ in _TYPES.items():
        for key in item.keys(part):
            types = attributes.get(key.value, [])
            if not types:
                message = f"`{item.name}` has no attribute `{key.value}`"
                yield unknown(item, key, key.value, attributes, message, entries[0].declared())
            elif not any(one.startswith(type_) for one in types):
                message = f"`{part}` lists `{key.value}`, which is `{types[0]}` in `{item.name}`; the generator stops"
                yield found(item, key, message, entries[0].declared())


def _unmapped(item: OtherItem, part: str, known: set[str]) -> Iterator[Node]:
    """Yield the keys of a part that name nothing, without those added by ``extra``."""
    extra = [node for field in _PARTS if (node := item.within("extra", field)) is not None]
    written = [one.value.partition("=")[0].split() for node in extra for one in node.items]
    added = {words[-1] for words in written if words}
    node = item.get(part)
    for key, value in node.pairs() if node is not None else ():
        if key.value not in known and not {key.value, item.file.document.follow(value).value} & added:
            yield key


@rule("PDL403", "operator-version", severity="warning")
def operator_version(other: OtherFile) -> Iterator[Diagnostic]:
    """A version in `op_version.yaml` that the generator ignores or cannot process.

    The generator looks up the versions of an operator by the name of its entry, and ignores those of unknown operators. Use the new
    name (`maximum`, not `elementwise_max`). An action is one of `add_attr`, `add_input` and so on, with a `comment`; `add_attr` and
    `modify_attr` also need a `default`.

    Bad:

    ```yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
    ```

    ```yaml op_version.yaml
    - op : halve
      version :
        - checkpoint : Add an attribute.
          action :
            - add_attr : axis
              comment : The axis.
              default : "-1"
    - op : half
      version :
        - checkpoint : Add an attribute.
          action :
            - add_attr : axis
              comment : The axis.
    ```

    Good:

    ```yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
    ```

    ```yaml op_version.yaml
    - op : half
      version :
        - checkpoint : Add an attribute.
          action :
            - add_attr : axis
              comment : The axis.
              default : "-1"
    ```
    """
    for item in other.items if other.kind == "version" else ():
        node = item.get("op")
        if node is None or not item.name:
            continue
        if item.name.rstrip("_") not in other.tree.by_name:
            near = other.tree.new_names.get(item.name) or nearest(item.name, other.tree.by_name, 0.9)
            yield found(item, node, f"no entry declares `{item.name}`, so its versions are ignored{did_you_mean(near)}")
        for step in _mappings(item, item.get("version")):
            for action in _mappings(item, step.get("action")):
                keys = {key.value: key for key, _ in action.pairs()}
                kind = next((key for name, key in keys.items() if name in _ACTIONS), None)
                if kind is None and keys:
                    near = next((one for one in (nearest(key, _ACTIONS) for key in sorted(keys)) if one), None)
                    message = f"this action of `{item.name}` has no known kind, such as `add_attr`, and does nothing"
                    yield found(item, action.items[0], f"{message}{did_you_mean(near)}")
                elif kind is not None and kind.value in ("add_attr", "modify_attr") and "default" not in keys:
                    yield found(item, kind, f"`{kind.value}` of `{item.name}` has no `default`")


def _mappings(item: OtherItem, node: Node | None) -> Iterator[Node]:
    follow = item.file.document.follow
    items = map(follow, follow(node).items if node is not None else ())
    return (one for one in items if one.is_mapping)


@rule("PDL404", "unknown-listed-name", severity="warning")
def unknown_listed_name(other: OtherFile) -> Iterator[Diagnostic]:
    """An unknown operator or argument in a list beside the operator YAML.

    `legacy/ops_exclude.yaml` and `backward_exclude.yaml` list operators that the old static graph skips. `onednn_ops_extra.yaml`
    lists operators with extra attributes for oneDNN, and their inputs whose layout changes. `python_api_info.yaml` gives other
    names for arguments in Python. An unknown name has no effect, or stops the build.

    Bad:

    ```yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
    ```

    ```yaml legacy/ops_exclude.yaml
    - halve
    ```

    ```yaml python_api_info.yaml
    - op : half
      name : [paddle.half]
      args_alias : {y : [input]}
    ```

    Good:

    ```yaml
    - op : half_
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
    ```

    ```yaml legacy/ops_exclude.yaml
    - half
    ```

    ```yaml python_api_info.yaml
    - op : half_
      name : [paddle.half]
      args_alias : {x : [input], use_default_mapping : True}
    ```
    """
    by_name = other.tree.by_name
    for node in items_of(other.file) if other.kind == "exclude" else ():
        if (name := string(node)) is not None and name.rstrip("_") not in by_name:
            message = f"no entry declares `{name}`{suggested(name, by_name, 0.85)}"
            yield Diagnostic(message, Place(other.file.path, node.span), ops=(name,))
    for item in other.items if other.kind in ("onednn", "python") else ():
        entries = by_name.get(item.name.rstrip("_"), [])
        if not entries and item.name:
            message = f"no entry declares `{item.name}`"
            yield unknown(item, item.get("op") or item.node, item.name, by_name, message, cutoff=0.85)
        inputs = {arg.name for entry in entries for arg in entry.signature.inputs}
        yield from _unknown_arguments(item, item.names("data_format_tensors"), entries, inputs)
        keys = [key for key in item.keys("args_alias") if key.value != "use_default_mapping"]
        known = {arg.name for entry in entries for arg in entry.signature.args}
        yield from _unknown_arguments(item, [Piece(key.value, key.span) for key in keys], entries, known)


def _unknown_arguments(
    item: OtherItem, named: list[Piece], entries: list[OpEntry], known: set[str]
) -> Iterator[Diagnostic]:
    for name, span in named if entries else ():
        if name not in known:
            yield unknown(item, span, name, known, f"`{item.name}` has no argument `{name}`", entries[0].declared())
