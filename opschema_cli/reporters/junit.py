"""JUnit XML: one suite with a failed test case for each diagnostic and a skipped one for each unchecked item. If there are none,
it has one case, which passed, or was skipped if nothing was linted.
"""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.reporters import Report
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.phrases import notice, unchecked
from opschema_cli.reporters.places import locate, where


def write(report: Report) -> str:
    """The document, in ASCII; characters that XML forbids are shown as escapes."""
    found, missed = len(report.diagnostics), len(report.not_checked)
    seconds = f"{report.summary.seconds:.3f}"
    totals = {"tests": str(max(found + missed, 1)), "failures": str(found), "errors": "0", "time": seconds}
    root = Element("testsuites", {"name": "opschema", **totals})
    skipped = report.summary.nothing and not found and not missed
    suite = SubElement(root, "testsuite", {"name": "opschema", **totals, "skipped": str(missed + skipped)})
    for diagnostic in report.diagnostics:
        suite.append(_case(report, diagnostic))
    for item in report.not_checked:
        name = f"{item.code} {item.name}"
        case = SubElement(suite, "testcase", {"classname": "opschema", "name": name, "time": "0"})
        SubElement(case, "skipped", {"message": unchecked(item)})
    if not found and not missed:
        case = SubElement(suite, "testcase", {"classname": "opschema", "name": "lint", "time": seconds})
        if skipped:
            SubElement(case, "skipped", {"message": notice(report)})
    if report.unread and not skipped:
        SubElement(suite, "system-out").text = notice(report)
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, encoding="us-ascii", xml_declaration=True)
    return document.decode("ascii") + "\n"


def _case(report: Report, diagnostic: Diagnostic) -> Element:
    place = locate(report, diagnostic.place)
    path, message = visible(diagnostic.place.path), visible(diagnostic.message)
    at = visible(where(report, diagnostic.place))
    file = {"file": path, "line": str(place.line)} if path else {}
    name = visible(f"{diagnostic.code} {diagnostic.name}") + at.removeprefix(path).replace(":", " ", 1)
    case = Element("testcase", {"classname": path or "opschema", "name": name, **file, "time": "0"})
    failure = SubElement(case, "failure", {"type": diagnostic.severity.value, "message": message})
    lines = [f"{at}: {message}" if at else message]
    for related in diagnostic.related:
        other = locate(report, related.place)
        lines.append(visible(f"{related.place.path}:{other.line}:{other.column}: {related.message}"))
    if diagnostic.ops:
        lines.append(visible(f"ops: {', '.join(diagnostic.ops)}"))
    failure.text = "\n".join(lines)
    return case
