"""What torchgen itself makes of its files: :func:`refusal` is its first complaint, or None when it takes them.

A tree is ``native_functions.yaml``, ``tags.yaml`` and, if they are there, ``derivatives.yaml`` and ``backend.yaml``, by
name. It is read as torchgen's own programs read it, up to where they begin to write; :func:`emission_refusal` goes on
and computes all that they would write, the dispatcher's, the Python bindings' and autograd's files, but writes nothing;
:func:`emission` returns it.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import re
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torchgen
from torchgen import gen, gen_backend_stubs
from torchgen.api.autograd import match_differentiability_info
from torchgen.model import (
    DispatchKey,
    FunctionSchema,
    Location,
    NativeFunction,
    NativeFunctionsGroup,
    NativeFunctionsViewGroup,
    dispatch_keys,
    is_generic_dispatch_key,
)
from torchgen.packaged.autograd import gen_autograd, load_derivatives
from torchgen.selective_build.selector import SelectiveBuilder
from torchgen.utils import FileManager

PACKAGED = Path(torchgen.__file__).parent / "packaged"


def _release() -> str:
    """The release of the torchgen that is imported: of one in the corpus what lies beside it, else the installed one's."""
    beside = PACKAGED.parents[1] / "torch/version.py"
    text = beside.read_text(encoding="utf-8") if beside.is_file() else f"__version__ = '{version('torch')}'"
    found = re.search(r"__version__ = '(\d+\.\d+)", text)
    assert found is not None
    return found[1]


RELEASE = _release()
"""The release whose torchgen answers: ``2.13``."""

NATIVE, TAGS, DERIVATIVES, BACKEND = "native_functions.yaml", "tags.yaml", "derivatives.yaml", "backend.yaml"
DEPRECATED = "deprecated.yaml"


class Refusal(NamedTuple):
    """A complaint of torchgen: where it was made (``native``, ``derivatives``, ``backend``, ``emission``), the type of
    the exception, its words, and the line of torchgen's code that raised it.
    """

    phase: str
    kind: str
    message: str
    site: str = ""


@cache
def installed(name: str) -> str:
    """One of the installed torch's own files."""
    folder = "autograd" if name == DERIVATIVES else "ATen/native"
    return (PACKAGED / folder / name).read_text(encoding="utf-8")


_Step = tuple[str, Callable[[Path], object]]


def refusal(files: Mapping[str, str]) -> Refusal | None:
    """The first complaint about what the files say, in the order in which torchgen reads them."""
    with _written(files) as folder:
        return _first(folder, _steps(folder))


def emission_refusal(files: Mapping[str, str]) -> Refusal | None:
    """The first complaint of the code that writes, about files that :func:`refusal` has none about."""
    with _written(files) as folder, _nothing_written():
        return _first(folder, _writers(files))


def emission(files: Mapping[str, str]) -> Refusal | dict[str, str]:
    """The texts that torchgen writes, by file and slot of its template, or its first complaint."""
    with _written(files) as folder:
        complaint = _first(folder, _steps(folder))
        if complaint is not None:
            return complaint
        with _nothing_written() as texts:
            return _first(folder, _writers(files)) or texts


def _writers(files: Mapping[str, str]) -> list[_Step]:
    own = [_emit, _emit_autograd] if NATIVE in files else []
    return [("emission", step) for step in (*own, _emit_backend)]


def _steps(folder: Path) -> Iterator[_Step]:
    yield "native", _native
    if (folder / DERIVATIVES).exists():
        yield "derivatives", _derivatives
    if (folder / BACKEND).exists():
        yield "backend", _backend


def _first(folder: Path, steps: Any) -> Refusal | None:
    for phase, step in steps:
        try:
            step(folder)
        except Exception as error:  # whatever torchgen raises is its refusal, a bare KeyError as well
            words = str(error).partition(f"\n  in {folder}")[0].replace(f"{folder}/", "")
            return Refusal(phase, type(error).__name__, words[:600], _site(error))
    return None


