"""SARIF 2.1.0, for code scanning: rules with their pages, results with both sides and their fixes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from opschema_cli import __version__
from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, NotChecked, Place, Related, Severity
from opschema_cli.reporters import Report, RuleInfo
from opschema_cli.reporters.phrases import notice, unchecked
from opschema_cli.reporters.places import Region, fingerprints, locate, region

Json: TypeAlias = "str | int | bool | Sequence[Json] | Mapping[str, Json]"

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LONGEST_DESCRIPTION = 1024
"""Characters of ``fullDescription`` that GitHub's code scanning accepts; ``help`` has the entire page."""

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def write(report: Report) -> str:
    """A log of one run; columns count characters, paths are relative to ``SRCROOT``."""
    rules = _rules(report)
    indices = {code: index for index, code in enumerate(rules)}
    results = zip(report.diagnostics, fingerprints(report), strict=True)
    driver: Json = {
        "name": "opschema",
        "version": __version__,
        "rules": [_rule(code, rule) for code, rule in rules.items()],
    }
    run: Json = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {"SRCROOT": {"uri": report.root.absolute().as_uri().rstrip("/") + "/"}},
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(report, diagnostic, indices[diagnostic.code], fingerprint) for diagnostic, fingerprint in results
        ],
        **_invocations(report),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _invocations(report: Report) -> Mapping[str, Json]:
    """Notifications of the tool where nothing was linted, or something was not read or checked; they belong to no file."""
    text = notice(report)
    notifications: list[Json] = [_unchecked(item) for item in report.not_checked]
    if text:
        level = "warning" if report.summary.nothing else "note"
        notifications.append({"level": level, "message": {"text": _literal(text)}})
    invocation: Json = {"executionSuccessful": True, "toolExecutionNotifications": notifications}
    return {"invocations": [invocation]} if notifications else {}


def _unchecked(item: NotChecked) -> Json:
    return {
        "descriptor": {"id": item.code, "name": item.name},
        "level": _LEVELS[item.severity],
        "message": {"text": _literal(unchecked(item))},
        "properties": {"rules": [*item.rules], "files": [*item.files]},
    }


def _rules(report: Report) -> dict[str, RuleInfo]:
    """Return the rules that reported something, by code. The first diagnostic describes a rule that is not in the report."""
    found = {
        item.code: report.rules.get(item.code) or RuleInfo(item.name, item.name, "", item.severity)
        for item in report.diagnostics
    }
    return dict(sorted(found.items()))


def _rule(code: str, rule: RuleInfo) -> Json:
    page = _linked(rule.doc or rule.summary, rule.uri)
    return {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": _description(rule.doc) or rule.summary},
        "help": {"text": page, "markdown": page},
        **({"helpUri": rule.uri} if rule.uri else {}),
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _linked(page: str, uri: str) -> str:
    """A page whose links to other pages hold wherever it is shown."""
    return re.sub(r"\]\((?=[\w-]+\.md[)#])", f"]({uri.rpartition('/')[0]}/", page) if uri else page


def _description(page: str) -> str:
    """The paragraphs of a page up to its first example, without its line ends: as many as GitHub shows."""
    prose = re.split(r"(?m)^(?:Bad|Good)\b[^\n]*:$|^```", page, maxsplit=1)[0]
    text = ""
    for paragraph in re.split(r"\n\s*\n", prose.strip()):
        lines = re.sub(r"\s*\n\s*(?!- )", " ", paragraph.strip())  # those of a list stay
        longer = f"{text}\n\n{lines}".lstrip()
        if len(longer) > _LONGEST_DESCRIPTION:
            break
        text = longer
    return text


def _result(report: Report, diagnostic: Diagnostic, index: int, fingerprint: str) -> Json:
    related = [_related(report, number, other) for number, other in enumerate(diagnostic.related, 1)]
    fixes = _fixes(report, diagnostic.fix) if diagnostic.fix else []
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": index,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": _literal(diagnostic.message)},
        "locations": [{"physicalLocation": _physical(report, diagnostic.place)}] if diagnostic.place.path else [],
        **({"relatedLocations": related} if related else {}),
        "partialFingerprints": {"opschemaFingerprint/v1": fingerprint},
        **({"fixes": fixes} if fixes else {}),
        **({"properties": {"ops": [*diagnostic.ops]}} if diagnostic.ops else {}),
    }


def _related(report: Report, number: int, related: Related) -> Json:
    return {
        "id": number,
        "physicalLocation": _physical(report, related.place),
        "message": {"text": _literal(related.message)},
    }


def _literal(message: str) -> str:
    """A message in which ``[text](target)`` stays text: SARIF would make it a link (3.11.6)."""
    return message.replace("[", "\\[").replace("]", "\\]") if "](" in message else message


def _physical(report: Report, place: Place) -> Json:
    return {"artifactLocation": _artifact(place.path), "region": _region(locate(report, place))}


def _artifact(path: str) -> Json:
    """Return the location of a file: relative to the root, or absolute for a file outside of it, such as one of an installed
    package.
    """
    if Path(path).is_absolute():
        return {"uri": f"file://{quote(path, errors='surrogateescape')}"}
    return {"uri": quote(path, errors="surrogateescape"), "uriBaseId": "SRCROOT"}


def _region(place: Region) -> Json:
    return {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }


def _fixes(report: Report, fix: Fix) -> Sequence[Json]:
    """Return the fix, or nothing if one of its files cannot be read and so the places are not known."""
    files: dict[str, list[FileEdit]] = {}
    for edit in fix.edits:
        files.setdefault(edit.path, []).append(edit)
    if not files or any(report.sources(path) is None for path in files):
        return []
    return [
        {
            "description": {"text": _literal(fix.title)},
            "artifactChanges": [_change(report, path, edits) for path, edits in files.items()],
            "properties": {"safety": fix.safety, "whyUnsafe": fix.why_unsafe},
        }
    ]


def _change(report: Report, path: str, edits: Iterable[FileEdit]) -> Json:
    source = report.sources(path)
    return {
        "artifactLocation": _artifact(path),
        "replacements": [
            {
                "deletedRegion": _region(region(source, edit.edit.span)),
                "insertedContent": {"text": edit.edit.replacement},
            }
            for edit in edits
        ],
    }
