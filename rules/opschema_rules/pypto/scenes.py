"""The arguments that a scene test passes to its orchestration: what ``generate_args()`` of its class returns.

Only plain tests are read: the names of simpler's test harness are imported and used as they are, the class has nothing but its
callable, its cases and the two functions, and these are straight lines of code.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.python import Class, Expr, Function, PythonFile
from opschema_cli.source.text import Span

_BUILDER, _KINDS = "TaskArgsBuilder", {"TensorArg": "tensor", "Tensor": "tensor", "Scalar": "scalar"}
_WORD = re.compile(r"[A-Za-z_]\w*")
_NAMES = (
    re.compile(r"(?<![\w.])(?<!def )(?<!class )(\w+)\("),
    re.compile(r"(?m)^class \w+\((\w+)\):"),
    re.compile(r"(?m)^class (\w+)\("),
    re.compile(r"(?m)^ +(CALLABLE) = \{"),
    re.compile(r"(?m)^ +def (generate_args)\(self, \w+\):"),
    re.compile(r"(?m)^ +(\w+)\.run_module\(__name__\)$"),
)
"""The places at which a name that matters may stand: it is called, a base, or defined in a class."""

_OTHERWISE = re.compile(
    r"\b(?:xfail|skip\w*|raises|assertRaises\w*|setattr|vars|globals|exec|eval|monkeypatch|patch|mock|__dict__|importorskip)\b"
    r"|\.\s*add_(?:tensor|scalar)\s*\(|\bimport\s*\*|\bnot\s+\w+\.passed\b"
)
"""Code that may pass other arguments, or expects an error."""

_NOT_STRAIGHT = re.compile(
    r"\b(?:if|else|elif|for|while|with|try|match|case|raise|yield|await|async|lambda|def|class|del|import|global|nonlocal|assert"
    r"|and|or|as|hasattr|getattr|locals|exit|fail|self)\b|:=|\+="
)

_BEHIND = re.compile(r"(?m)^\s*[)\]]+\s*=(?!=)")
"""The end of several targets that stand in several lines."""


class Argument(msgspec.Struct, frozen=True):
    """One of the arguments: ``TensorArg("a", ...)``, ``Scalar("n", ...)``."""

    name: str
    kind: Literal["tensor", "scalar"]
    expr: Expr


class Scene(msgspec.Struct, frozen=True):
    """All arguments of each case of a test, in their order; ``unknown`` are the names that its golden function reads of these and
    that none has. ``within`` is its class.
    """

    call: Expr
    arguments: tuple[Argument, ...]
    within: Span
    unknown: tuple[tuple[str, Span], ...] = ()

    def of(self, kind: Literal["tensor", "scalar"]) -> list[Argument]:
        """The arguments of a kind."""
        return [item for item in self.arguments if item.kind == kind]


def read_scene(file: PythonFile, cls: Class) -> Scene | None:
    """The arguments of a scene test on one chip; None where its class may pass others."""
    methods = {item.name: item for item in cls.body.functions}
    makes, known = methods.get("generate_args"), _plain_names(file)
    if makes is None or not _is_plain(cls, known):
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
    unknown = _unknown(file, golden, arguments) if golden is not None else ()
    return Scene(call, arguments, cls.outer, unknown)


def _is_plain(cls: Class, known: dict[str, str]) -> bool:
    """Whether a class is a test of one chip (level 2), which gets the arguments as they are."""
    names = [item.name for item in cls.body.functions]
    if not set(names) <= {"generate_args", "compute_golden"} or len(names) != len(set(names)):
        return False
    if len(cls.bases) != 1 or known.get(cls.bases[0].text) != "SceneTestCase" or len(cls.decorators) != 1:
        return False
    targets = Counter(item.target for item in cls.body.assigns)
    plain = all(name.isupper() and number == 1 for name, number in targets.items())
    level = cls.decorators[0].keyword("level")
    is_test = known.get(cls.decorators[0].callee) == "scene_test" and level is not None and level.value == 2
    return is_test and plain and {"CALLABLE", "generate_args"} <= known.keys() and cls.name in known


@cached_on_argument
def _plain_names(file: PythonFile) -> dict[str, str]:
    """The names of the harness that a file imports and only uses as they are, and those of the members of its tests."""
    text = file.source.text
    if _OTHERWISE.search(text):
        return {}
    imported = Counter(item.name for item in file.body.imports)
    counts = Counter(_WORD.findall(text))
    used = Counter(match[1] for form in _NAMES for match in form.finditer(text))
    own = {item.name for item in file.body.classes} | {item.name for item in file.body.functions}
    known = {
        item.name: item.attr
        for item in file.body.imports
        if item.module.startswith("simpler_setup")
        and imported[item.name] == 1
        and item.name not in own
        and item.name == item.attr
        and used[item.name] + 1 == counts[item.name]
    }
    members = ("CALLABLE", "generate_args", *(item.name for item in file.body.classes))
    return known | {name: name for name in members if used[name] == counts[name]}


def _argument(known: dict[str, str], expr: Expr) -> Argument | None:
    kind = _KINDS.get(known.get(expr.callee, "")) if expr.kind == "call" else None
    name = next(iter(expr.positional()), None)
    if kind is None or name is None or not isinstance(name.value, str):
        return None
    return Argument(name.value, "tensor" if kind == "tensor" else "scalar", expr)


def _body(file: PythonFile, function: Function) -> str:
    """The code of a function behind its head."""
    return file.source.text[function.end : function.outer.end].partition("):\n")[2]


def _unknown(file: PythonFile, golden: Function, known: tuple[Argument, ...]) -> tuple[tuple[str, Span], ...]:
    """The attributes of its arguments that a golden function surely reads and that no argument has."""
    body = _body(file, golden)
    if len(golden.params) != 3 or golden.decorators or _NOT_STRAIGHT.search(body) or "return" in body:
        return ()
    owner, names = golden.params[1].name, {item.name for item in known}
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
