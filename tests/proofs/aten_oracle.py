"""What torchgen, torch's own parser of schemas and g++ make of a tree of torchgen's files.

Probes and their levels:

- ``emission``: all that torchgen writes about the tree. *Refused* where torchgen stops, where `torch._C.parse_schema` cannot
  read a schema that it registers, where the declarations of the kernels or the formulas of derivatives do not compile, or where the
  C++ files of a backend do not define what its header declares. *Wrong* where nothing that is written depends on a value or
  on an item of a list (:mod:`tests.proofs.aten_silence`). Else *right*; the result is a digest of every text.
- ``tags``: torchgen's reading of tags.yaml by itself, whose examples have not all the tags that the entries use.
- ``entry N``: torchgen's reading of one entry of native_functions.yaml by itself, so that a fix of one of several broken
  entries is seen.

Run as a script it reads workspaces (JSON, texts by path) from stdin and answers a line each.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import torch
import yaml
from torchgen import gen, gen_lazy_tensor
from torchgen.model import Location, NativeFunction
from torchgen.yaml_utils import YamlLoader

from opschema_cli.proof import Files, Observation, Seen
from tests.proofs import aten_cpp, aten_silence
from tests.proofs.records import ask
from tests.rules.aten import oracle
from tests.rules.aten.oracle import BACKEND, DEPRECATED, DERIVATIVES, NATIVE, TAGS, Refusal

NAMES = (NATIVE, TAGS, DERIVATIVES, DEPRECATED, BACKEND)


def observe(workspaces: Sequence[Files]) -> list[Observation]:
    """The oracle, in a process of its own; see :data:`opschema_cli.proof.Oracle`."""
    return _observe(workspaces, SILENCE)


def observe_kernels(workspaces: Sequence[Files]) -> list[Observation]:
    """What stays where operators get other kernels: in place of a digest of all that is written there are probes.

    - ``NAME``: the operator is registered; the result is its schema with its tags.
    - ``NAME on KEY``: a kernel is registered for a dispatch key. A kernel for ``CompositeExplicitAutogradNonFunctional`` counts
      as one for ``CompositeExplicitAutograd``: backends that write an out kernel take it instead.
    - ``NAME under LIST``: the code generator for lazy backends reads an operator in a list.
    """
    return _observe(workspaces, KERNELS)


def observe_large(workspaces: Sequence[Files]) -> list[Observation]:
    """The same without the search for values that have no effect, which takes large trees minutes."""
    return _observe(workspaces, "")


SILENCE, KERNELS = "--silence", "--kernels"


def _observe(workspaces: Sequence[Files], option: str) -> list[Observation]:
    return ask("tests.proofs.aten_oracle", workspaces, *filter(None, [option]))


# --- in the process of its own


def examine(workspaces: Sequence[Files], option: str) -> list[dict[str, Seen]]:
    """The outcomes of some workspaces; their C++ is compiled together."""
    trees = [torchgen_files(files) for files in workspaces]
    written = [oracle.emission(tree) for tree in trees]
    complaints = _compiled(workspaces, [texts if not isinstance(texts, Refusal) else None for texts in written], option)
    found = []
    for tree, texts, complaint in zip(trees, written, complaints, strict=True):
        emission = _emission(tree, texts, complaint, silence=option == SILENCE)
        if option != KERNELS:
            found.append({"emission": emission, **dict(_entries(tree)), **dict(_tags(tree))})
        elif isinstance(texts, Refusal) or emission.level == "refused":
            found.append({"emission": emission})
        else:
            found.append({"emission": Seen("right"), **dict(_registered(texts)), **dict(_listed(tree))})
    return found


def _compiled(workspaces: Sequence[Files], written: Sequence[Mapping[str, str] | None], option: str) -> list[str]:
    """The errors of g++ in the kernels, and in the formulas of those that have derivatives."""
    kernels = [
        "" if texts is None else aten_cpp.unit(texts, sources(files))
        for files, texts in zip(workspaces, written, strict=True)
    ]
    formulas = [
        aten_cpp.formulas(texts) if texts is not None and DERIVATIVES in files and option == SILENCE else ""
        for files, texts in zip(workspaces, written, strict=True)
    ]
    pairs = zip(
        aten_cpp.complaints(kernels, aten_cpp.DECLARATIONS),
        aten_cpp.complaints(formulas, aten_cpp.FORMULAS),
        strict=True,
    )
    return [one or other for one, other in pairs]


def torchgen_files(files: Files) -> dict[str, str]:
    """The files that torchgen reads, under the names that it is given here."""
    found: dict[str, str] = {}
    for path, text in files.items():
        name = path.rpartition("/")[2]
        name = BACKEND if name.endswith("_native_functions.yaml") else name
        if name in NAMES:
            found[name] = text
    return found


def sources(files: Files) -> str:
    """The C++ of a workspace."""
    return "\n".join(text for path, text in sorted(files.items()) if path.endswith((".h", ".cpp")))


def _emission(tree: Mapping[str, str], texts: Refusal | Mapping[str, str], complaint: str, *, silence: bool) -> Seen:
    if isinstance(texts, Refusal):
        return Seen("refused", f"torchgen: {texts.phase}: {texts.message}"[:300])
    if unread := _unreadable(texts):
        return Seen("refused", f"torch: {unread}")
    if complaint:
        return Seen("refused", f"g++: {complaint}")
    result = digest(texts)
    silent = next(aten_silence.unread_values(tree, result, _outcome), "") if silence else ""
    return Seen("wrong", f"nothing depends on {silent}", result) if silent else Seen("right", result=result)


def _outcome(tree: Mapping[str, str]) -> str:
    texts = oracle.emission(tree)
    return "" if isinstance(texts, Refusal) else digest(texts)


def digest(texts: Mapping[str, str]) -> str:
    """Identifies all that torchgen writes, but for the space between words and signs."""
    data = "\0".join(name + "\0" + "".join(_SPACE.split(text)) for name, text in sorted(texts.items()))
    return hashlib.sha256(data.encode()).hexdigest()[:16]


_SPACE = re.compile(r"\s*([^\w\s])\s*")


def _unreadable(texts: Mapping[str, str]) -> str:
    """Why torch cannot read a schema that is registered."""
    for line in texts.get(_SCHEMAS, "").splitlines():
        if line.startswith('m.def("'):
            schema = line.removeprefix('m.def("').rpartition('"')[0]
            try:
                torch._C.parse_schema(schema)
            except RuntimeError as error:
                return " ".join(str(error).split())[:200]
    return ""


def _registered(texts: Mapping[str, str]) -> Iterator[tuple[str, Seen]]:
    """The operators and the kernels that are registered."""
    schemas = texts.get(_SCHEMAS, "")
    tags = dict(_TAGS.findall(schemas))
    for schema, given in _SCHEMA.findall(schemas):
        yield schema.partition("(")[0], Seen("right", result=f"{schema} {tags.get(given, given)}")
    for name, text in texts.items():
        key = _REGISTER.match(name)
        for operator in _KERNEL.findall(text) if key is not None else ():
            yield f"{operator} on {key[1].removesuffix('NonFunctional')}", Seen("right")


_SCHEMAS = "RegisterSchema.cpp aten_schema_registrations"
_TAGS = re.compile(r"(tags_\d+) = \{(.*)\};")
_SCHEMA = re.compile(r'^m\.def\("(.*)", (.*)\);$', re.M)
_REGISTER = re.compile(r"Register(\w+?)(?:Everything)?\.cpp dispatch_definitions")
_KERNEL = re.compile(r'm\.impl\("([^"]+)"')


def _listed(tree: Mapping[str, str]) -> Iterator[tuple[str, Seen]]:
    """The data that the generator for lazy backends reads from a backend's file."""
    if BACKEND not in tree:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, BACKEND)
        path.write_text(tree[BACKEND], encoding="utf-8", newline="")
        full_codegen, _, ir_gen = gen_lazy_tensor.parse_native_functions_keys(str(path), ())
    for section, names in (("full_codegen", full_codegen), ("ir_gen", ir_gen)):
        yield from ((f"{name} under {section}", Seen("right")) for name in names)


