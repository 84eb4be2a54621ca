"""Answers the examples and compiles the modules that this has imported. It is executed by Pyodide under Node.js."""

import io
import json
import py_compile
import sys
import zipfile

PLACES = {place: "stdlib" if place.endswith(".zip") else "site-packages" for place in sys.path if place}


def compiled_modules(examples: str) -> bytes:
    """An archive of the bytecode of all imported modules, which are named by their place and the path of their source.

    Raises:
        RuntimeError: an example has no answer.
    """
    import playground_browser

    for example in json.loads(examples):
        answer = json.loads(playground_browser.answer(json.dumps(example["files"])))
        if answer["code"] > 1 or not answer["text"]:
            raise RuntimeError(f"{example['title']}: {answer['errors']}")
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in sorted(sys.modules):
            place, path = _place(name)
            if place:
                archive.writestr(f"{PLACES[place]}/{path}", _bytecode(name, f"{place}/{path}"))
    return target.getvalue()


def _place(name: str) -> tuple[str, str]:
    """The place of a module and the path of its source there; empty if it has none."""
    origin = getattr(getattr(sys.modules[name], "__spec__", None), "origin", None) or ""
    for place in PLACES:
        if origin.startswith(f"{place}/") and origin.endswith(".py"):
            return place, origin.removeprefix(f"{place}/")
    return "", ""


def _bytecode(name: str, path: str) -> bytes:
    loader = sys.modules[name].__spec__.loader
    with open("/tmp/module.py", "wb") as file:
        file.write(loader.get_data(path))
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile("/tmp/module.py", "/tmp/module.pyc", path, doraise=True, invalidation_mode=unchecked)
    with open("/tmp/module.pyc", "rb") as file:
        return file.read()
