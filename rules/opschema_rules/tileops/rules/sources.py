"""The files and classes that an entry's ``source`` names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Fix, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.program import ClassRef, Missing
from opschema_cli.source.python import PythonFile
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import set_value
from opschema_cli.suggestions import near_names
from opschema_rules.tileops.drift import names, yaml_fix
from opschema_rules.tileops.model import SOURCE_PATH_KEYS, Manifest, OpEntry
from opschema_rules.tileops.op_keys import misnomer
from opschema_rules.tileops.proofs import ROWS

SAME_NAME = "the file was found by its name alone"


@rule("SRC101", "source-path", fixable="safe", proof=ROWS)
def source_path(manifest: Manifest) -> Iterator[Diagnostic]:
    """A path under `source` does not exist.

    Readers, benchmarks and generators open these files. `op` and `kernel` may be relative to `src/`. If the op's class, or
    a kernel class that `kernel_map` names, is defined in exactly one other file, the fix writes that path; if there is only
    a file with the same name that the entry does not name yet, the fix is unsafe.

    The paths of an entry that is `spec-only` are placeholders until it is implemented. There a missing file is reported,
    as a warning, only if the op's class exists already or the file is found elsewhere.

    Bad, moved:

    ```yaml
    source:
      op: kit/ops/old_place.py
    ```

    Bad:

    ```yaml
    source:
      kernel: [kit/kernels/example.py, kit/kernels/other.py]
    ```

    Good, not implemented yet:

    ```yaml
    status: spec-only
    source:
      op: kit/ops/planned.py
      test: tests/test_planned.py
    ```

    ```python kit/ops/example.py
    ```
    """
    for entry in manifest.entries:
        for key in SOURCE_PATH_KEYS:
            for node, path in entry.source_paths(key):
                if path and manifest.locate(path) is None:
                    yield from _missing_file(entry, key, node, path)


def _missing_file(entry: OpEntry, key: str, node: Node, path: str) -> Iterator[Diagnostic]:
    found = entry.manifest.definitions
    by_class = next((file for name in _classes_of(entry, key) if (file := found.of_class(name))), None)
    # A file of that name that does not define the op's class is another file.
    by_name = key != "op" or not _is_class_name(entry)
    target = by_class or (_not_named(entry, found.of_basename(path)) if by_name else None)
    if target is None and entry.status == "spec-only" and not _has_class(entry):
        return
    target = target or (_not_named(entry, _close_by(entry.manifest, path)) if by_name else None)
    text = f"`source.{key}` names `{path}`, which is not a file"
    fix = None
    if target is not None:
        new = _as_written(entry.manifest, key, path, target)
        nearly = "" if new.rpartition("/")[2] == path.rpartition("/")[2] else "nearly "
        text += f"; `{new}` " + ("defines its class" if by_class else f"has {nearly}that name")
        if all(new != other for _, other in entry.source_paths(key)):
            fix = _new_path(entry, node, new, "" if by_class else SAME_NAME)
    yield Diagnostic(text, entry.at(node), (), fix, (entry.name,), severity=entry.severity)


def _has_class(entry: OpEntry) -> bool:
    """Whether the op's class exists, in the file that `source.op` names or as the only one of that name."""
    return isinstance(entry.op_class, ClassRef) or entry.manifest.definitions.of_class(entry.name) is not None


def _not_named(entry: OpEntry, target: str | None) -> str | None:
    """A file that was found by its name, unless the entry already names it: the missing file is another one."""
    named = (entry.manifest.locate(path) for key in SOURCE_PATH_KEYS for _, path in entry.source_paths(key))
    return target if target is not None and target not in named else None


def _close_by(manifest: Manifest, path: str) -> str | None:
    """The file of nearly that name in the folder that the path names."""
    folder, _, name = path.rpartition("/")
    for top in (folder, f"src/{folder}") if folder else ():
        below = top if manifest.base == "." else f"{manifest.base}/{top}"
        files = [file for file in manifest.project.workspace.under(below) if file.rpartition("/")[0] == below]
        close = near_names(name, [file.rpartition("/")[2] for file in files], 1, 0.9)
        if close:
            return f"{below}/{close[0]}"
    return None


def _classes_of(entry: OpEntry, key: str) -> Iterable[str]:
    """The classes by which a file of that kind is known."""
    if key == "op":
        return [entry.name]
    kernels = entry.data_at("source", "kernel_map") if key == "kernel" else None
    # With several kernels it is not known which of them the missing file held.
    values = list(kernels.values()) if isinstance(kernels, dict) else []
    return [value for value in values if isinstance(value, str)] if len(values) == 1 else []


def _as_written(manifest: Manifest, key: str, old: str, path: str) -> str:
    """A workspace path the way the manifest writes paths of that kind."""
    below = path if manifest.base == "." else path.removeprefix(manifest.base + "/")
    keeps_src = key not in ("op", "kernel") or old.startswith("src/")
    return below if keeps_src else below.removeprefix("src/")


def _new_path(entry: OpEntry, node: Node, path: str, why_unsafe: str) -> Fix | None:
    return yaml_fix(entry, f"write `{path}`", lambda: set_value(entry.file, node, path), why_unsafe)


