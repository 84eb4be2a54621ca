"""Operators that are declared in two files, and other files that name operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_spans import value_span
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.entry import string
from opschema_rules.paddle.detection import home
from opschema_rules.paddle.grammar import Arg, Name, split
from opschema_rules.paddle.model import OpEntry, OtherFile, Tree

_PARTS = {"inputs": "input", "attrs": "attribute", "outputs": "output"}
_TYPES = {"scalar": "Scalar", "int_array": "IntArray"}
_ACTIONS = [f"{verb}_{what}" for verb in ("add", "delete", "modify") for what in ("input", "output", "attr")] + [
    "fix_bug"
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
        folder, group, part = home(entry.file.path), entry.listed.group, entry.listed.part
        groups = (
            ["", "pir"]
            if group == "" and part not in ("dygraph", "legacy")
            else ["", "pir"]
            if group == "fused"
            else [group]
        )
        before = [first.setdefault((folder, one, entry.name), entry) for one in groups if entry.name]
        other = next((item for item in before if item is not entry), None)
        if other is not None:
            message = f"`{entry.name}` is already declared; the generated code would define it twice"
            yield entry.found(entry.place, message, other.related(other.place, "the first entry"))


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
    items = [item for item in other.items() if item.is_mapping] if other.kind == "compat" else []
    mapped = {_head(other, item) for item in items}
    for item in items:
        name, node = _head(other, item), other.get(item, "op")
        if node is None or not name:
            continue
        before = seen.setdefault(name, node)
        if before is not node:
            related = Related(Place(other.file.path, before.span), "the first entry")
            yield _found(
                other, node, f"`{name}` has two entries; the new static graph reads only the first", name, related
            )
        entries = other.tree.by_name.get(name.rstrip("_"), [])
        if not entries:
            near = nearest(
                name, (one for one in other.tree.by_name if one not in mapped and f"{one}_" not in mapped), 0.85
            )
            if near is not None:
                yield _found(other, node, f"no entry declares `{name}`{did_you_mean(near)}", name)
            continue
        yield from _compat_names(other, item, name, entries)


def _compat_names(other: OtherFile, item: Node, name: str, entries: list[OpEntry]) -> Iterator[Diagnostic]:
    node = other.get(item, "backward")
    everything = list(entries)
    for gradient in split(node.value, 0) if node is not None and node.kind == "scalar" else ():
        own = gradient.text.partition("(")[0].strip()
        found = other.tree.by_name.get(own.rstrip("_"), [])
        everything += found
        if own and not found and node is not None:
            near = nearest(own, [text for one in entries if (text := one.text("backward"))])
            span = value_span(other.file.source.text, node, gradient.span)
            yield _found(other, span, f"no entry declares the gradient `{own}`{did_you_mean(near)}", name)
    names = {part: {one for entry in everything for one in _names(entry, part)} for part in _PARTS}
    for part in _PARTS:
        for key in _unmapped(other, item, part, names[part]):
            where = next((one for one in _PARTS if key.value in names[one]), None)
            near = nearest(key.value, names[part] - {one.value for one in _keys(other, item, part)})
            message = f"`{name}` has no {_PARTS[part]} `{key.value}`"
            message += f"; move it to `{where}`" if where is not None else did_you_mean(near)
            yield _found(other, key, message, name, entries[0].declared())
    attributes: dict[str, list[Arg]] = {}
    for arg in (arg for one in everything for arg in (*one.signature.attributes, *one.forward[1].attributes)):
        attributes.setdefault(arg.name, []).append(arg)
    for part, type_ in _TYPES.items():
        for key in _keys(other, item, part):
            named = attributes.get(key.value, [])
            if not named:
                message = f"`{name}` has no attribute `{key.value}`{did_you_mean(nearest(key.value, attributes))}"
                yield _found(other, key, message, name, entries[0].declared())
            elif not any(arg.type.startswith(type_) for arg in named):
                message = f"`{part}` lists `{key.value}`, which is `{named[0].type}` in `{name}`; the generator stops"
                yield _found(other, key, message, name, entries[0].declared())


def _unmapped(other: OtherFile, item: Node, part: str, known: set[str]) -> Iterator[Node]:
    """The keys of a part that name nothing, without those of what ``extra`` adds."""
    extra = [node for field in _PARTS if (node := other.get(item, "extra", field)) is not None]
    written = [one.value.partition("=")[0].split() for node in extra for one in node.items]
    added = {words[-1] for words in written if words}
    node = other.get(item, part)
    for key, value in node.pairs() if node is not None else ():
        if key.value not in known and not {key.value, other.file.document.follow(value).value} & added:
            yield key


def _keys(other: OtherFile, item: Node, part: str) -> Iterator[Node]:
    node = other.get(item, part)
    return (key for key, _ in node.pairs()) if node is not None else iter(())


def _names(entry: OpEntry, part: str) -> Iterable[str]:
    forward = entry.forward[1]
    if part == "inputs":
        return (arg.name for arg in (*entry.signature.inputs, *forward.inputs))
    if part == "attrs":
        return (arg.name for arg in (*entry.signature.attributes, *forward.attributes))
    return (one.name for one in (*entry.signature.outputs, *forward.outputs))


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
    for item in other.items() if other.kind == "version" else ():
        name, node = _head(other, item), other.get(item, "op")
        if node is None or not name:
            continue
        if name.rstrip("_") not in other.tree.by_name:
            near = other.tree.new_names.get(name) or nearest(name, other.tree.by_name, 0.9)
            yield _found(
                other, node, f"no entry declares `{name}`, so its versions are ignored{did_you_mean(near)}", name
            )
        for step in _items(other, other.get(item, "version")):
            for action in _items(other, other.get(step, "action")):
                keys = {key.value for key, _ in action.pairs()}
                kind = next((key for key, _ in action.pairs() if key.value in _ACTIONS), None)
                if kind is None and action.items:
                    near = next((one for one in (nearest(key, _ACTIONS) for key in sorted(keys)) if one), None)
                    message = f"this action of `{name}` has no known kind, such as `add_attr`, and does nothing"
                    yield _found(other, action.items[0], f"{message}{did_you_mean(near)}", name)
                elif kind is not None and kind.value in ("add_attr", "modify_attr") and "default" not in keys:
                    yield _found(other, kind, f"`{kind.value}` of `{name}` has no `default`", name)


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
    if other.kind not in ("exclude", "onednn", "python"):
        return
    for item in other.items():
        node = item if other.kind == "exclude" else other.get(item, "op")
        name = string(node)
        if node is None or name is None:
            continue
        entries = other.tree.by_name.get(name.rstrip("_"), [])
        if not entries:
            near = nearest(name, other.tree.by_name, 0.85)
            yield _found(other, node, f"no entry declares `{name}`{did_you_mean(near)}", name)
            continue
        tensors = other.get(item, "data_format_tensors")
        inputs = {arg.name for entry in entries for arg in entry.signature.inputs}
        listed = split(tensors.value, 0) if tensors is not None and string(tensors) else ()
        for part in listed:
            if tensors is not None and part.text not in inputs:
                span = value_span(other.file.source.text, tensors, part.span)
                yield _unknown_argument(other, span, part, name, entries, inputs)
        aliases = other.get(item, "args_alias")
        known = {arg.name for entry in entries for arg in entry.signature.args}
        for key, _ in aliases.pairs() if aliases is not None else ():
            if key.value not in known and key.value != "use_default_mapping":
                yield _unknown_argument(other, key.span, Name(key.value, key.span), name, entries, known)


def _unknown_argument(
    other: OtherFile, span: Span, part: Name, name: str, entries: list[OpEntry], known: Iterable[str]
) -> Diagnostic:
    message = f"`{name}` has no argument `{part.text}`{did_you_mean(nearest(part.text, known))}"
    return _found(other, span, message, name, entries[0].declared())


def _items(other: OtherFile, node: Node | None) -> Iterator[Node]:
    items = map(other.file.document.follow, node.items) if node is not None and node.is_sequence else ()
    yield from (item for item in items if item.is_mapping)


def _head(other: OtherFile, item: Node) -> str:
    node = other.get(item, "op") if item.is_mapping else None
    return (string(node) or "").partition("(")[0].strip()


def _found(other: OtherFile, target: Node | Span, message: str, name: str, *related: Related) -> Diagnostic:
    span = target.span if isinstance(target, Node) else target
    return Diagnostic(message, Place(other.file.path, span), related, ops=(name,), severity=Severity.WARNING)
