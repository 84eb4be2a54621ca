"""Overloads of torch's functions with their signatures, as the installed torch declares them."""

from __future__ import annotations

import inspect
import re
import types
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch.nn import functional

_TYPES = {
    "Tensor": "T",
    "Tensor[]": "L",
    "int": "i",
    "SymInt": "i",
    "int[]": "I",
    "SymInt[]": "I",
    "bool": "b",
    "Scalar": "n",
    "float": "f",
    "str": "s",
    "ScalarType": "d",
    **dict.fromkeys(("Device", "Layout", "MemoryFormat", "Generator"), "o"),
}
_ANNOTATIONS = {
    "Tensor": "T",
    "int": "i",
    "float": "f",
    "bool": "b",
    "str": "s",
    "list[int]": "I",
    "List[int]": "I",
    "DType": "d",
    "dtype": "d",
}
_NEUTRAL = frozenset({"device", "layout", "memory_format", "generator", "pin_memory", "requires_grad", "names"})
_EFFECTS = frozenset({"from_file"})
"""Functions that write files."""
SPACES = {"": torch, "linalg": torch.linalg, "special": torch.special, "fft": torch.fft, "nn.functional": functional}
"""Modules whose functions are probed, by their names under ``torch``."""


class Candidate(NamedTuple):
    """An overload to probe: the operator's name in the table, the signature, and the function that is called."""

    operator: str
    signature: str
    function: Callable[..., object]


def functions() -> dict[str, str]:
    """Operators by the names of functions under ``torch``."""
    found = {}
    for space, module in SPACES.items():
        for name in dir(module):
            value = getattr(module, name)
            if name.startswith("_") or not callable(value) or isinstance(value, type):
                continue
            full = f"{space}.{name}" if space else name
            if isinstance(value, types.BuiltinFunctionType):
                prefix = f"{space}_" if space in ("linalg", "special", "fft") else ""
                found[full] = prefix + name
            elif isinstance(value, types.FunctionType):
                found[full] = full
    return found


def methods() -> list[str]:
    """Names of methods of tensors."""
    found = [name for name in dir(torch.Tensor) if not name.startswith("_")]
    return [name for name in found if callable(getattr(torch.Tensor, name)) and not name.startswith("__")]


def candidates() -> Iterator[Candidate]:
    """All overloads whose types the table can say."""
    schemas: dict[str, list[torch._C.FunctionSchema]] = {}
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::"):
            schemas.setdefault(schema.name.removeprefix("aten::"), []).append(schema)
    callables: dict[str, Callable[..., object]] = {}
    for name in methods():
        if isinstance(getattr(torch.Tensor, name), types.MethodDescriptorType):
            callables[name] = getattr(torch.Tensor, name)
    for full, operator in functions().items():
        module, _, name = full.rpartition(".")
        callables[operator] = getattr(SPACES[module], name)
    for operator, function in sorted((name, value) for name, value in callables.items() if name not in _EFFECTS):
        python = _of_python(function) if isinstance(function, types.FunctionType) else None
        if python is not None:
            yield Candidate(operator, python, function)
            continue
        for signature in dict.fromkeys(signature_of_schema(schema) for schema in schemas.get(operator, ())):
            if signature is not None:
                yield Candidate(operator, signature, function)


def signature_of_schema(schema: torch._C.FunctionSchema) -> str | None:
    """The signature of an overload; None if the table cannot say its types."""
    text = str(schema)
    if "..." in text or "Tensor" not in text.rpartition(" -> ")[2]:
        return None
    words = _split(text[text.index("(") + 1 : text.rindex(") -> ")])
    found, keyword_only = [], False
    for argument, word in zip(schema.arguments, [word for word in words if word != "*"], strict=True):
        code = _code(word)
        if (argument.kwarg_only or argument.name == "alpha") and not keyword_only:
            keyword_only = True
            found.append("*")
        name = "input" if argument.name == "self" else argument.name
        if argument.is_out:
            return None
        code = "o" if name in _NEUTRAL else code
        if code is None:
            return None
        value = None if code[0] == "d" else argument.default_value  # a dtype is a number here; the dtype rule knows it
        default = f"={_literal(value)}" if argument.has_default_value() else ""
        found.append(f"{name}:{code}{default}")
    return " ".join(found)


def _split(text: str) -> list[str]:
    words, depth, start = [], 0, 0
    for index, letter in enumerate(text + ","):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            words.append(text[start:index].strip())
            start = index + 1
    return [word for word in words if word]


def _code(word: str) -> str | None:
    kind = re.sub(r"\([a-z!| *>-]+\)", "", word).partition(" ")[0]
    optional = "?" if kind.endswith("?") else ""
    kind = kind.rstrip("?")
    sized = re.fullmatch(r"(int|SymInt)\[\d+\]", kind)
    if sized:
        return f"I1{optional}"
    return f"{_TYPES[kind]}{optional}" if kind in _TYPES else None


def _literal(value: object) -> str:
    return repr(value).replace(" ", "") if isinstance(value, int | float | str | list | tuple) else "None"


def _of_python(function: Callable[..., object]) -> str | None:
    found, keyword_only = [], False
    for param in inspect.signature(function).parameters.values():
        if param.name == "out":
            continue
        code = "o" if param.name in _NEUTRAL else _annotated(param)
        if param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD) or code is None:
            return None
        if param.kind == param.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            found.append("*")
        default = f"={_literal(param.default)}" if param.default is not param.empty else ""
        found.append(f"{'input' if param.name == 'self' else param.name}:{code}{default}")
    return " ".join(found)


def _annotated(param: inspect.Parameter) -> str | None:
    note = param.annotation if isinstance(param.annotation, str) else getattr(param.annotation, "__name__", "")
    if not isinstance(param.annotation, str | type):
        note = str(param.annotation).replace("torch.", "").replace("typing.", "")
    optional = "?" if note.startswith("Optional[") or "None" in note or param.default is None else ""
    if param.name == "dtype":
        return f"d{optional}"
    if param.name.startswith("_"):
        return "o"
    note = re.sub(r"^Optional\[(.*)\]$", r"\1", note).replace(" | None", "")
    wide = re.fullmatch(r"BroadcastingList\d\[int\]", note)
    if wide:
        return f"I1{optional}"
    if note in _ANNOTATIONS:
        return f"{_ANNOTATIONS[note]}{optional}"
    if param.name in ("input", "self", "other"):
        return "T"
    return "b" if isinstance(param.default, bool) else None


warnings.filterwarnings("ignore")
