"""Wrong operands of loads and stores in hand-written kernels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from opschema_cli.source.cpp_text import only_code, without_comments
from opschema_cli.source.preprocessor import read_directives
from opschema_cli.source.text import Span
from opschema_rules.pypto.kernel_facts import OperandFault

_FEW = 8
"""Maximum number of places of a name, including in longer names, to examine one by one."""

_MANY = 64
"""Maximum number of tensors of a kernel to search for one by one."""

_ALIAS = re.compile(r"using\s+(\w+)\s*=\s*(?:pto::)?(GlobalTensor|Tile|TileLeft|TileRight|TileAcc)\s*<")
_VARIABLE = re.compile(r"(?<=[;{}])\s*(\w+)\s+(\w+)\s*(?:(\([^;{}]*\))\s*|\{[^;{}]*\}\s*)?;")
_MOVES = re.compile(r"T(?<!\wT)(LOAD|STORE)\s*\(\s*(\w+)\s*,\s*(\w+)\s*[,)]")
_TWICE = re.compile(r"TLOAD(?<!\wTLOAD)\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)\s*;\s*(TLOAD\s*\(\s*\1\s*,\s*(?!\2\b)(\w+)\s*\))")
_POINTER = re.compile(r"__gm__ (?:const )?(\w+)\s*\*\s*(\w+)")
_ELEMENT = re.compile(r"using\s+(\w+)\s*=\s*(?:pto::)?GlobalTensor<\s*(\w+)\s*,")
_OVER = re.compile(r"(?<=[;{}])\s*(\w+)\s+(\w+)\s*[({]\s*(\w+)\s*(?=[)},+])")
_MADE_OVER = re.compile(r"\w+[({]\s*(\w+)")
_ELEMENTS = frozenset(
    {"float", "half", "bfloat16_t", *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64))}
)
"""Types that mean nothing else in a kernel."""

_DECLARES = re.compile(r"__gm__ (?:const )?\w+\s*\*\s*\w+\Z")
_BRACE = re.compile(r"[{}]")
_NEAR = 100
"""Maximum number of characters before a name in its declaration."""

_DECLARED = re.compile(r"[\w>][\s&*]+([A-Za-z_]\w*)(?=\s*(?:[,)=\[]|:(?!:)))|>[\s&*]*([A-Za-z_]\w*)")
"""A name with another kind of declaration: a parameter, a variable with a value, one in a loop header, or one of a template's
type.
"""

_PARAMETERS = re.compile(r"\(\s*(?:\)|(?:const\s+)?\w+[&*]*\s+[&*]*\w+\s*[,)])")
"""The parameters of a function that is declared."""

_NO_TYPES = frozenset({"return", "else", "using", "typename"})

_WORD = re.compile(r"[A-Za-z_]\w*")
_UNCLEAR = re.compile(r"##|#\s*define\s+T(?:LOAD|STORE)\b")


def operand_faults(text: str) -> tuple[OperandFault, ...]:
    """Return the loads and stores of a file with exchanged operands, loads that the next one overwrites, and unused tensors of
    the global memory (``GlobalTensor``). Names with several meanings are left out.
    """
    if "GlobalTensor" not in text or _UNCLEAR.search(text):
        return ()
    is_mixed = _is_mixed(text)
    if not is_mixed and not _is_suspect(without_comments(text)):
        return ()
    code = only_code(text, directives=False)
    found = (*_faults(code, only_code(text)), *(_elements(code) if is_mixed else ()))
    return tuple(always_compiled(text, found))


def always_compiled(text: str, faults: Iterable[OperandFault]) -> Iterator[OperandFault]:
    """Yield the faults outside of preprocessor conditions, except those for a core."""
    known = list(faults)
    conditions = read_directives(text).conditions if known else None
    for item in known:
        if conditions is not None and all("__DAV_" in str(condition) for condition in conditions(item.span.start)):
            yield item


def _is_mixed(text: str) -> bool:
    """Whether there may be a tensor over memory of other elements; a quick search, as nearly all kernels are right."""
    tensors, pointers = _elements_of(text)
    for alias, want in list(tensors.items())[:_MANY]:
        at = text.find(f"{alias} ")
        while at >= 0:
            made = _MADE_OVER.match(text, at + len(alias) + 1)
            if made is not None and pointers.get(made[1], want) != want:
                return True
            at = text.find(f"{alias} ", at + 1)
    return False


def _elements_of(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the known element types of each tensor type and of each pointer into the global memory."""
    tensors = _types(_ELEMENT.findall(text))
    return tensors, _types((name, of) for of, name in _POINTER.findall(text)) if tensors else {}


