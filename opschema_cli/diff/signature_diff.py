"""Changes between two lists of parameters: of a Python function that callers call, or of a declaration without a schema string."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from opschema_cli.diff.entries import LOWERED, Output, Parameter
from opschema_cli.diff.model import Audience, Change
from opschema_cli.phrases import listed
from opschema_cli.schema.dtypes import canonical, is_dtype

_LONGEST = 200
"""Maximum number of characters of a default to evaluate."""


class Side(msgspec.Struct, frozen=True):
    """The compared list: the operator, words that name the list, and who is affected if a call fails."""

    operator: str
    title: str
    hits: tuple[Audience, ...]

    def change(
        self, kind: str, message: str, old: Parameter | None, new: Parameter | None, *, breaking: bool = True
    ) -> Change:
        """A change of a parameter."""
        before, now = (item.place if item is not None else None for item in (old, new))
        return Change(kind, self.operator, self.title + message, before, now, self.hits if breaking else ())


def parameter_changes(side: Side, old: Sequence[Parameter], new: Sequence[Parameter]) -> Iterator[Change]:
    """The changes of parameters: those of each, then the removed, added and moved ones."""
    pairs = _paired(old, new)
    before, now = {id(one) for one, _ in pairs}, {id(other) for _, other in pairs}
    for one, other in pairs:
        yield from _of_pair(side, one, other)
    named, earlier = _Catch(new), _Catch(old)
    for item in old:
        if id(item) not in before:
            yield from _removed(side, item, named)
    first_optional = _first_shifted(old, new)
    for item in new:
        if id(item) not in now and item.kind not in ("vararg", "kwarg"):
            yield _added(side, item, first_optional(item), earlier)
    yield from _moved(side, pairs, new)


def output_changes(operator: str, old: Sequence[Output], new: Sequence[Output]) -> Iterator[Change]:
    """The changes of returned values that a declaration lists."""
    if len(old) != len(new):
        message = f"it now returns {_returned(new)}; it returned {_returned(old)}"
        yield Change("returns", operator, message, None, None, ("callers", "semantics"))
        return
    for one, other in zip(old, new, strict=True):
        places = one.place, other.place
        name = f"the return `{one.name}`" if one.name else "the return"
        if one.name != other.name and one.name and other.name:
            yield Change("return-renamed", operator, f"{name} is now called `{other.name}`", *places, ("semantics",))
        yield from _dtypes(operator, name, one, other, returned=True)
        yield from _shape(operator, name, one, other)


def _returned(items: Sequence[Output]) -> str:
    return listed(item.name or item.type or "a value" for item in items) if items else "nothing"


# -- parameters --------------------------------------------------------------------------------------------------------


class _Catch:
    """The parameters of a side that accept what others do not: `*args` and `**kwargs`."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self.by_position = any(item.kind == "vararg" for item in parameters)
        self.by_keyword = any(item.kind == "kwarg" for item in parameters)

    def takes(self, item: Parameter) -> bool:
        """Whether every call that passed the parameter may still be accepted."""
        keyword = self.by_keyword or item.kind == "posonly"
        position = self.by_position or item.kind == "kwonly"
        return keyword and position


def _paired(old: Sequence[Parameter], new: Sequence[Parameter]) -> list[tuple[Parameter, Parameter]]:
    """Parameters that correspond: by name, else by position and default."""
    after = {item.name: item for item in new}
    names = {item.name for item in old}
    pairs: list[tuple[Parameter, Parameter]] = []
    for index, item in enumerate(old):
        other = after.get(item.name)
        if other is None and index < len(new) and new[index].name not in names and _is_alike(item, new[index]):
            other = new[index] if len(old) == len(new) else None
        if other is not None:
            pairs.append((item, other))
    return pairs


def _is_alike(one: Parameter, other: Parameter) -> bool:
    return (one.kind, one.role, one.type, one.default) == (other.kind, other.role, other.type, other.default)


def _of_pair(side: Side, old: Parameter, new: Parameter) -> Iterator[Change]:
    name = f"`{old.name}`"
    if old.name != new.name:
        is_breaking = old.kind not in ("posonly", "vararg", "kwarg")
        message = f"the argument {name} is now called `{new.name}`"
        yield side.change("argument-renamed", message, old, new, breaking=is_breaking)
    if (old.kind, new.kind) == ("normal", "kwonly"):
        yield side.change("keyword-only", f"{name} is now keyword-only", old, new)
    elif (old.kind, new.kind) == ("kwonly", "normal"):
        yield side.change("positional", f"{name} is now positional", old, new, breaking=False)
    elif new.kind == "posonly" and old.kind in ("normal", "kwonly"):
        yield side.change("positional-only", f"{name} cannot be passed by keyword now", old, new)
    if new.is_required and not old.is_required and new.kind != "vararg":
        yield side.change("required", f"{name} is now required; it had {_default(old)}", old, new)
    elif old.default is not None and new.default is not None and old.default != new.default:
        differs = _differ(old.default, new.default)
        if differs is not False:
            message = f"{name} now has {_default(new)}; it had {_default(old)}"
            yield side.change("default", message, old, new, breaking=bool(differs))
    if old.mutated is not None and new.mutated is not None and old.mutated != new.mutated:
        words = "is now written" if new.mutated else "is not written any more"
        yield side.change("alias", f"{name} {words}", old, new)
    yield from _type(side, old, new)
    yield from _dtypes(side.operator, name, old, new)
    yield from _shape(side.operator, name, old, new)


