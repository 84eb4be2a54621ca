"""Reads the arguments that a scene test passes to its orchestration: the return value of its class's ``generate_args()``.

Only plain tests are read: the names of simpler's test harness are imported and used as they are, the class has nothing but its
callable, its cases and three functions of the harness, and these are straight lines of code.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.python import Class, Expr, Function, PythonFile
from opschema_cli.source.text import Span, places_of, words_in

_BUILDER, _KINDS = "TaskArgsBuilder", {"TensorArg": "tensor", "Tensor": "tensor", "Scalar": "scalar"}
_EXCEPTIONAL = (
    frozenset({"xfail", "raises", "importorskip", "monkeypatch", "patch", "mock", "add_tensor", "add_scalar"})  # tests
    | {"setattr", "vars", "globals", "exec", "eval", "__dict__"}
)
_EXCEPTIONS = re.compile(r"[.@]skip|\bskip\w*\s*\(|\bskip_|\bassertRaises")
"""Words, and uses of words, in files that may pass other arguments, or that expect an error."""

_FAILS = re.compile(r"\bnot\s+\w+\.passed\b")
_FUNCTIONS = {"generate_args", "compute_golden", "compare_outputs"}
_ALL_NAMES = re.compile(r"import\s*\*")
_BASE = re.compile(r"class \w+\(")
_MEMBERS = {
    "CALLABLE": re.compile(r" +(CALLABLE) = \{"),
    "generate_args": re.compile(r" +def (generate_args)\(self, \w+\):"),
}
"""The lines that define the members of a test."""

_SELECTS = re.compile(
    r"pytest\.mark\.(?:platforms|runtime|device_count|(?:network\d_)?remote_device_count|manual|requires_hardware|sdma|slow|timeout)"
)
"""Marks of simpler's tests that select tests, and neither skip one nor change its arguments: others may."""

_NOT_STRAIGHT = re.compile(
    r"\b(?:if|else|elif|for|while|with|try|match|case|raise|yield|await|async|lambda|class|del|import|global|nonlocal|assert"
    r"|and|or|as|hasattr|getattr|locals|exit|fail|self)\b|:=|\+="
)

_LITERAL = re.compile(
    r"""#[^\n]*|(?:\b[fF])?(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')""",
    re.DOTALL,
)
_LEAVES = re.compile(r"\breturn\b|\bdef\b")
_SKIPS_GOLDEN = re.compile(r"\bskip_golden\b", re.IGNORECASE)
"""A setting that disables the golden function."""

_OWN_NAMES = {"specs", "clone", "tensor_names"}
"""Attributes of the arguments other than those that a test passes."""

_BEHIND = re.compile(r"(?m)^\s*[)\]]+\s*=(?!=)")
"""The end of an assignment's targets that are spread over several lines."""


class Argument(msgspec.Struct, frozen=True):
    """An argument: ``TensorArg("a", ...)`` or ``Scalar("n", ...)``."""

    name: str
    kind: Literal["tensor", "scalar"]
    expr: Expr


class Scene(msgspec.Struct, frozen=True):
    """All arguments of each case of a test, in order; ``unknown`` are names that its golden function reads from them and that
    none has. ``within`` is its class.
    """

    call: Expr
    arguments: tuple[Argument, ...]
    within: Span
    unknown: tuple[tuple[str, Span], ...] = ()

    def of(self, kind: Literal["tensor", "scalar"]) -> list[Argument]:
        """Return the arguments of a kind."""
        return [item for item in self.arguments if item.kind == kind]


def read_scene(file: PythonFile, cls: Class) -> Scene | None:
    """Return the arguments of a scene test on one chip; None if its class may pass others."""
    methods = {item.name: item for item in cls.body.functions}
    makes = methods.get("generate_args")
    if makes is None or not _is_bare(cls):
        return None
    known = _plain_names(file)
    if not _is_test(cls, known):
        return None
    returns = makes.body.returns if not makes.decorators else ()
    call = returns[0] if len(returns) == 1 and not _NOT_STRAIGHT.search(_body(file, makes)) else None
    if call is None or call.kind != "call" or known.get(call.callee) != _BUILDER or any(call.keywords):
        return None
    found = [_argument(known, item) for item in call.items[1:]]
    arguments = tuple(item for item in found if item is not None)
    if len(arguments) != len(found):
        return None
    golden = methods.get("compute_golden")
    is_called = not _skips_golden(file) and _has_written_cases(cls)
    unknown = _unknown(file, golden, arguments) if golden is not None and is_called else ()
    return Scene(call, arguments, cls.outer, unknown)


def _is_bare(cls: Class) -> bool:
    """Whether a class only has cases, constants, functions that the harness calls before and after the run, one base, marks and one
    decorator.
    """
    functions = Counter(item.name for item in cls.body.functions)
    constants = Counter(item.target for item in cls.body.assigns)
    is_once = all(number == 1 for number in (*functions.values(), *constants.values()))
    is_known = functions.keys() <= _FUNCTIONS and all(name.isupper() for name in constants)
    return is_once and is_known and len(cls.bases) == 1 and len(_decorators(cls)) == 1 and _runs(cls)


def _decorators(cls: Class) -> list[Expr]:
    """Return the decorators of a class, without pytest marks that only select tests."""
    return [item for item in cls.decorators if _SELECTS.fullmatch(item.callee or item.text) is None]