def _elements(code: str) -> Iterator[OperandFault]:
    """Yield the tensors of the global memory made from a pointer to elements of another type: these do not compile."""
    (tensors, pointers), left = _elements_of(code), _FEW
    for match in _OVER.finditer(code):
        of, name, pointer = match.groups()
        want, have = tensors.get(of), pointers.get(pointer)
        if want is None or have is None or want == have or not left:
            continue
        left -= 1
        if _is_declared(code, pointer, match.start(3)):
            yield OperandFault(
                "element",
                f"`{name}` has elements `{want}`, and `{pointer}` is a pointer to `{have}`",
                Span(*match.span(3)),
            )


def _is_declared(code: str, name: str, at: int) -> bool:
    """Whether the pointer at a place is declared in the same function, and no other variable of the file has its name."""
    declared: re.Match[str] | None = None
    for match in re.finditer(rf"(?:\w\s+|[*&>]\s*){name}\b(?!\s*\()", code):
        before = code[max(0, match.start() - _NEAR) : match.end()]
        own = _DECLARES.search(before)
        if own is None and not before.endswith(f"return {name}"):
            return False
        declared = match if match.end() <= at and own is not None else declared
    if declared is None:
        return False
    between = code[declared.end() : at]
    is_parameter = between.partition("{")[0].count(")") > between.partition("{")[0].count("(")
    depth, lowest = 0, 1 if is_parameter else 0
    for brace in _BRACE.findall(between):
        depth += 1 if brace == "{" else -1
        if depth < lowest:
            return False
    return depth >= lowest


def _types(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the type of each name that only has one element type."""
    found: dict[str, str] = {}
    for name, of in pairs:
        found[name] = of if found.get(name, of) == of else ""
    return {name: of for name, of in found.items() if of in _ELEMENTS}


def _is_suspect(code: str) -> bool:
    """Whether there may be any of these faults; a few quick searches, as nearly all kernels are right."""
    aliases = [match[1] for match in _ALIAS.finditer(code) if match[2] == "GlobalTensor"]
    tensors = {name for alias in set(aliases[:_MANY]) for name in re.findall(rf"{alias}\s+(\w+)", code)}
    moves = _MOVES.findall(code)
    exchanged = any((first if kind == "LOAD" else second) in tensors for kind, first, second in moves)
    if exchanged or len(tensors) > _MANY or len(aliases) > _MANY:
        return True
    unused = any(code.count(name) <= _FEW and len(re.findall(rf"{name}(?<!\w{name})\b", code)) == 1 for name in tensors)
    return unused or _TWICE.search(code) is not None


def _faults(code: str, whole: str) -> Iterator[OperandFault]:
    tensors, tiles = _names(code)
    uses = Counter(_WORD.findall(whole))
    for name, span in tensors.items():
        if uses[name] == 1:
            yield OperandFault("unused", name, span)
    for match in _MOVES.finditer(code):
        moves, first, second = match.groups()
        wrong = (tensors, tiles) if moves == "LOAD" else (tiles, tensors)
        if first in wrong[0] and second in wrong[1]:
            yield OperandFault("exchanged", f"T{moves}({second}, {first})", Span(match.start(), match.end(3) + 1))
    for match in _TWICE.finditer(whole):
        if match[1] in tiles:
            yield OperandFault("overwritten", match[1], Span(*match.span(3)))


def _names(code: str) -> tuple[dict[str, Span], dict[str, Span]]:
    """Return the variables that are tensors of the global memory, and those that are tiles; each is declared as nothing else."""
    kinds: dict[str, set[bool | None]] = {}
    for match in _ALIAS.finditer(code):
        kinds.setdefault(match[1], set()).add(match[2] == "GlobalTensor")
    found: dict[str, dict[bool | None, Span]] = {}
    for match in _VARIABLE.finditer(code):
        is_function = match[3] is not None and _PARAMETERS.match(match[3]) is not None
        known_kinds = kinds.get(match[1]) if not is_function else None
        for kind in known_kinds or (() if match[1] in _NO_TYPES else (None,)):
            found.setdefault(match[2], {})[kind] = Span(*match.span(2))
    others = {name for names in _DECLARED.findall(code) for name in names}
    known = {name: spans for name, spans in found.items() if len(spans) == 1 and name not in others}
    return (
        {name: spans[True] for name, spans in known.items() if True in spans},
        {name: spans[False] for name, spans in known.items() if False in spans},
    )
