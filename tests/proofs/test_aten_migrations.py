"""The migrations of the pack aten, observed by torchgen, torch's parser of schemas and g++."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from typing import NamedTuple

import pytest

from opschema_cli.proof import Case, Files, Oracle, judge, windows_lines
from opschema_cli.testing import migrate_files
from opschema_rules.aten import proofs
from opschema_rules.aten.pack import PACK
from tests.proofs.aten_oracle import observe_kernels, observe_large
from tests.rules.aten.oracle import BACKEND, NATIVE
from tests.rules.aten.plots import families, plot, with_backend

pytestmark = pytest.mark.skipif(
    not version("torch").startswith("2.13."), reason="the operators are those of torch 2.13"
)

ORACLES: Mapping[str, Oracle] = {
    proofs.SAME: observe_large,
    proofs.RESTORED: observe_large,
    proofs.KEPT: observe_kernels,
    proofs.DECLARED: observe_kernels,
}

SIN = """\
- func: sin(Tensor self) -> Tensor
  variants: function, method
  dispatch:
    CompositeExplicitAutograd: sin
    SparseCPU, SparseCUDA: sin_sparse

- func: sin_(Tensor(a!) self) -> Tensor(a!)
  variants: function, method
  dispatch:
    CPU, CUDA: sin_

- func: sin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU, CUDA, SparseCPU: sin_out
"""

KERNELS = """\
namespace torch_xla {
at::Tensor AtenXlaType::relu(const at::Tensor& self) { return self; }
at::Tensor & AtenXlaType::relu_(at::Tensor& self) { return self; }
at::Tensor AtenXlaType::narrow_symint(const at::Tensor& self, int64_t dim, c10::SymInt start, c10::SymInt length) {
  return self;
}
}
"""

HEADER = """\
namespace torch_xla {
class AtenXlaType {
 public:
  static at::Tensor relu(const at::Tensor& self);
  static at::Tensor& relu_(at::Tensor& self);
  static at::Tensor narrow_symint(const at::Tensor& self, int64_t dim, c10::SymInt start, c10::SymInt length);
};
}
"""


class Run(NamedTuple):
    """A migration of some files. ``meant`` are files that say the same as its result; none if its input does."""

    name: str
    options: tuple[str, ...]
    files: Files
    meant: Files | None = None


def runs() -> Iterator[Run]:
    """Runs over entries of PyTorch's own, and of a few written for it."""
    chance = random.Random(20261122)
    for number in range(3):
        names = chance.sample(sorted(families()), 3)
        tree = plot(names)
        listed = {**with_backend(names, chance), "xla_native_functions.yaml": ""}
        listed["xla_native_functions.yaml"] = listed.pop(BACKEND)
        yield from _of_entries(tree)
        yield from _of_lists(listed, chance, number)
    others = plot(())  # torchgen writes kernels for the keys that some entry names
    sines = {**others, NATIVE: f"{others[NATIVE]}{SIN}"}
    yield Run("structured-port", ("op=sin", "inherits=TensorIteratorBase"), sines)
    for text in windows_lines(sines):
        yield Run("structured-port", ("op=sin", "inherits=TensorIteratorBase"), text)
    header = {**plot(()), "csrc/type.h": HEADER, "kernels.cpp": KERNELS}
    yield Run("backend-from-header", ("header=csrc/type.h", "backend=XLA"), header)


def _of_entries(tree: Files) -> Iterator[Run]:
    """The files as they were before something was renamed, dropped or listed: they are to become what they are."""
    text = tree[NATIVE]
    key = "CompositeExplicitAutograd"
    older = re.sub(rf"\b{key}\b(?=.*: )", "DefaultBackend", text)
    if older != text:
        yield Run("rename-dispatch-key", ("from=DefaultBackend", f"to={key}"), {**tree, NATIVE: older}, tree)
    boxed = re.sub(r"^(- func: .*)$", r"\1\n  use_c10_dispatcher: full  # boxed", text, flags=re.M)
    yield Run("drop-entry-field", ("field=use_c10_dispatcher",), {**tree, NATIVE: boxed}, tree)
    yield Run("drop-entry-field", ("field=variants", "value=function"), tree, tree)
    listed = re.findall(r"^- func: ([\w.]+)\((?:.(?!^- func))*?^  autogen: ", text, re.M | re.S)
    without = re.sub(r"^  autogen: .*\n", "", text, flags=re.M)
    yield Run("add-autogen", (f"ops={','.join(listed)}",), {**tree, NATIVE: without}, tree)


def _of_lists(files: Files, chance: random.Random, number: int) -> Iterator[Run]:
    path = "xla_native_functions.yaml"
    lines = files[path].splitlines(keepends=True)
    at = lines.index("supported:\n") + 1 if "supported:\n" in lines else len(lines)
    end = next((n for n in range(at, len(lines)) if not lines[n].startswith("  - ")), len(lines))
    items = lines[at:end]
    shuffled = chance.sample(items, len(items))
    yield Run("sort-lists", (), {**files, path: "".join([*lines[:at], *shuffled, *lines[end:]])}, files)
    if items:
        name = items[number % len(items)].strip(" -\n")
        yield Run("move-supported", (f"ops={name}", "from=supported", "to=full_codegen"), files)


def migrated(run: Run) -> Case:
    """The case of a run, which has to change something."""
    after = migrate_files(PACK, run.name, run.files, run.options).files
    assert after != run.files or run.files == run.meant, f"{run.name} {run.options}: nothing is changed"
    if run.name == "backend-from-header":  # torchgen makes a header of the YAML, which takes its place
        after = {path: text for path, text in after.items() if path != "csrc/type.h"}
    return Case(f"{run.name} {' '.join(run.options)}", run.files, after, cures=False)


PROOF = {record.name: record.proof for record in PACK.all_migrations()}


@cache
def complaints() -> Mapping[str, list[str]]:
    """The faults in the runs of each migration. One process observes everything for one oracle."""
    found: dict[str, list[str]] = {name: [] for name in PROOF}
    for oracle in dict.fromkeys(ORACLES.values()):
        for run, line in _observed([run for run in runs() if ORACLES[PROOF[run.name]] is oracle], oracle):
            found[run.name].append(f"{' '.join(run.options)}: {line}")
    return found


def _observed(given: list[Run], oracle: Oracle) -> Iterator[tuple[Run, str]]:
    cases = [migrated(run) for run in given]
    pairs = zip(given, cases, strict=True)
    seen = oracle([files for run, case in pairs for files in (case.before, case.after, run.meant or {})])
    for run, before, after, meant in zip(given, seen[::3], seen[1::3], seen[2::3], strict=True):
        cures = before["emission"].level != "right"
        yield from ((run, line) for line in judge(before, after, cures=cures))
        if run.meant is not None and meant["emission"] != after["emission"]:
            yield run, f"{meant['emission']} is meant, and it becomes {after['emission']}"


@pytest.mark.parametrize("name", sorted(PROOF))
def test_the_rewrites_are_proved(name: str) -> None:
    assert name in {run.name for run in runs()}
    assert complaints()[name] == []


@pytest.mark.parametrize("name", sorted(PROOF))
def test_each_migration_names_its_proof(name: str) -> None:
    assert PROOF[name] in ORACLES
