"""Uses of PyTorch's own operators by a tree, which ``opschema upgrade`` compares between two releases."""

from __future__ import annotations

from typing import Literal

import msgspec

from opschema_cli.source.text import Place


class TorchUse(msgspec.Struct, frozen=True):
    """A place that depends on an operator of PyTorch, whose ``name`` has the overload and no namespace: ``add.Tensor``.

    ``kernel`` is the language of the kernel that takes the operator's
    arguments, empty without one; ``place`` is where it is written, if that is known, and ``listed`` where the operator is named,
    if that is elsewhere. ``symint`` says that the kernel takes ``c10::SymInt``. ``schema`` is the copy of the schema that stands
    there.
    """

    name: str
    place: Place
    kernel: Literal["", "c++", "python"] = ""
    symint: bool = False
    schema: str = ""
    listed: Place | None = None
