"""Names of the exceptions that Python has built in."""

from __future__ import annotations

import builtins

BUILTIN_ERRORS: dict[str, type[BaseException]] = {
    name: item for name, item in vars(builtins).items() if isinstance(item, type) and issubclass(item, BaseException)
}
ERRORS = frozenset(BUILTIN_ERRORS)