def _site(error: Exception) -> str:
    """The last line of torchgen's own code on the way to an exception."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "torchgen" in Path(frame.filename).parts]
    last = frames[-1]
    return f"{Path(last.filename).name}:{last.lineno} {last.name}"


@contextlib.contextmanager
def _written(files: Mapping[str, str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="torchgen-oracle-") as name:
        folder = Path(name)
        for path, text in files.items():
            (folder / path).write_text(text, encoding="utf-8", newline="")
        _forget()
        with _remembering():
            yield folder
        _forget()


def _forget() -> None:
    gen._GLOBAL_PARSE_NATIVE_YAML_CACHE.clear()
    gen._GLOBAL_PARSE_TAGS_YAML_CACHE.clear()
    gen.parse_tags_yaml.cache_clear()
    load_derivatives._GLOBAL_LOAD_DERIVATIVE_CACHE.clear()


@contextlib.contextmanager
def _remembering() -> Iterator[None]:
    """The entries that a tree shares with others are read once, and the signature of each once: half of torchgen's time."""
    with (
        patch.object(NativeFunction, "from_yaml", staticmethod(_from_yaml)),
        patch.object(FunctionSchema, "signature", _signature),
    ):
        yield


_READ: dict[object, tuple[Any, Any]] = {}
_from_yaml_itself, _signature_itself = NativeFunction.from_yaml, FunctionSchema.signature


def _from_yaml(entry: dict[str, object], loc: Location, tags: set[str], *rest: Any) -> tuple[Any, Any]:
    key = repr({name: value for name, value in entry.items() if name != "__line__"}), frozenset(tags), repr(rest)
    if key not in _READ:
        _READ[key] = _from_yaml_itself(entry, loc, tags, *rest)
    function, metadata = _READ[key]
    function = copy.copy(function)
    object.__setattr__(function, "loc", loc)
    return function, metadata


def _signature(schema: Any, **options: bool) -> Any:
    known = schema.__dict__.setdefault("_known_signatures", {})
    key = tuple(sorted(options.items()))
    if key not in known:
        known[key] = _signature_itself(schema, **options)
    return known[key]


def _parsed(folder: Path) -> gen.ParsedYaml:
    """The operators of the tree, or of the installed torch if it has none."""
    if not (folder / NATIVE).exists():
        return _own(_installed())
    path = str(folder / TAGS)
    text = (folder / TAGS).read_text(encoding="utf-8")
    if text == installed(TAGS):  # the same every time: reading it takes longer than all the rest
        gen._GLOBAL_PARSE_TAGS_YAML_CACHE[path] = _installed_tags()
    return _own(gen.parse_native_yaml(str(folder / NATIVE), path))


def _own(parsed: gen.ParsedYaml) -> gen.ParsedYaml:
    """With indices of its own, since reading a backend's file adds to them."""
    functions, indices = parsed
    return gen.ParsedYaml(functions, indices.copy())


@cache
def _installed() -> gen.ParsedYaml:
    return gen.parse_native_yaml(*(str(PACKAGED / "ATen/native" / name) for name in (NATIVE, TAGS)))


@cache
def _installed_groups() -> Any:
    return gen.get_grouped_native_functions(_installed().native_functions)


@cache
def _installed_tags() -> set[str]:
    return gen.parse_tags_yaml(str(PACKAGED / "ATen/native" / TAGS))


def _native(folder: Path) -> None:
    if not (folder / NATIVE).exists():
        return
    functions = _parsed(folder).native_functions
    gen.get_grouped_native_functions(functions)
    gen.get_grouped_by_view_native_functions(functions)


def _derivatives(folder: Path) -> Any:
    functions = _parsed(folder).native_functions
    infos, _ = load_derivatives.load_derivatives(*(str(folder / name) for name in (DERIVATIVES, NATIVE, TAGS)))
    return match_differentiability_info(functions, infos)


def _backend(folder: Path) -> Any:
    parsed = _parsed(folder)
    own = (folder / NATIVE).exists()
    grouped = gen.get_grouped_native_functions(parsed.native_functions) if own else _installed_groups()
    return gen_backend_stubs.parse_backend_yaml(str(folder / BACKEND), grouped, parsed.backend_indices)


# --- what would be written


@contextlib.contextmanager
def _nothing_written() -> Iterator[dict[str, str]]:
    """The contents of every file are computed, but for the templates around them, and kept by file and slot."""
    texts: dict[str, str] = {}

    def write(manager: FileManager, filename: object, template_fn: object, env_callable: Callable[[], Any]) -> None:
        made = env_callable()
        if _SHARD.search(str(filename)):  # its text stands in `NAMEEverything.cpp` as well
            return
        for slot, value in ({"": made} if isinstance(made, str) else made).items():
            if slot not in ("generated_comment", "shard_id"):
                texts[f"{filename} {slot}".rstrip()] = _text(value)

    with patch.object(FileManager, "write_with_template", write):
        yield texts


