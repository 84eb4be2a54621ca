"""The rule API: a decorator, the record it makes, and the errors of a badly made rule.

A rule is a generator over one subject. Its docstring (or its module's) is its page: a summary line, why it
matters, and ``Bad:`` and ``Good:`` examples in fences, which run as tests.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from functools import cached_property
from types import FunctionType
from typing import Any, ClassVar, Literal, get_type_hints

import msgspec
from msgspec.structs import replace

from opschema_cli.lint.diagnostic import Diagnostic, Severity

CODE = re.compile(r"[A-Z]{3}\d{3}\Z")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")

Check = Callable[..., Iterable[Diagnostic]]


class RuleError(TypeError):
    """A rule or pack is badly made; the message says which and how to mend it."""


class Rule(msgspec.Struct, frozen=True, dict=True):
    """A registered rule. ``text`` is its page as the docstring holds it, ``subject`` the type of what it looks at, ``options``
    the type of its second parameter, ``proof`` the oracle that its fixes are tested with, in words.
    """

    record_kind: ClassVar = "rule"
    code: str
    name: str
    severity: Severity
    text: str
    subject: type[Any] | None = None
    check: Check | None = None
    options: type[Any] | None = None
    fixable: Literal["", "safe", "unsafe"] = ""
    pure: bool = False
    by_release: bool = False
    candidates: Callable[[Any], Iterable[object]] | None = None
    proof: str = ""
    needs: tuple[str, ...] = ()

    @cached_property
    def doc(self) -> str:
        """Its page."""
        return inspect.cleandoc(self.text)

    @property
    def summary(self) -> str:
        """The first line of its page."""
        return self.doc.partition("\n")[0]

    @property
    def module(self) -> str:
        """The module whose function it is."""
        return "" if self.check is None else self.check.__module__

    def __call__(self, subject: object, options: object | None = None) -> Iterable[Diagnostic]:
        """Findings of the rule in one subject."""
        if self.check is None:
            return ()
        return self.check(subject) if self.options is None else self.check(subject, options)


def rule(
    code: str,
    name: str,
    *,
    severity: Literal["error", "warning", "info"] = "error",
    fixable: Literal["", "safe", "unsafe"] = "",
    pure: bool = False,
    by_release: bool = False,
    candidates: Callable[[Any], Iterable[object]] | None = None,
    proof: str = "",
    needs: tuple[str, ...] = (),
) -> Callable[[Check], Rule]:
    """Make a generator a rule; the annotation of its first parameter says which subjects it sees.

    Args:
        code: three letters for the concern and three digits; never changes its meaning once published.
        name: the same in words, lower case with dashes.
        severity: what a finding counts as, unless config says otherwise.
        fixable: the safety of the fixes that its findings may carry.
        pure: its findings depend on nothing but what the subject's ``content_key`` covers, so they may be cached by it.
        by_release: its findings rest on tables of a release. Where the subject's ``release_doubt`` says why none of the known
            releases is certain to apply, they are warnings that give this reason, and their fixes are unsafe.
        candidates: what in a subject has to be looked at in the light of other files. It depends on nothing but what the
            ``content_key`` covers; where there is nothing, which is remembered, the rule does not run.
        proof: the oracle that shows its fixes to be right, as a sentence without an end ("torch registers the operators and
            calls them"); see :mod:`opschema_cli.proof`.
        needs: what it does not run without, or sees less without, such as :data:`~opschema_cli.lint.not_checked.CPP`.

    Raises:
        RuleError: the code or name is malformed, the function has no page or no annotation, or there is a proof and no fix.
    """
    if not CODE.match(code) or not NAME.match(name):
        raise RuleError(f"rule {code!r} {name!r}: a code is three letters and three digits, a name lower-case-words")
    if proof and not fixable:
        raise RuleError(f"rule {code}: it names a proof, but has no fix")

    def record(check: Check) -> Rule:
        return replace(
            _record(check, code, name, Severity(severity)),
            fixable=fixable,
            pure=pure,
            by_release=by_release,
            candidates=candidates,
            proof=proof,
            needs=needs,
        )

    return record


def _record(check: Check, code: str, name: str, severity: Severity) -> Rule:
    text = check.__doc__ or sys.modules[check.__module__].__doc__ or ""
    if not text:
        raise RuleError(f"rule {code}: it has no docstring, so no page")
    params = _params(check)
    types = [_named_type(check, param) for param in params]
    if not all(isinstance(kind, type) for kind in types):
        hints = get_type_hints(check)
        types = [hints.get(param) for param in params]
    if not 1 <= len(params) <= 2 or not all(isinstance(kind, type) for kind in types):
        raise RuleError(f"rule {code}: it takes an annotated subject and, if it has options, their annotated struct")
    return Rule(code, name, severity, text, types[0], check, types[1] if len(types) > 1 else None)


_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def _params(check: Check) -> list[str]:
    """The names of a function's parameters."""
    if not isinstance(check, FunctionType) or vars(check) or check.__code__.co_flags & _VARIADIC:
        return list(inspect.signature(check).parameters)
    code = check.__code__
    return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])  # in a tenth of the time


def _named_type(check: Check, param: str) -> Any:
    """The type that a parameter's annotation names in the function's module: what typing would tell, in less time."""
    written = check.__annotations__.get(param)
    return check.__globals__.get(written) if isinstance(written, str) else written


class Example(msgspec.Struct, frozen=True):
    """One fenced example of a rule's page: ``bad`` or ``good``, and its fences as (info string, text)."""

    kind: Literal["bad", "good"]
    fences: tuple[tuple[str, str], ...]


_SECTION = re.compile(r"^(Bad|Good)\b[^\n]*:\s*$")
_FENCE = re.compile(r"^(\s*)```(.*)$")


def examples(doc: str) -> list[Example]:
    """The examples of a rule's page. A ``Bad…:`` or ``Good…:`` line opens one; the fences up to the next belong to it."""
    found: list[tuple[Literal["bad", "good"], list[tuple[str, str]]]] = []
    fence: tuple[str, str, list[str]] | None = None
    for line in doc.splitlines():
        mark = _FENCE.match(line)
        section = _SECTION.match(line) if fence is None else None
        if section:
            found.append(("bad" if section.group(1) == "Bad" else "good", []))
        elif mark and fence is None and found:
            fence = (mark.group(1), mark.group(2).strip(), [])
        elif mark and fence is not None:
            found[-1][1].append((fence[1], textwrap.dedent("\n".join(fence[2])) + "\n"))
            fence = None
        elif fence is not None:
            fence[2].append(line)
    return [Example(kind, tuple(fences)) for kind, fences in found if fences]
