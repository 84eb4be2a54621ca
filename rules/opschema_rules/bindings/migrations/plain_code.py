"""Plain C++ code: it computes its result with operators of PyTorch and nothing else, as far as its text shows.

Autograd and tracers see all that such code does. Whatever is not recognised is a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_ANGLES = r"<(?:[^<>()]|\([^()]{0,100}\)){0,200}>"
for _ in range(3):
    _ANGLES = rf"<(?:[^<>()]|\([^()]{{0,100}}\)|{_ANGLES}){{0,200}}>"

_CALL = re.compile(
    rf"(?<![\w.:])(?<!->)(?:::\s*)?((?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)\s{{0,20}}(?:{_ANGLES}\s{{0,20}})?\("
)
_TYPED = re.compile(rf"([A-Za-z_][\w:]*)(?:{_ANGLES})?\s{{1,20}}\Z")
"""The type before a name, in a declaration of a variable or function."""

_NO_TYPE = frozenset(
    {"return", "else", "throw", "case", "co_return", "new", "delete", "do", "goto", "and", "or", "not", "const"}
)
_LANGUAGE = re.compile(
    r"if|for|while|switch|return|sizeof|alignof|decltype|catch|noexcept|static_assert|defined|u?int\d*_t|size_t|int|long|unsigned"
    r"|short|float|double|bool|char|void|auto|operator|throw|assert|(?:static|const|reinterpret|dynamic)_cast"
)
_KNOWN = re.compile(
    r"std::(?:move|forward|make_tuple|make_pair|tuple|pair|tie|get|min|max|abs|pow|sqrt|exp|log|floor|ceil|round|vector|string"
    r"|to_string|optional|make_optional|array|swap|isnan|isinf|numeric_limits::\w+|runtime_error|invalid_argument)"
    r"|(?:make_tuple|tie|make_pair|f?(?:abs|min|max)f?|(?:ceil|floor|sqrt|exp|log|pow|round)f?)"
    r"|(?:at|torch|c10)::(?:Tensor\w*|Scalar\w*|\w*ArrayRef|optional|make_optional|Device|dtype|device|promote_types|indexing::\w+"
    r"|irange|multiply_integers|maybe_wrap_dim|tensor|dtype_or_default|typeMetaToScalarType|toString)"
    r"|Slice|Scalar|Tensor\w*|vector|string|tuple|optional|(?:Int)?ArrayRef"
    r"|TORCH_CHECK\w*|TORCH_INTERNAL_ASSERT\w*|TORCH_WARN\w*|AT_ASSERTM?|AT_ERROR|AT_CHECK|C10_UNUSED|CHECK(?:_(?:EQ|NE|GE|GT|LE|LT))?"
)
"""Functions, macros and types beside the operators that have no effects. The tree may define some of them otherwise."""

_TORCH = re.compile(r"(?:at|torch)::(?:(?:linalg|fft|special|nn::functional|utils)::)?(\w+)")
_LAMBDA = re.compile(r"\bauto\s+(\w+)\s*=\s*\[")
_DIRECTIVE = re.compile(r"(?m)^[ \t]*#[^\n]*")

_DECLARED = re.compile(
    rf"(?<![\w:])(?!(?:const|constexpr|static|inline|typename|return|else|throw|case|new|delete|goto)\b)([A-Za-z_][\w:]*)"
    rf"(?:\s{{0,20}}{_ANGLES}(?:::\w+)?)?(?:\s{{1,20}}const\b)?\s{{0,20}}(?:[&*]|\s){{1,20}}([A-Za-z_]\w*)"
    r"\s{0,20}(?=[,)=({;\[]|:(?!:))"
)
_UNPACKED = re.compile(r"\bauto\s*&{0,2}\s*\[([\w\s,]{1,200})\]")
_PLAIN_TYPE = re.compile(
    r"(?:at|torch|c10)::(?:Tensor\w*|Scalar\w*|\w*ArrayRef|optional|Device|DeviceType|ScalarType|MemoryFormat|Layout|indexing::\w+|List|string_view)"
    r"|Tensor\w*|Scalar\w*|\w*ArrayRef|optional|std::(?:vector|optional|tuple|pair|array|string|initializer_list|string_view)|vector|tuple"
    r"|string|auto|bool|u?int\d*(?:_t)?|size_t|long|unsigned|short|double|float|char|scalar_t|decltype"
)
_RECEIVER = re.compile(
    r"(?<![\w.:\])])(?<!->)([A-Za-z_]\w*)\s{0,20}(?:\[[^\]]{0,200}\]\s{0,20}){0,3}(?:(?:\.|->)\s{0,20}[A-Za-z_]|<<)"
)
_ASSIGNED = re.compile(
    r"(?<![\w.:\])])(?<!->)([A-Za-z_][\w:]*)\s{0,20}(?:(?:\[[^\[\]]{0,200}\]|(?:\.|->)\s{0,20}\w+)\s{0,20}){0,4}"
    r"(?:(?:[-+*/%|&^]|<<|>>)?=(?!=)|\+\+|--)"
)
_CHANGED = re.compile(r"(?:\+\+|--)\s{0,20}([A-Za-z_][\w:]*)")
_METHOD = re.compile(rf"(?:\.|->)\s{{0,20}}(?:template\s+)?([A-Za-z_]\w*)\s{{0,20}}(?:{_ANGLES}\s{{0,20}})?\(")
_METHODS = re.compile(
    # of tensors, beside the operators
    r"is_\w+|(?:sym_)?(?:sizes?|strides?|numel)|dim|ndimension|nbytes|itemsize|element_size|dtype|scalar_type|device|options|layout"
    r"|defined|requires_grad|get_device|device_type|type|toType|cpu|cuda|hip|xpu|mps|name|memory_format"
    # of containers, optional values and strings
    r"|c?r?begin|c?r?end|(?:push|emplace|pop)_(?:back|front)|insert|emplace|erase|find|count|at|front|back|empty|clear|reserve"
    r"|resize|capacity|vec|slice|value|value_or|has_value|c_str|str|length|substr|append|compare|assign"
)
"""Methods of tensors that are no operators, and of the containers and options that are used beside them."""

_EFFECTS = re.compile(
    r"\b(?:static|thread_local|new|delete|asm|extern|goto|this)\b|\b(?:std::)?c(?:out|err|log)\b|\b\w{0,40}stream\b|\bprintf\b"
)
_INDIRECT = re.compile(r"([A-Za-z_]\w*\[[^\[\]\n]{1,60}\])\s{0,20}\(|[\w)\]]\s{0,20}(\])\s{0,20}\(|([})])\s{0,20}\(")
"""Calls of something else than a name: an item of a table, or the result of a call or a lambda."""
_SHOWN = {"]": "[…]()", ")": "(…)()", "}": "{…}()"}
_CONSTRUCTED = re.compile(r"(?<![\w:])([A-Za-z_][\w:]*)\s{1,20}[A-Za-z_]\w*\s{0,20}[{;]")
_CONTROL = _NO_TYPE | {"try", "struct", "class", "enum", "union", "namespace", "noexcept", "using"}
_GUARD = re.compile(r"(?:at|torch|c10)::(?:NoGradGuard|InferenceMode|AutoNonVariableTypeMode)")


@lru_cache(maxsize=4096)
def called_names(body: str) -> tuple[str, ...]:
    """Return the functions, macros and constructors that a body calls by name; local lambdas are left out."""
    body = _DIRECTIVE.sub("", body)
    local = set(_LAMBDA.findall(body))
    found: dict[str, None] = {}
    for match in _CALL.finditer(body):
        typed = _TYPED.search(body, max(0, match.start() - 200), match.start())
        is_declared = typed is not None and typed[1] not in _NO_TYPE
        name = typed[1] if typed is not None and is_declared else match[1]
        if name not in local and not _LANGUAGE.fullmatch(name):
            found[name] = None
    return tuple(found)


@lru_cache(maxsize=4096)
def bare_names(body: str) -> tuple[str, ...]:
    """Return the names in a body that may be macros without parentheses, or constants."""
    return tuple(dict.fromkeys(_CAPITALS.findall(_DIRECTIVE.sub("", body))))


_CAPITALS = re.compile(r"(?<![\w.:])[A-Z][A-Z0-9_]{2,60}(?!\w|\s{0,20}[(:])")


def is_known(name: str) -> bool:
    """Whether something that a body calls and that the tree does not define has no effects: an operator of PyTorch, say."""
    if _KNOWN.fullmatch(name):
        return True
    torch = _TORCH.fullmatch(name)
    plain = torch[1] if torch is not None else name
    return plain in operators() or re.sub(r"_outf?\Z", "", plain) in operators()


def doubts(body: str) -> Iterator[str]:
    """Yield what in a body may have effects that its calls of functions do not show."""
    body = _DIRECTIVE.sub("", body)
    types = _DECLARED.findall(body)
    declared = {name for of, name in types if _PLAIN_TYPE.fullmatch(of)}
    declared |= {"auto", *(name.strip() for names in _UNPACKED.findall(body) for name in names.split(","))}
    yield from (
        f"{name}()" for name in _METHOD.findall(body) if not _METHODS.fullmatch(name) and name not in operators()
    )
    yield from (match[0] for match in _EFFECTS.finditer(body))
    yield from (name for name in _RECEIVER.findall(body) if name not in declared)
    yield from (name for name in (*_ASSIGNED.findall(body), *_CHANGED.findall(body)) if name not in declared)
    for table, *others in _INDIRECT.findall(body):
        yield f"{table}()" if table else _SHOWN["".join(others)]
    variables = {name for _, name in types}  # `called_names` leaves out local lambdas
    yield from (f"{name}()" for name in called_names(body) if name in variables)
    for name in _CONSTRUCTED.findall(body):
        if name not in _CONTROL and not _PLAIN_TYPE.fullmatch(name) and not _GUARD.fullmatch(name):
            yield name


@lru_cache(maxsize=1)
def operators() -> frozenset[str]:
    """The names of PyTorch's operators, many of which are methods of a tensor."""
    # Not at the top: only this needs the tables of the other pack.
    from opschema_rules.aten.torchgen_table import ever_operators

    return frozenset(name.partition(".")[0] for name in ever_operators())