def _type(side: Side, old: Parameter, new: Parameter) -> Iterator[Change]:
    """Yield a change of the declared type; Python annotations reject no call, and dtypes are compared as sets."""
    is_written = old.type != new.type and bool(old.type) and bool(new.type) and not (old.dtypes or new.dtypes)
    if is_written and old.role and old.role == new.role and "?" not in (old.type, new.type):
        message = f"`{new.name}` is now of type `{new.type}`; it was `{old.type}`"
        change = side.change("type", message, old, new)
        yield change if old.role == LOWERED else msgspec.structs.replace(change, hits=("semantics",))


def _removed(side: Side, item: Parameter, named: _Catch) -> Iterator[Change]:
    if item.kind not in ("vararg", "kwarg"):
        text = f"the argument `{item.name}` was removed"
        yield side.change("argument-removed", text, item, None, breaking=not named.takes(item))
    elif not (named.by_position if item.kind == "vararg" else named.by_keyword):
        stars = "*" if item.kind == "vararg" else "**"
        message = f"it takes no `{stars}{item.name}` any more"
        yield side.change("argument-removed", message, item, None, breaking=False)  # nobody may have passed more


def _added(side: Side, item: Parameter, shifted: str, earlier: _Catch) -> Change:
    """Return the change for a new parameter; callers may have passed it before to one that accepts anything."""
    how = " without a default" if item.is_required else f" before `{shifted}`" if shifted else ""
    message = f"the argument `{item.name}` was added{how}"
    passed = earlier.by_keyword or (earlier.by_position and _by_place(item))
    return side.change("argument-added", message, None, item, breaking=bool(how) and not passed)


def _first_shifted(old: Sequence[Parameter], new: Sequence[Parameter]) -> Callable[[Parameter], str]:
    """Return a function that names the earlier positional parameter which a new one precedes; empty if it shifts none."""
    known = {item.name for item in old if item.kind in ("normal", "posonly")}
    last = max((index for index, item in enumerate(new) if item.name in known and _by_place(item)), default=-1)
    order = {id(item): index for index, item in enumerate(new)}
    return lambda item: new[last].name if _by_place(item) and order[id(item)] < last else ""


def _by_place(item: Parameter) -> bool:
    return item.kind in ("normal", "posonly")


def _moved(side: Side, pairs: Sequence[tuple[Parameter, Parameter]], new: Sequence[Parameter]) -> Iterator[Change]:
    """Yield the first parameter with a different order among those on both sides."""
    both = [(one, other) for one, other in pairs if _by_place(one) and _by_place(other) and one.role == other.role]
    order = {id(item): index for index, item in enumerate(new)}
    wanted = sorted((other for _, other in both), key=lambda item: order[id(item)])
    for (one, other), now in zip(both, wanted, strict=True):
        if now is not other:
            yield side.change("argument-moved", f"`{now.name}` is now in the place of `{one.name}`", one, now)
            return


def _default(item: Parameter) -> str:
    if item.default is None:
        return "no default" if not item.optional else "no default, and was optional"
    return f"the default `{item.default}`"


def _differ(old: str, new: str) -> bool | None:
    """Whether two defaults differ; None if one of them is neither a literal of Python or C++ nor a torch dtype."""
    values: list[object] = []
    for text in (old, new):
        dtype = text.removeprefix("torch.")
        if dtype != text and is_dtype(dtype):
            values.append(f"torch.{canonical(dtype)}")
            continue
        if _ENUMERATOR.fullmatch(text):
            values.append(text)
            continue
        try:
            values.append(ast.literal_eval(_python(text)) if len(text) <= _LONGEST else text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            return None
    return repr(values[0]) != repr(values[1])


def _python(text: str) -> str:
    """A literal of C++ as one of Python: ``true``, ``1.0f``, ``{1, 1}``."""
    if text in _TRUTH:
        return _TRUTH[text]
    number = _NUMBER.fullmatch(text)
    is_list = text.startswith("{") and text.endswith("}") and ":" not in text and not set(text[1:-1]) & set("{}\"'")
    return number[1] if number is not None else f"[{text[1:-1]}]" if is_list else text


_TRUTH = {"true": "True", "false": "False"}
_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[fFlLuU]+")
_ENUMERATOR = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")

# -- dtypes and shapes -------------------------------------------------------------------------------------------------


def _dtypes(
    operator: str, name: str, old: Parameter | Output, new: Parameter | Output, *, returned: bool = False
) -> Iterator[Change]:
    lost = [item for item in old.dtypes if item not in new.dtypes]
    gained = [item for item in new.dtypes if item not in old.dtypes]
    if not old.dtypes or not new.dtypes or not (lost or gained):
        return
    verb = ("is not returned as", "is returned as") if returned else ("does not take", "takes")
    parts = [f"{name} {verb[0]} {listed(lost, 'or')} any more"] if lost else []
    parts += [f"{name if not lost else 'it'} now {verb[1]} {listed(gained)}"] if gained else []
    hits: tuple[Audience, ...] = ("semantics",) if returned else ("callers",) if lost else ()
    yield Change("dtypes", operator, "; ".join(parts), old.place, new.place, hits)


def _shape(operator: str, name: str, old: Parameter | Output, new: Parameter | Output) -> Iterator[Change]:
    before, now = ("".join(item.shape.split()) for item in (old, new))
    if before != now:
        message = f"{name} now has {_written(new.shape)}; it had {_written(old.shape)}"
        yield Change("shape", operator, message, old.place, new.place, ("semantics",))


def _written(shape: str) -> str:
    return f"the shape `{shape}`" if shape else "no declared shape"
