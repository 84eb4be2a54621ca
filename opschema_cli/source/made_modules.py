"""Stand-ins for Python modules that only a build creates."""

from __future__ import annotations

import keyword
import posixpath
from collections.abc import Callable, Iterable

from opschema_cli.source.modules import Modules
from opschema_cli.source.python import PythonFile
from opschema_cli.source.text import Source


def made_module(path: str, text: str) -> PythonFile:
    """Return a module with that text."""
    # Not at the top: most runs parse nothing in this process.
    from opschema_cli.source.python_facts import collect

    return PythonFile(Source(path, text), collect(text))


def extension_module(path: str, functions: Iterable[str], others: Iterable[str], *, is_closed: bool) -> PythonFile:
    """Return a stand-in for a compiled module, with the names of its functions and others; it may have more unless it is closed."""
    lines = {name: f"{name} = object()" for name in others}
    lines |= {name: f"def {name}(*args, **kwargs): ..." for name in functions}
    written = [line for name, line in lines.items() if name.isidentifier() and not keyword.iskeyword(name)]
    written += [] if is_closed else ["def __getattr__(name): ..."]
    return made_module(path, "\n".join(written) + "\n")


def place_of(dotted: str, modules: Modules, is_file: Callable[[str], bool], below: str) -> str:
    """Return the path, without its extension, of the module built from a source file ``below`` the folder of its ``setup.py``;
    empty if there is a Python file of that name.
    """
    package, _, own = dotted.rpartition(".")
    above = modules.module_path(package) if package else None
    folder = posixpath.dirname(below if above is None else above)
    if above is None:
        while folder and not is_file(f"{folder}/setup.py"):
            folder = posixpath.dirname(folder)
        folder = posixpath.join(folder, *package.split("."))
    path = posixpath.join(folder, own)
    taken = any(is_file(f"{path}{end}") for end in (".py", "/__init__.py"))
    return "" if taken or not dotted.replace(".", "").isidentifier() else path
