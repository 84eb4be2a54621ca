"""Functions of a tree that take a library (``reg(m, "relu", &relu)``): the calls in them with the arguments that are passed."""

from __future__ import annotations

import re

from msgspec.structs import replace

from opschema_rules.torchlib.cpp_facts import CppArgument, CppCall, CppLibrary

_NAME = re.compile(r"(?<![\w.:>])[A-Za-z_]\w*(?!\w|\s*::)")


def bound_call(inner: CppCall, call: CppCall, helper: CppLibrary) -> CppCall:
    """A call in a helper with the arguments of the helper's own call in place of its parameters; the same if it uses none."""
    names = helper.arguments[2:]
    given = {name: item for name, item in zip(names, call.arguments, strict=False) if name}
    given.pop(helper.arguments[1], None)
    arguments = tuple(_bound(item, given) for item in inner.arguments)
    if arguments == inner.arguments:
        return inner
    first = arguments[0]
    named = inner.method != "impl" or (first.literal is not None and not first.partial)
    return replace(inner, arguments=arguments, text="" if named else inner.text)


def _bound(argument: CppArgument, given: dict[str, CppArgument]) -> CppArgument:
    """An argument with the values of the parameters that it names."""
    if argument.text in given:
        return given[argument.text]
    if argument.literal is not None:
        return argument
    text = _NAME.sub(lambda found: given[found[0]].text if found[0] in given else found[0], argument.text)
    return replace(argument, text=text) if text != argument.text else argument
