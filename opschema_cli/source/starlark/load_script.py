"""Extensions that a Python file compiles and loads while it runs, with ``torch.utils.cpp_extension.load``."""

from __future__ import annotations

import re

from opschema_cli.source.python import Expr
from opschema_cli.source.starlark.setup_script import SetupScript
from opschema_cli.source.starlark.values import Value

LOAD = "torch.utils.cpp_extension.load"

_FUNCTION = re.compile(r"(?m)^def (\w+)\(\s*\)[^:\n]*:")


def with_calls(text: str) -> str:
    """Return the text of a file with a call of each of its functions without arguments: any of them may load an extension."""
    return text + "".join(f"\n{name}()" for name in dict.fromkeys(_FUNCTION.findall(text)))


class LoadScript(SetupScript):
    """A file whose calls of ``load`` make extensions."""

    def outside(self, dotted: str, positional: list[Value], named: dict[str, Value], call: Expr) -> Value:
        """Return the value of a call of a function from outside the file."""
        if dotted == LOAD:
            return self.extension(positional, named, call)
        return super().outside(dotted, positional, named, call)