_SHARD = re.compile(r"_\d+\.cpp$")


def _text(value: object) -> str:
    return "\n".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _manager(name: str) -> FileManager:
    return FileManager(name, PACKAGED / "ATen/templates", False)


def _emit(folder: Path) -> None:
    """The steps of ``torchgen.gen`` after reading the files."""
    parsed = _parsed(folder)
    grouped = gen.get_grouped_native_functions(parsed.native_functions)
    groups = [item for item in grouped if isinstance(item, NativeFunctionsGroup)]
    views = gen.get_grouped_by_view_native_functions(parsed.native_functions)
    cpu = _manager("cpu")
    common = {
        "native_functions": parsed.native_functions,
        "grouped_native_functions": grouped,
        "structured_native_functions": groups,
        "static_dispatch_idx": [],
        "selector": SelectiveBuilder.get_nop_selector(),
        "backend_indices": parsed.backend_indices,
        "cpu_fm": cpu,
        "dispatch_keys": [
            key for key in dispatch_keys if is_generic_dispatch_key(key) or key in parsed.backend_indices
        ],
        "functions_keys": {DispatchKey.CPU, DispatchKey.CUDA, DispatchKey.CompositeImplicitAutograd},
        "rocm": False,
        "per_operator_headers": False,
    }
    _call(
        gen.gen_source_files,
        **common,
        view_groups=[item for item in views if isinstance(item, NativeFunctionsViewGroup)],
        aoti_fm=_manager("aoti"),
        core_fm=_manager("core"),
        cpu_vec_fm=_manager("vec"),
        device_fms={"cuda": _manager("cuda")},
        force_schema_registration=False,
        skip_dispatcher_op_registration=False,
        update_aoti_c_shim=False,
        aoti_backends=set(),
        extend_aoti_c_shim=False,
    )
    _call(
        gen.gen_headers,
        **common,
        valid_tags=gen._GLOBAL_PARSE_TAGS_YAML_CACHE[str(folder / TAGS)],
        headeronly_fm=_manager("only"),
        core_fm=_manager("headers"),
        device_fms={"cuda": _manager("headers")},
        ops_fm=_manager("ops"),
    )
    gen.gen_declarations_yaml(native_functions=parsed.native_functions, cpu_fm=cpu)


def _call(function: Callable[..., object], **arguments: object) -> None:
    """Call a function of torchgen with those of the arguments that this release's takes."""
    taken = inspect.signature(function).parameters
    function(**{name: value for name, value in arguments.items() if name in taken})


def _emit_autograd(folder: Path) -> None:
    """The steps of ``gen_autograd``."""
    _parsed(folder)
    paths = str(folder / NATIVE), str(folder / TAGS), str(folder / "out"), str(folder)
    if not (folder / DEPRECATED).exists():
        (folder / DEPRECATED).write_text("[]", encoding="utf-8")
    if (folder / DERIVATIVES).exists():
        gen_autograd.gen_autograd(*paths, SelectiveBuilder.get_nop_selector())
    else:
        (folder / DERIVATIVES).write_text("[]", encoding="utf-8")
    gen_autograd.gen_autograd_python(*paths)


def _emit_backend(folder: Path) -> None:
    """The steps of ``gen_backend_stubs.run`` after reading the backend's file."""
    if not (folder / BACKEND).exists():
        return
    parsed = _backend(folder)
    if parsed.backend_key is None:
        return
    grouped = gen.get_grouped_native_functions(_parsed(folder).native_functions)
    indices = parsed.backend_indices
    class_name = parsed.class_name
    if class_name is None:
        class_name = indices[parsed.backend_key].native_function_class_name()
    manager = _manager("stubs")
    keys = parsed.backend_key, parsed.autograd_key
    gen_backend_stubs.gen_dispatchkey_nativefunc_headers(
        manager, class_name, parsed.cpp_namespace, indices, grouped, *keys
    )
    for key in filter(None, keys):
        gen_backend_stubs.gen_dispatcher_registrations(
            manager, "out", class_name, indices, grouped, parsed.backend_key, key, SelectiveBuilder.get_nop_selector()
        )
