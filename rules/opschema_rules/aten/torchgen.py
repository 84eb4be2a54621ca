"""Everything that differs between torchgen releases: words, limits, exceptions by name.

It is read from the text of a torchgen, the tree's own or an installed one, which is never imported; or it is that of a
known release (:mod:`.torchgen_table`). What a torchgen does not say in a form that is understood is that of the newest known
release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.regular_files import content_digest
from opschema_rules.aten.autograd import Autograd, read_derivative_rules
from opschema_rules.aten.bindings import Bindings, read_bindings
from opschema_rules.aten.conditions import Limits, joined, read_backend_limits, read_model_limits
from opschema_rules.aten.exceptions import Exceptions, read_exceptions
from opschema_rules.aten.vocabulary import Vocabulary, read_vocabulary


class Torchgen(msgspec.Struct, frozen=True):
    """One torchgen.

    ``tags`` are those of its tags.yaml, None where that is not there. ``origin`` names it in messages. ``doubt`` says why it may
    not be the one that reads a file; empty if that is certain. ``digest`` is what findings depend on.
    """

    vocabulary: Vocabulary
    limits: Limits = Limits()
    bindings: Bindings = Bindings()
    exceptions: Exceptions = Exceptions()
    autograd: Autograd = Autograd()
    tags: frozenset[str] | None = None
    origin: str = ""
    doubt: str = ""
    digest: str = ""


class Home(msgspec.Struct, frozen=True):
    """Paths of the parts of one torchgen; folders end with a slash."""

    torchgen: str
    autograd: str
    tags: str = ""

    @property
    def model(self) -> str:
        """The module that names dispatch keys, fields and types."""
        return f"{self.torchgen}model.py"


class _Part(msgspec.Struct, frozen=True):
    """Content of one module."""

    vocabulary: Vocabulary | None = None
    limits: Limits = Limits()
    bindings: Bindings = Bindings()
    exceptions: Exceptions = Exceptions()
    autograd: Autograd = Autograd()
    digest: str = ""


@lru_cache(maxsize=64)
def _read(text: str) -> _Part:
    """Read a module once for a process: tests and editors lint many trees beside one installed torch."""
    return _Part(
        read_vocabulary(text),
        joined(read_model_limits(text) if "class DispatchKey" in text else Limits(), read_backend_limits(text)),
        read_bindings(text),
        read_exceptions(text),
        read_derivative_rules(text),
        content_digest(text.encode("utf-8", "surrogatepass")),
    )


_READING: Reading[str, _Part] = Reading("aten-torchgen", _read, _Part)

_MODULES = (
    *("native_function_generation.py", "gen_functionalization_type.py", "api/python.py"),
    *("gen_backend_stubs.py", "utils.py"),
)
_AUTOGRAD = ("gen_python_functions.py", "gen_variable_type.py", "gen_trace_type.py", "load_derivatives.py")


def modules_of(home: Home) -> list[str]:
    """The modules that are read, the model first."""
    return [
        home.model,
        *(f"{home.torchgen}{name}" for name in _MODULES),
        *(f"{home.autograd}{name}" for name in _AUTOGRAD),
    ]


def read_torchgen(project: Project, home: Home, present: Iterable[str], fallback: Torchgen | None) -> Torchgen | None:
    """Return the torchgen at ``home`` with the modules ``present``; None if its model names no dispatch keys.

    ``fallback`` lends what cannot be read.
    """
    parts: Mapping[str, _Part] = project.readings(_READING, present)
    model = parts.get(home.model)
    if model is None or model.vocabulary is None:
        return None
    found = [parts[path] for path in modules_of(home) if path in parts]
    return Torchgen(
        model.vocabulary.completed(fallback.vocabulary) if fallback is not None else model.vocabulary,
        joined(*(item.limits for item in found), *([fallback.limits] if fallback is not None else ())),
        Bindings.joined(item.bindings for item in found),
        Exceptions.joined(item.exceptions for item in found),
        Autograd.joined(item.autograd for item in found).completed(fallback.autograd if fallback else Autograd()),
        digest=" ".join(item.digest for item in found),
    )


def with_autograd(project: Project, torchgen: Torchgen, home: Home) -> Torchgen:
    """Return a torchgen with the autograd generator of the tree at ``home``, if there is one."""
    present = [f"{home.autograd}{name}" for name in _AUTOGRAD if f"{home.autograd}{name}" in project.workspace.file_set]
    found = project.readings(_READING, present)
    if not found:
        return torchgen
    autograd = Autograd.joined(found[path].autograd for path in present if path in found).completed(torchgen.autograd)
    digest = " ".join([torchgen.digest, *(item.digest for item in found.values())])
    return replace(torchgen, autograd=autograd, digest=digest)


def in_doubt(torchgen: Torchgen, doubt: str) -> Torchgen:
    """A torchgen that may not be the one."""
    return replace(torchgen, doubt=doubt, digest=f"{torchgen.digest} {doubt}")
