"""JUnit XML: one suite, a failed test case a diagnostic; when there is none, one case, passed, or skipped if nothing was linted."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.reporters import Report
from opschema_cli.reporters.escape import visible
from opschema_cli.reporters.phrases import notice
from opschema_cli.reporters.places import locate


def write(report: Report) -> str:
    """The document, in ASCII; characters that XML forbids are shown as escapes."""
    found = len(report.diagnostics)
    seconds = f"{report.summary.seconds:.3f}"
    totals = {"tests": str(max(found, 1)), "failures": str(found), "errors": "0", "time": seconds}
    root = Element("testsuites", {"name": "opschema", **totals})
    skipped = report.summary.nothing and not found
    suite = SubElement(root, "testsuite", {"name": "opschema", **totals, "skipped": str(int(skipped))})
    for diagnostic in report.diagnostics:
        suite.append(_case(report, diagnostic))
    if not found:
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
    where = f"{place.line}:{place.column}"
    case = Element(
        "testcase",
        {
            "classname": path,
            "name": visible(f"{diagnostic.code} {diagnostic.name} {where}"),
            "file": path,
            "line": str(place.line),
            "time": "0",
        },
    )
    failure = SubElement(case, "failure", {"type": diagnostic.severity.value, "message": message})
    lines = [f"{path}:{where}: {message}"]
    for related in diagnostic.related:
        other = locate(report, related.place)
        lines.append(visible(f"{related.place.path}:{other.line}:{other.column}: {related.message}"))
    if diagnostic.ops:
        lines.append(visible(f"ops: {', '.join(diagnostic.ops)}"))
    failure.text = "\n".join(lines)
    return case
