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
from typing import Any, ClassVar, Literal, get_args, get_type_hints

import msgspec
from msgspec.structs import replace

from opschema_cli.authoring import described, is_options, params_of, refuse
from opschema_cli.lint.diagnostic import Diagnostic, Severity

CODE = re.compile(r"[A-Z]{3}\d{3}\Z")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")

Check = Callable[..., Iterable[Diagnostic]]
Stage = Literal["preview", "stable", "deprecated"]
"""The maturity of a rule; a preview rule only runs if previews are enabled."""


class Part(msgspec.Struct, frozen=True):
    """A part of a rule's slow work. Parts with the same ``key`` are done one after the other in one process: they share other
    intermediate results.
    """

    key: str
    work: Callable[[], object]


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
    parts: Callable[[Any], Iterable[Part]] | None = None
    proof: str = ""
    needs: tuple[str, ...] = ()
    stage: Stage = "stable"

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
        """Run the rule on one subject."""
        if self.check is None:
            return ()
        return self.check(subject) if self.options is None else self.check(subject, options)


def rule(
    code: str,
    name: str = "",
    *,
    severity: Literal["error", "warning", "info"] = "error",
    fixable: Literal["", "safe", "unsafe"] = "",
    pure: bool = False,
    by_release: bool = False,
    candidates: Callable[[Any], Iterable[object]] | None = None,
    parts: Callable[[Any], Iterable[Part]] | None = None,
    proof: str = "",
    needs: tuple[str, ...] = (),
    stage: Stage = "stable",
) -> Callable[[Check], Rule]:
    """Make a generator a rule; the annotation of its first parameter says which subjects it sees.

    Args:
        code: three letters for the concern and three digits; never changes its meaning once published.
        name: the same in words, lower case with dashes.
        severity: what a finding counts as, unless config says otherwise.
        fixable: the safety of the fixes that its findings may carry.
        pure: its findings depend on nothing but what the subject's ``content_key`` covers, or what the subject records as read
            in its ``kept`` (see :mod:`opschema_cli.code_values`), so they may be cached.
        by_release: its findings rest on tables of a release. Where the subject's ``release_doubt`` says why none of the known
            releases is certain to apply, they are warnings that give this reason, and their fixes are unsafe.
        candidates: what in a subject has to be looked at in the light of other files. It depends on nothing but what the
            ``content_key`` covers; where there is nothing, which is remembered, the rule does not run.
        parts: what takes long in a subject, in parts that several processes can do. Each puts what it computes on a shelf of the
            project, such as that of :class:`~opschema_cli.code_values.CodeValues`, where the rule finds it.
        proof: the oracle that shows its fixes to be right, as a sentence without an end ("torch registers the operators and
            calls them"); see :mod:`opschema_cli.proof`.
        needs: what it does not run without, or sees less without, such as :data:`~opschema_cli.lint.not_checked.CPP`.
        stage: a ``"preview"`` rule runs only with ``--preview``, ``preview = true``, or where its code or name is selected; a
            ``"deprecated"`` one says in its page what to use instead.

    Raises:
        AuthorError: an argument is malformed, the function has no page or no annotation, or there is a proof and no fix.
    """
    if not isinstance(code, str):
        refuse('`@rule` needs a code and a name: @rule("ABC101", "some-name")', code)
    _check_arguments(code, name, severity, fixable, needs)
    if stage not in get_args(Stage):
        refuse(f'rule {code}: stage={stage!r}; it is "preview", "stable" or "deprecated"')
    if proof and not fixable:
        refuse(f"rule {code}: it names a proof, but has no fix")

    def record(check: Check) -> Rule:
        return replace(
            _record(check, code, name, Severity(severity)),
            fixable=fixable,
            pure=pure,
            by_release=by_release,
            candidates=candidates,
            parts=parts,
            proof=proof,
            needs=needs,
            stage=stage,
        )

    return record


def _check_arguments(code: str, name: object, severity: object, fixable: object, needs: object) -> None:
    if not CODE.match(code) or not isinstance(name, str) or not NAME.match(name):
        refuse(f"rule {code!r} {name!r}: a code is three capital letters and three digits, a name lower-case-words")
    if severity not in ("error", "warning", "info"):
        refuse(f'rule {code}: severity={severity!r}; it is "error", "warning" or "info"')
    if fixable not in ("", "safe", "unsafe"):
        refuse(f'rule {code}: fixable={fixable!r}; it is "safe" or "unsafe"')
    if not isinstance(needs, tuple):
        refuse(f"rule {code}: needs={needs!r}; it is a tuple, such as (CPP,)")


def _record(check: Check, code: str, name: str, severity: Severity) -> Rule:
    if not isinstance(check, FunctionType):
        refuse(f"rule {code}: {described(check)} is not a function")
    text = check.__doc__ or sys.modules[check.__module__].__doc__ or ""
    if not text:
        refuse(f"rule {code}: it has no docstring, so no page", check)
    types = _types(check, code)
    return Rule(code, name, severity, text, types[0], check, types[1] if len(types) > 1 else None)


def _types(check: Check, code: str) -> list[type[Any]]:
    """Return the types of a rule's parameters: its subject, and its options if it has any."""
    params = params_of(check)
    if not 1 <= len(params) <= 2:
        refuse(f"rule {code}: it takes a subject and, if it has options, these; not {len(params)} parameters", check)
    types = [_named_type(check, param) for param in params]
    if not all(isinstance(kind, type) for kind in types):
        try:
            hints = get_type_hints(check)
        except (NameError, TypeError, AttributeError) as error:
            refuse(f"rule {code}: an annotation names no type of its module: {error}", check)
        types = [hints.get(param) for param in params]
    for param, kind in zip(params, types, strict=True):
        if not isinstance(kind, type):
            refuse(f"rule {code}: annotate `{param}` with a class; the rule runs over subjects of that class", check)
    if len(types) > 1 and not is_options(types[1]):
        refuse(f"rule {code}: `{params[1]}` is annotated with `{types[1].__name__}`; options are `Options`", check)
    return types


def _named_type(check: Check, param: str) -> Any:
    """Resolve the name in a parameter's annotation in the function's module, like typing but faster."""
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
