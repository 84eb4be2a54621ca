"""The kernels of pytorch/xla (``aten/xla-head``), judged by PyTorch 2.13 (``aten/torch-2.13``), and with faults put in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.aten.detection import AtenOptions
from opschema_rules.aten.kernel_tree import Method
from opschema_rules.aten.kernels import BackendKernels
from opschema_rules.aten.pack import PACK

SOURCE, YAML = "torch_xla/csrc/aten_xla_type.cpp", "codegen/xla_native_functions.yaml"
NATIVE = "ATen/native/native_functions.yaml"

Fault = Callable[[str, Method], str]


class Tree:
    """The backend's YAML and its C++, which may be replaced."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.source = project.workspace.source(SOURCE).text

    def kernels(self, source: str) -> BackendKernels:
        loaded = PACK.load(self.project.with_overlay({SOURCE: source}), AtenOptions())
        (found,) = (item for item in loaded.everything() if isinstance(item, BackendKernels))
        return found

    def findings(self, source: str) -> list[Diagnostic]:
        found = self.kernels(source)
        rules = (rule for rule in PACK.rules if rule.subject is BackendKernels)
        return [item for rule in rules for item in rule(found)]

    def cases(self) -> Iterator[Method]:
        """Every fiftieth kernel that has no overloads."""
        methods = [method for _, method in self.kernels(self.source).paired]
        names = Counter(method.name for method in methods)
        yield from [method for method in methods if names[method.name] == 1][::50]


@pytest.fixture
def tree(corpus: Path, tmp_path: Path) -> Tree:
    paths = {SOURCE: corpus / f"aten/xla-head/{SOURCE}", YAML: corpus / f"aten/xla-head/{YAML}"}
    paths[NATIVE] = corpus / f"aten/torch-2.13/{NATIVE}"
    if not all(path.is_file() for path in paths.values()):
        pytest.skip("aten/xla-head and aten/torch-2.13 are not below OPSCHEMA_CORPUS")
    return Tree(Project(Workspace(tmp_path, {name: path.read_text() for name, path in paths.items()})))


def test_every_kernel_has_its_operator(tree: Tree) -> None:
    found = tree.kernels(tree.source)
    assert tree.findings(tree.source) == []
    assert len(found.paired) == sum(not item.generated for item in found.asked) == 294


def removed(text: str, method: Method) -> str:
    return text[: method.written.span.start] + text[_end(text, method) :]


def commented(text: str, method: Method) -> str:
    end = _end(text, method)
    return (
        text[: method.written.span.start]
        + "#if 0\n"
        + text[method.written.span.start : end]
        + "\n#endif\n"
        + text[end:]
    )


def _end(text: str, method: Method) -> int:
    """The end of a kernel: the first brace that closes at the beginning of a line."""
    return text.index("\n}\n", method.written.span.end) + 3


@pytest.mark.parametrize("fault", [removed, commented])
def test_a_kernel_that_is_gone_is_missing(tree: Tree, fault: Fault) -> None:
    for method in tree.cases():
        (found,) = tree.findings(fault(tree.source, method))
        assert f"`XLANativeFunctions` defines no `{method.name}`, the kernel of " in found.message


def renamed(text: str, method: Method) -> str:
    start, end = method.written.name_span
    return f"{text[:start]}zz_of_mine{text[end:]}"


def test_a_kernel_under_another_name_is_missing_and_not_listed(tree: Tree) -> None:
    for method in tree.cases():
        missing, unlisted = tree.findings(renamed(tree.source, method))
        assert f"defines no `{method.name}`" in missing.message
        assert "has the kernel `XLANativeFunctions::zz_of_mine`" in unlisted.message


def with_one_more(text: str, method: Method) -> str:
    end = method.written.span.end - 1
    return f"{text[:end]}{', ' if method.written.parameters else ''}bool extra{text[end:]}"


def with_one_less(text: str, method: Method) -> str:
    start, end = method.written.parameters[-1].span
    return text[: text.rindex(",", 0, start)] + text[end:]


def returning_nothing(text: str, method: Method) -> str:
    start = method.written.span.start
    return f"{text[:start]}void{text[start:].removeprefix(method.written.returns)}"


@pytest.mark.parametrize("fault", [with_one_more, with_one_less, returning_nothing])
def test_a_kernel_with_another_signature_has_drifted(tree: Tree, fault: Fault) -> None:
    for method in tree.cases():
        if len(method.written.parameters) > 1 and method.written.returns != "void":
            (found,) = tree.findings(fault(tree.source, method))
            assert found.message.startswith(f"`XLANativeFunctions::{method.name}` ")
