"""All that a pack imports: one module, from which each name is imported when it is first used.

>>> from opschema_cli.api import Diagnostic, Loaded, Pack, rule
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from opschema_cli.errors import OpschemaError as OpschemaError
    from opschema_cli.lint.diagnostic import CPP as CPP
    from opschema_cli.lint.diagnostic import Diagnostic as Diagnostic
    from opschema_cli.lint.diagnostic import FileEdit as FileEdit
    from opschema_cli.lint.diagnostic import Fix as Fix
    from opschema_cli.lint.diagnostic import Missing as Missing
    from opschema_cli.lint.diagnostic import NotUnderstood as NotUnderstood
    from opschema_cli.lint.diagnostic import Related as Related
    from opschema_cli.lint.diagnostic import Severity as Severity
    from opschema_cli.lint.lazy_pack import CATALOGUE as CATALOGUE
    from opschema_cli.lint.lazy_pack import LazyPack as LazyPack
    from opschema_cli.lint.lazy_pack import catalogue_text as catalogue_text
    from opschema_cli.lint.loaded import Entry as Entry
    from opschema_cli.lint.loaded import Loaded as Loaded
    from opschema_cli.lint.pack import Description as Description
    from opschema_cli.lint.pack import Fact as Fact
    from opschema_cli.lint.pack import Pack as Pack
    from opschema_cli.lint.pack import Speed as Speed
    from opschema_cli.lint.pack import collect_migrations as collect_migrations
    from opschema_cli.lint.pack import collect_rules as collect_rules
    from opschema_cli.lint.rule import Part as Part
    from opschema_cli.lint.rule import rule as rule
    from opschema_cli.lint.unread import Sighting as Sighting
    from opschema_cli.migrate.draft import Draft as Draft
    from opschema_cli.migrate.mentions import mentions as mentions
    from opschema_cli.migrate.migration import Note as Note
    from opschema_cli.migrate.migration import Scope as Scope
    from opschema_cli.migrate.migration import Site as Site
    from opschema_cli.migrate.migration import migration as migration
    from opschema_cli.operators.model import Argument as Argument
    from opschema_cli.operators.model import Declaration as Declaration
    from opschema_cli.operators.model import Implementation as Implementation
    from opschema_cli.operators.model import Operator as Operator
    from opschema_cli.operators.model import Signature as Signature
    from opschema_cli.project import Project as Project
    from opschema_cli.readings import Reading as Reading
    from opschema_cli.source.program import Program as Program
    from opschema_cli.source.python import Class as Class
    from opschema_cli.source.python import Expr as Expr
    from opschema_cli.source.python import Function as Function
    from opschema_cli.source.python import Param as Param
    from opschema_cli.source.python import PythonFile as PythonFile
    from opschema_cli.source.text import Edit as Edit
    from opschema_cli.source.text import Place as Place
    from opschema_cli.source.text import Source as Source
    from opschema_cli.source.text import Span as Span
    from opschema_cli.source.yaml import Node as Node
    from opschema_cli.source.yaml import YamlFile as YamlFile
    from opschema_cli.source.yaml_edit import insert_item as insert_item
    from opschema_cli.source.yaml_edit import insert_key as insert_key
    from opschema_cli.source.yaml_edit import remove_item as remove_item
    from opschema_cli.source.yaml_edit import remove_key as remove_key
    from opschema_cli.source.yaml_edit import rename_key as rename_key
    from opschema_cli.source.yaml_edit import set_value as set_value

_NAMES = {
    "errors": ("OpschemaError",),
    "lint.diagnostic": (*("CPP", "Diagnostic", "FileEdit", "Fix", "Missing", "NotUnderstood", "Related", "Severity"),),
    "lint.lazy_pack": ("CATALOGUE", "LazyPack", "catalogue_text"),
    "lint.loaded": ("Entry", "Loaded"),
    "lint.pack": ("Description", "Fact", "Pack", "Speed", "collect_migrations", "collect_rules"),
    "lint.rule": ("Part", "rule"),
    "lint.unread": ("Sighting",),
    "migrate.draft": ("Draft",),
    "migrate.mentions": ("mentions",),
    "migrate.migration": ("Note", "Scope", "Site", "migration"),
    "operators.model": ("Argument", "Declaration", "Implementation", "Operator", "Signature"),
    "project": ("Project",),
    "readings": ("Reading",),
    "source.program": ("Program",),
    "source.python": ("Class", "Expr", "Function", "Param", "PythonFile"),
    "source.text": ("Edit", "Place", "Source", "Span"),
    "source.yaml": ("Node", "YamlFile"),
    "source.yaml_edit": ("insert_item", "insert_key", "remove_item", "remove_key", "rename_key", "set_value"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


class Options(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """Base of the options of packs, rules and migrations: fields with types and defaults; ``max_rank`` is set as ``max-rank``."""


__all__ = ["Options", *_MODULES]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"opschema_cli.{_MODULES[name]}"), name)
    globals()[name] = found
    return found