def _entries(tree: Mapping[str, str]) -> Iterator[tuple[str, Seen]]:
    """Each entry of native_functions.yaml by itself."""
    try:
        entries = yaml.load(tree.get(NATIVE, ""), Loader=YamlLoader) or ()
        tags = {item["tag"] for item in yaml.load(tree.get(TAGS, "[]"), Loader=YamlLoader)}
    except Exception:
        return
    for number, entry in enumerate(entries if isinstance(entries, list) else (), 1):
        yield f"entry {number}", _entry(entry, tags)


def _tags(tree: Mapping[str, str]) -> Iterator[tuple[str, Seen]]:
    try:
        names = gen.parse_tags_yaml_struct(yaml.load(tree.get(TAGS, "[]"), Loader=gen.LineLoader), TAGS)
    except Exception as error:
        yield "tags", Seen("refused", f"{type(error).__name__}: {error}"[:300])
    else:
        yield "tags", Seen("right", result=", ".join(sorted(names)))


def _entry(entry: object, tags: set[str]) -> Seen:
    assert isinstance(entry, dict)
    try:
        function, _ = NativeFunction.from_yaml({**entry, "__line__": 0}, Location(NATIVE, 0), tags)
        torch._C.parse_schema(str(function.func).rpartition("::")[2])
    except Exception as error:  # whatever torchgen raises is its refusal
        return Seen("refused", f"{type(error).__name__}: {error}"[:300])
    return Seen("right")


if __name__ == "__main__":
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=list[dict[str, str]])
    for outcome in examine(given, sys.argv[1] if sys.argv[1:] else ""):
        sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
