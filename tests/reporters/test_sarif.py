"""SARIF: valid against the OASIS schema (README.md tells its origin), and what code scanning reads of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft4Validator
from msgspec.structs import replace

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place, Related
from opschema_cli.reporters import Report, load_writer
from opschema_cli.source.text import Edit, Source, Span

Make = Callable[..., Report]
SCHEMA = json.loads(Path(__file__).with_name("sarif-schema-2.1.0.json").read_text(encoding="utf-8"))


def run_of(report: Report) -> Any:
    """The one run of the report's log, which must be valid."""
    log = json.loads(load_writer("sarif")(report))
    Draft4Validator(SCHEMA).validate(log)
    (run,) = log["runs"]
    return run


def test_result(make_report: Make, differs: Diagnostic, status: Diagnostic) -> None:
    run = run_of(make_report(differs, status))
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["originalUriBaseIds"] == {"SRCROOT": {"uri": "file:///repo/"}}
    fingerprint = run["results"][0].pop("partialFingerprints")["opschemaFingerprint/v1"]
    assert len(fingerprint) == 32
    assert run["results"][0] == {
        "ruleId": "SIG110",
        "ruleIndex": 1,
        "level": "error",
        "message": {
            "text": "`eps` defaults to `1e-5` in the manifest and to `1e-6` in `__init__()`. Give both the same default"
        },
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "ops/norm.yaml", "uriBaseId": "SRCROOT"},
                    "region": {"startLine": 3, "startColumn": 33, "endLine": 3, "endColumn": 37},
                }
            }
        ],
        "relatedLocations": [
            {
                "id": 1,
                "physicalLocation": {
                    "artifactLocation": {"uri": "ops/norm.py", "uriBaseId": "SRCROOT"},
                    "region": {"startLine": 2, "startColumn": 37, "endLine": 2, "endColumn": 41},
                },
                "message": {"text": "the default that runs"},
            }
        ],
        "fixes": [
            {
                "description": {"text": "set the manifest's default to `1e-6`"},
                "artifactChanges": [
                    {
                        "artifactLocation": {"uri": "ops/norm.yaml", "uriBaseId": "SRCROOT"},
                        "replacements": [
                            {
                                "deletedRegion": {
                                    "startLine": 3,
                                    "startColumn": 33,
                                    "endLine": 3,
                                    "endColumn": 37,
                                },
                                "insertedContent": {"text": "1e-6"},
                            }
                        ],
                    }
                ],
                "properties": {"safety": "safe", "whyUnsafe": ""},
            }
        ],
        "properties": {"ops": ["RMSNorm"]},
    }


def test_rules_with_their_pages(make_report: Make, differs: Diagnostic, status: Diagnostic) -> None:
    """SIG110, which the report describes, and MAN101, which only a diagnostic knows; not SIG999, which found nothing."""
    run = run_of(make_report(differs, status))
    assert run["tool"]["driver"]["rules"] == [
        {
            "id": "MAN101",
            "name": "status",
            "shortDescription": {"text": "status"},
            "fullDescription": {"text": "status"},
            "help": {"text": "status", "markdown": "status"},
            "defaultConfiguration": {"level": "warning"},
        },
        {
            "id": "SIG110",
            "name": "default-differs",
            "shortDescription": {"text": "A default differs."},
            "fullDescription": {"text": "A default differs.\n\nPage."},
            "help": {"text": "A default differs.\n\nPage.", "markdown": "A default differs.\n\nPage."},
            "helpUri": "https://example.org/rules/SIG110.md",
            "defaultConfiguration": {"level": "error"},
        },
    ]
    assert [result["ruleIndex"] for result in run["results"]] == [1, 0]


PAGE = """\
A summary.

Prose over
two lines, with a [link](SIG101.md):

- one item
  over two lines;
- another.

Bad, with a reason:

```python
bad
```
"""