def _runs(cls: Class) -> bool:
    """Whether a class has cases of its own; otherwise it is a base for other classes."""
    cases = [item.value for item in cls.body.assigns if item.target == "CASES"]
    return any(value is None or value.kind != "list" or bool(value.items) for value in cases)


def _is_test(cls: Class, known: dict[str, str]) -> bool:
    """Whether a class is a test on one chip (level 2), which gets the arguments unchanged."""
    base, [decorator] = cls.bases[0], _decorators(cls)
    level = decorator.keyword("level")
    is_named = cls.name.startswith("Test")
    is_scene = is_named and known.get(base.text) == "SceneTestCase" and known.get(decorator.callee) == "scene_test"
    return is_scene and level is not None and level.value == 2 and known.keys() >= {*_MEMBERS, cls.name}


@cached_on_argument
def _skips_golden(file: PythonFile) -> bool:
    text = file.source.text
    return "skip_golden" in text.lower() and _SKIPS_GOLDEN.search(text) is not None


def _has_written_cases(cls: Class) -> bool:
    """Whether all settings of a test's cases are written in its class."""
    cases = [item.value for item in cls.body.assigns if item.target == "CASES"]
    written = [item for value in cases if value is not None and value.kind == "list" for item in value.items]
    known = all(item.kind == "dict" and all(key.text != "**" for key in item.items[::2]) for item in written)
    return known and bool(written)


@cached_on_argument
def _plain_names(file: PythonFile) -> dict[str, str]:
    """Return the harness names that a file imports and never rebinds, and those of its tests' members."""
    text = file.source.text
    own = {item.name for item in file.body.classes} | {item.name for item in file.body.functions}
    words = words_in(text)
    if _EXCEPTIONAL & words or (("skip" in text or "assertRaises" in text) and _EXCEPTIONS.search(text)):
        return {}
    if _ALL_NAMES.search(text) or ("passed" in words and _FAILS.search(text)):
        return {}
    imported = Counter(item.name for item in file.body.imports)
    known = {
        item.name: item.attr
        for item in file.body.imports
        if item.module.startswith("simpler_setup")
        and imported[item.name] == 1
        and item.name not in own
        and item.name == item.attr
        and _other_places(item.name, text) == 1
    }
    classes = Counter(item.name for item in file.body.classes)
    members = (*_MEMBERS, *(name for name, number in classes.items() if number == 1))
    return known | {name: name for name in members if not _other_places(name, text)}


def _other_places(name: str, text: str) -> int:
    """Return the number of places where a name is used other than as a callee, a definition or a base class."""
    return sum(not _is_plain_place(name, text, at) for at in places_of(name, text))


def _is_plain_place(name: str, text: str, at: int) -> bool:
    start, end = text.rfind("\n", 0, at) + 1, at + len(name)
    stop = text.find("\n", end)
    before, behind = text[start:at], text[end : stop if stop >= 0 else None]
    if name in _MEMBERS:
        match = _MEMBERS[name].match(text, start)
        return match is not None and match.start(1) == at
    if behind.startswith("("):
        return before == "class " or not before.endswith((".", "def ", "class "))
    is_base = behind.startswith("):") and _BASE.fullmatch(before) is not None
    return is_base or (before.isspace() and behind == ".run_module(__name__)")


def _argument(known: dict[str, str], expr: Expr) -> Argument | None:
    kind = _KINDS.get(known.get(expr.callee, "")) if expr.kind == "call" else None
    name = next(iter(expr.positional()), None)
    if kind is None or name is None or not isinstance(name.value, str):
        return None
    return Argument(name.value, "tensor" if kind == "tensor" else "scalar", expr)


def _body(file: PythonFile, function: Function) -> str:
    """Return the code of a function after its header, without strings and comments if these may matter."""
    code = file.source.text[function.end : function.outer.end].partition("):\n")[2]
    return _LITERAL.sub(_blank, code) if _NOT_STRAIGHT.search(code) is not None else code


def _blank(match: re.Match[str]) -> str:
    """Return a string other than an f-string without its characters; an empty string for a comment."""
    text = match[0]
    return "" if text.startswith("#") else text if text[0] in "fF" else f"{text[0]}{text[-1]}"


def _unknown(file: PythonFile, golden: Function, known: tuple[Argument, ...]) -> tuple[tuple[str, Span], ...]:
    """Return the attributes of its arguments that a golden function always reads and that no argument has."""
    body = _body(file, golden)
    if len(golden.params) != 3 or golden.decorators or _NOT_STRAIGHT.search(body) or _LEAVES.search(body):
        return ()
    owner, names = golden.params[1].name, _OWN_NAMES | {item.name for item in known}
    reads = re.findall(rf"(?<![\w.*]){owner}\.[a-zA-Z]\w*\b(?!\s*(?:=(?!=)|[:(]))", body)
    sets = [head for head in re.findall(r"(?m)^([^=\n]*)=(?!=)", body) if re.search(rf"\b{owner}\b", head)]
    items = all(re.fullmatch(rf"\s*{owner}\.\w+\[.*\]\s*", head) for head in sets)
    if len(reads) != len(re.findall(rf"\b{owner}\b", body)) or not items or _BEHIND.search(body):
        return ()
    found: dict[str, Span] = {}
    for use in golden.body.uses:
        first, _, rest = use.name.partition(".")
        name = rest.partition(".")[0]
        if first == owner and name and name not in names:
            found.setdefault(name, Span(use.start, use.end))
    return tuple(found.items())