@rule("SRC102", "op-class", fixable="safe", proof=ROWS)
def op_class(manifest: Manifest) -> Iterator[Diagnostic]:
    """`source.op` names a file that does not define the op's class.

    The class of an op has the name of its entry and is defined in the file that `source.op` names; that is how every tool
    finds it. If exactly one other file defines a class with that name, the fix writes that path. An entry that is
    `spec-only` may have no class yet; it is reported, as a warning, only if another file defines it. `duplicate-op` reports
    entries with the same name, and `op-key-format` an entry that must be renamed.

    Bad:

    ```python
    class ExampleOp(Op):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x
    ```

    Bad, in another file:

    ```yaml
    source:
      op: kit/ops/other.py
    ```

    ```python kit/ops/other.py
    from kit.ops.example import ExampleFwdOp
    ```

    Good, not implemented yet:

    ```yaml
    status: spec-only
    ```

    ```python
    class ExampleOp(Op):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x
    ```
    """
    files: dict[str, list[str]] = {}
    for entry in manifest.entries:
        ref = entry.op_class
        if entry.op_file is None or not isinstance(ref, Missing | ClassRef):
            continue
        if isinstance(ref, ClassRef) and ref.file.path == entry.op_file.path and not entry.unnamed:
            continue
        if manifest.repeats(entry) or misnomer(entry) is not None:
            continue
        if isinstance(ref, Missing) and not files:
            files = _class_files(manifest)
        homes = files.get(entry.name, []) if entry.unnamed else [ref.file.path] if isinstance(ref, ClassRef) else []
        elsewhere = homes[0] if len(homes) == 1 else None
        if elsewhere is not None or (entry.status != "spec-only" and _is_class_name(entry)):
            yield _no_class(entry, entry.op_file, elsewhere)


def _class_files(manifest: Manifest) -> dict[str, list[str]]:
    """The modules of the ops that define each class."""
    found: dict[str, list[str]] = {}
    for file in map(manifest.project.python, manifest.program.package_files):
        for name in file.classes if file is not None else ():
            found.setdefault(name, []).append(file.path if file is not None else "")
    return found


def _is_class_name(entry: OpEntry) -> bool:
    """Whether a key is to be a class: keys of the first layout (``softmax_fwd``) are not."""
    return entry.name != entry.name.lower() or entry.manifest.spec.knows("key-format")


def _no_class(entry: OpEntry, file: PythonFile, elsewhere: str | None) -> Diagnostic:
    node = next(node for node, path in entry.source_paths("op") if entry.manifest.locate(path) == file.path)
    public = [name for name in file.classes if not name.startswith("_")]
    text = f"`{node.value}` defines no class `{entry.name}`"
    fix, related = None, Related(Place(file.path, Span(0, 0)), f"defines {names(public) or 'no class'}")
    spare = [name for name in public if name not in entry.manifest.by_name]
    known = entry.op_class
    close = [known.name] if isinstance(known, ClassRef) else near_names(entry.name, spare, 1)
    if elsewhere is not None:
        new = _as_written(entry.manifest, "op", node.value, elsewhere)
        text += f"; `{new}` does"
        fix = _new_path(entry, node, new, "")
    elif close:
        text += f"; did you mean `{close[0]}`?"
    return Diagnostic(text, entry.at(node), (related,), fix, (entry.name,), severity=entry.severity)


@rule("SRC104", "test-names-op", severity="warning")
def test_names_op(entry: OpEntry) -> Iterator[Diagnostic]:
    """The file that `source.test` names never mentions the op.

    Only the text of the file is searched, so a mention in a comment counts, and so does one in a list that helpers read. An
    op without any mention is tested elsewhere, or not at all. Ops that have no class yet are not reported.

    Bad:

    ```python tests/test_example.py
    def test_another_op():
        assert True
    ```

    Good:

    ```python tests/test_example.py
    import pytest

    from kit.ops import example


    @pytest.mark.parametrize("name", ["ExampleFwdOp"])
    def test_ops(name):
        assert hasattr(example, name)
    ```
    """
    ref = entry.op_class
    if not isinstance(ref, ClassRef):
        return
    words = sorted({entry.name, ref.name})
    for node, path in entry.source_paths("test"):
        found = entry.manifest.locate(path)
        entry.manifest.project.claim(filter(None, [found]))
        source = entry.manifest.project.source(found) if found is not None else None
        if source is not None and not any(_mentions(source.text, word) for word in words):
            text = f"`{path}` never mentions {names(words)}"
            related = (Related(Place(ref.file.path, ref.cls.span), "the class"),)
            yield Diagnostic(text, entry.at(node), related, ops=(entry.name,), severity=Severity.WARNING)


def _mentions(text: str, word: str) -> bool:
    """Whether a text has a word: many times faster than a pattern for each."""
    at = text.find(word)
    while at >= 0:
        around = text[max(0, at - 1) : at] + text[at + len(word) : at + len(word) + 1]
        if not any(char.isalnum() or char == "_" for char in around):
            return True
        at = text.find(word, at + 1)
    return False
