"""Values of expressions: tensors as rules see them, values of names, and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn, TypeAlias

import msgspec


class Tensor(msgspec.Struct, frozen=True):
    """A tensor as rules see it: its shape, or None if it is not known, and its name."""

    shape: tuple[int, ...] | None = None
    name: str = "tensor"

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        Raises:
            Unbound: the shape is not known.
        """
        if self.shape is None:
            raise Unbound(f"{self.name}.shape")
        return len(self.shape)

    def __bool__(self) -> NoReturn:
        raise TypeError("a tensor has no truth value; test `is None` or its shape")


Value: TypeAlias = (
    "bool | int | float | str | range | type | Tensor "
    "| Sequence[Value] | AbstractSet[Value] | Mapping[Any, Value] | None"
)
"""Value of a name. Containers are tuples, lists, sets, frozensets and dicts; they are only read."""


class EvaluateError(Exception):
    """An expression has no value; ``offset`` counts the characters of its text, -1 where none is known."""

    wording = "{}"

    def __init__(self, subject: str, offset: int = -1) -> None:
        super().__init__(subject, offset)
        self.subject = subject
        self.offset = offset

    @property
    def reason(self) -> str:
        """The error as text."""
        return self.wording.format(self.subject)

    def __str__(self) -> str:
        return self.reason


class Unbound(EvaluateError):  # noqa: N818 - a state of knowledge; the solver goes on from it
    """A name (``C``), or the shape of a tensor (``x.shape``), has no value."""

    wording = "`{}` has no value"

    @property
    def name(self) -> str:
        """The name, or ``name.shape``."""
        return self.subject


class Unsupported(EvaluateError):  # noqa: N818
    """The expression uses syntax, an attribute or a function outside the whitelist."""

    wording = "{} cannot be used here"


class BudgetExceeded(EvaluateError):  # noqa: N818
    """The expression exceeds its :class:`Budget`."""

    wording = "it takes more {} than an expression may"

    @property
    def which(self) -> str:
        """The exhausted resource: ``steps``, ``size``, ``time`` or ``depth``."""
        return self.subject


class EvaluationError(EvaluateError):
    """Python would raise here: a wrong type, index, key or value, or a division by zero."""


FAILURES = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(EvaluateError, RecursionError, MemoryError),
)


def located(error: Exception, offset: int) -> EvaluateError:
    """``error`` as one of ours, at ``offset`` unless a node further in has claimed it."""
    if isinstance(error, RecursionError):
        return BudgetExceeded("depth", offset)
    if isinstance(error, MemoryError):
        return BudgetExceeded("size", offset)
    if isinstance(error, KeyError):  # whose text is the key, however large
        return EvaluationError("there is no such key", offset)
    if not isinstance(error, EvaluateError):
        return EvaluationError(str(error)[:300], offset)
    if error.offset < 0:
        error.offset = offset
    return error
