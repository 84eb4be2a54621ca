"""Finds out which contract the runtime of a tree has, from the runtime's own sources where the tree has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from opschema_cli.project import Project
from opschema_cli.workspace import ReadError
from opschema_rules.pypto.head import PyptoOptions
from opschema_rules.pypto.model import Contract, SignatureRule
from opschema_rules.pypto.submodules import runtime_files, submodules

_LIMIT = re.compile(r"\b(CORE|CHIP)_MAX_(TENSOR|SCALAR)_ARGS\s*=\s*(\d+)")
_LIMITS = re.compile(r"(?:^|/)arg_direction\.h\Z")
_EXECUTOR = re.compile(r"(?:^|/)aicpu_executor\.cpp\Z")
_DUMP = re.compile(r"(?:^|/)\w*dump_aicpu\.h\Z")
_RUNTIME = re.compile(r"(?:arg_direction\.h|aicpu_executor\.cpp|dump_aicpu\.h)\Z")


def find_contract(project: Project, options: PyptoOptions) -> Contract:
    """What the configuration, or else the tree's own runtime, demands; the newest contract where nothing tells."""
    found = _of_tree(project)
    if options.signatures:
        found = replace(found, rule=_rule(options.signatures), source="the configuration", certain=True, dumps=True)
    tensors, scalars = options.max_tensors or found.core_tensors, options.max_scalars or found.core_scalars
    return replace(found, core_tensors=tensors, core_scalars=scalars)


def _rule(word: str) -> SignatureRule:
    return "sum" if word == "sum" else "arg_index" if word == "arg-index" else "widest"


def _of_tree(project: Project) -> Contract:
    """What the runtime demands that is part of the tree, else the one that is checked out in a submodule of it."""
    own = _of_files(project, project.workspace.files)
    if own != Contract():
        return own
    found = _of_files(project, runtime_files(project))
    missing = [item.path for item in submodules(project) if item.is_simpler] if found == Contract() else []
    return replace(found, source=f"{found.source}; `{missing[0]}` is not checked out") if missing else found


def _of_files(project: Project, paths: Iterable[str]) -> Contract:
    known = [path for path in paths if _RUNTIME.search(path)]
    executors = [text for _, text in _texts(project, known, _EXECUTOR)]
    found = Contract(names_entry=not executors or any("ORCH_ENTRY_SYMBOL" in text for text in executors))
    for path, text in _texts(project, known, _LIMITS):
        limits = {(where, what): int(number) for where, what, number in _LIMIT.findall(text)}
        if not limits:
            continue
        found = replace(
            found,
            core_tensors=limits.get(("CORE", "TENSOR"), 0),
            core_scalars=limits.get(("CORE", "SCALAR"), 0),
            chip_tensors=limits.get(("CHIP", "TENSOR"), 0),
            chip_scalars=limits.get(("CHIP", "SCALAR"), 0),
            source=path,
            dumps=False,
        )
    rules = {rule: path for path, text in _texts(project, known, _DUMP) if (rule := _of_dump(text))}
    if len(rules) != 1:
        return replace(found, dumps=found.dumps or bool(rules))
    (rule, path), *_ = rules.items()
    return replace(found, rule=rule, source=path, certain=True, dumps=True)


def _of_dump(text: str) -> SignatureRule | None:
    """How the dump of arguments in the runtime reads signatures."""
    if ".arg_index(" in text:
        return "arg_index"
    if "widest" in text:
        return "widest"
    return "sum" if "sig_count()" in text else None


def _texts(project: Project, paths: Iterable[str], name: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    for path in paths:
        if name.search(path):
            try:
                yield path, project.workspace.data(path).decode("utf-8", "replace")
            except ReadError:
                continue
