"""Calls of a pack's functions, with checks of what they return."""

from __future__ import annotations

from opschema_cli.authoring import described, refuse
from opschema_cli.lint.lazy_pack import AnyPack
from opschema_cli.lint.loaded import Loaded
from opschema_cli.lint.pack import Pack
from opschema_cli.project import Project


def finds(pack: AnyPack, project: Project, options: object) -> bool:
    """Whether a pack finds something of its kind.

    Raises:
        AuthorError: ``detect`` returns something else than a bool.
    """
    found: object = pack.detect(project, options)
    if not isinstance(found, bool):
        refuse(f"`detect` of the pack `{pack.name}` returned {described(found)}; it returns True or False", pack.detect)
    return found


def loaded_by(pack: Pack, project: Project, options: object, *, counted: bool = True) -> Loaded:
    """The subjects of a pack, with all that :attr:`Loaded.counting` fills in if they are to be ``counted`` now.

    Raises:
        AuthorError: ``load`` returns something else.
    """
    found: object = pack.load(project, options)
    if not isinstance(found, Loaded):
        refuse(f"`load` of the pack `{pack.name}` returned {described(found)}; it returns `Loaded(...)`", pack.load)
    if not isinstance(found.subjects, list):
        refuse(f"`load` of the pack `{pack.name}`: `subjects` is {described(found.subjects)}; it is a list", pack.load)
    if counted:
        found.count()
    return found