def test_a_description_is_the_prose_before_the_examples(make_report: Make, differs: Diagnostic) -> None:
    report = make_report(differs)
    info = replace(report.rules["SIG110"], doc=PAGE)
    (rule,) = run_of(replace(report, rules={"SIG110": info}))["tool"]["driver"]["rules"]
    prose = "Prose over two lines, with a [link](SIG101.md):"
    assert rule["fullDescription"]["text"] == f"A summary.\n\n{prose}\n\n- one item over two lines;\n- another."
    assert rule["help"]["markdown"] == PAGE.replace("(SIG101.md)", "(https://example.org/rules/SIG101.md)")


def test_a_description_ends_with_a_paragraph_before_githubs_limit(make_report: Make, differs: Diagnostic) -> None:
    report = make_report(differs)
    info = replace(report.rules["SIG110"], doc="A summary.\n\n" + "word " * 100 + "\n\n" + "word " * 200)
    (rule,) = run_of(replace(report, rules={"SIG110": info}))["tool"]["driver"]["rules"]
    assert rule["fullDescription"]["text"] == "A summary.\n\n" + ("word " * 100).strip()


def test_a_clean_run_has_no_results_and_no_rules(make_report: Make) -> None:
    run = run_of(make_report())
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b/100%.yaml", "a%20b/100%25.yaml"),
        ("字.py", "%E5%AD%97.py"),
        ("c:x.py", "c%3Ax.py"),
        ("latin\udce9.py", "latin%E9.py"),
    ],
)
def test_paths_become_uris(path: str, uri: str, make_report: Make) -> None:
    run = run_of(make_report(Diagnostic("m", Place(path, Span(0, 0)), code="A1", name="n")))
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_a_message_makes_no_link(make_report: Make) -> None:
    linked = Diagnostic("see [here](https://x.example), not list[int]", Place("a", Span(0, 0)), code="A1")
    assert run_of(make_report(linked))["results"][0]["message"] == {
        "text": "see \\[here\\](https://x.example), not list\\[int\\]"
    }


def test_a_fix_of_an_unreadable_file_is_left_out(make_report: Make, differs: Diagnostic) -> None:
    fix = Fix("t", (FileEdit("gone.py", Edit(Span(0, 1), "x")),))
    result = run_of(make_report(msgspec.structs.replace(differs, fix=fix)))["results"][0]
    assert "fixes" not in result


def test_fingerprints_survive_moved_lines(make_report: Make, differs: Diagnostic) -> None:
    """Four lines above move the place; two equal findings on one line are told apart."""

    def fingerprints(report: Report) -> list[str]:
        results = run_of(report)["results"]
        return [result["partialFingerprints"]["opschemaFingerprint/v1"] for result in results]

    before = make_report(differs, differs)
    path, (start, end) = differs.place.path, differs.place.span
    text = before.sources(path)
    assert text is not None
    moved = msgspec.structs.replace(differs, place=Place(path, Span(start + 4, end + 4)), fix=None)
    after = replace(before, diagnostics=[moved, moved], sources={path: Source(path, "\n" * 4 + text.text)}.get)
    assert fingerprints(before) == fingerprints(after)
    assert len(set(fingerprints(before))) == 2


def test_related_places_keep_their_numbers(make_report: Make, differs: Diagnostic) -> None:
    twice = msgspec.structs.replace(differs, related=(Related(differs.place, "a"), Related(differs.place, "b")))
    related = run_of(make_report(twice))["results"][0]["relatedLocations"]
    assert [(place["id"], place["message"]["text"]) for place in related] == [(1, "a"), (2, "b")]


def test_a_related_file_outside_of_the_root_is_named_by_its_whole_path(make_report: Make, differs: Diagnostic) -> None:
    outside = Related(Place("/opt/my torch/native_functions.yaml", Span(0, 0)), "PyTorch declares it here")
    (place,) = run_of(make_report(msgspec.structs.replace(differs, related=(outside,))))["results"][0][
        "relatedLocations"
    ]
    assert place["physicalLocation"]["artifactLocation"] == {"uri": "file:///opt/my%20torch/native_functions.yaml"}
