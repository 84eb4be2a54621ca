"""Finds the contract of a tree's runtime, from the runtime's own sources or else from the pinned commit."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from msgspec.structs import replace

from opschema_cli.project import Project
from opschema_cli.workspace import ReadError
from opschema_rules.pypto.contract_table import known_contract, without_sources
from opschema_rules.pypto.detection import PyptoOptions
from opschema_rules.pypto.model import NEWEST, Contract, SignatureRule
from opschema_rules.pypto.runtime_sources import TELLING, contract_of
from opschema_rules.pypto.submodules import is_checked_out, runtime_files, submodules


def find_contract(project: Project, options: PyptoOptions) -> Contract:
    """Return the configured contract, or that of the tree's own runtime; the newest if nothing shows one."""
    found = _of_tree(project)
    if options.signatures:
        found = replace(found, rule=_rule(options.signatures), source="the configuration", certain=True, dumps=True)
    given = [bool(options.max_tensors), bool(options.max_scalars)]
    told = [*(["the configuration"] if any(given) else []), *([] if all(given) else [found.limits_source])]
    return replace(
        found,
        core_tensors=options.max_tensors or found.core_tensors,
        core_scalars=options.max_scalars or found.core_scalars,
        limits_source=", ".join(told),
    )


def _rule(word: str) -> SignatureRule:
    return "sum" if word == "sum" else "arg_index" if word == "arg-index" else "widest"


def _of_tree(project: Project) -> Contract:
    """Return the contract of a runtime in the tree; otherwise of one checked out in a submodule, since programs are built with
    it; otherwise of the commit that a submodule is pinned to.
    """
    own = contract_of(_texts(project, project.workspace.files))
    if own != Contract():
        return own
    found = contract_of(_texts(project, runtime_files(project)))
    return found if found != Contract() else _of_pins(project)


def _of_pins(project: Project) -> Contract:
    """Return the contract of the commit that the tree pins its runtime to; the newest, with the reason, if nothing shows one."""
    found = [_of_pin(project, module.path) for module in submodules(project) if module.is_simpler]
    if len({without_sources(contract) for contract in found}) > 1:
        return Contract(source=f"{NEWEST}; the tree has several: {', '.join(item.source for item in found)}")
    return found[0] if found else Contract()


def _of_pin(project: Project, path: str) -> Contract:
    if is_checked_out(project, path):
        return Contract(source=f"{NEWEST}; `{path}` does not say")
    pin = project.workspace.submodule_pin(path)
    if pin is None:
        return Contract(source=f"{NEWEST}; `{path}` is not checked out")
    name, found = f"simpler `{pin[:8]}`", known_contract(pin)
    if found is None:
        return Contract(
            source=f"{NEWEST}; `{path}` is not checked out, and {name}, at which it is pinned, is not known"
        )
    if replace(found, names_entry=True) == Contract():
        return replace(found, source=f"{NEWEST}; {name}, at which `{path}` is pinned, does not say")
    source = f"{name}, at which `{path}` is pinned"
    return replace(found, source=source, limits_source=source)


def _texts(project: Project, paths: Iterable[str]) -> dict[str, str]:
    """Return the texts of those files that may show the contract; unreadable files are left out."""
    found: dict[str, str] = {}
    for path in paths:
        if TELLING.search(path):
            with suppress(ReadError):
                found[path] = project.workspace.data(path).decode("utf-8", "replace")
    return found
