"""What a tree's own specification demands.

The manifest format grew rule by rule; a tree is held to the rules that its own documents or validator state. Both
are found by their vocabulary, wherever they lie.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from opschema_cli.errors import OpschemaError
from opschema_cli.project import Project
from opschema_cli.workspace import content_digest

VOCABULARY = ("shape_rules", "workloads", "roofline", "signature", "status")
"""Words that a file which specifies or validates manifests all uses."""

FEATURES: dict[str, str] = {
    "key-format": (
        r"variant words? (?:must )?precede|variant word\s+stands before|precedes? `?\{?Direction\}?Op|direction sibling"
    ),
    "unknown-keys": r"(?<!flag )unknown (?:entry|signature) keys",
    "no-init-dims": r"`signature\.init_dims` is deprecated|(?<!flag )unknown signature keys",
    "no-opt-out": r"'parity_opt_out' is no longer|removed fields like parity_opt_out",
    "status": r"`status`\s*\|\s*yes|`status` is required|_REQUIRED_TOP = \{[^}]*\"status\"",
    "ref-api": r"\bref_api\b",
    "named-tensors": r"signature\.\{direction\} must be a dict|[Tt]ensor name (?:→|to) |[Oo]rdered dicts?\b",
    "roofline-modes": r"[Mm]ode exclusivity|modes are exclusive",
    "kernel-map-required": r"kernel_map is missing[\s\"f]*\(must be",
    "param-type": r"is not a type expression|is a Python type expression",
    "optional-trailing": r"Optional inputs are the trailing inputs|inputs come last",
    "fullgraph": r"torch_compile_fullgraph",
    "shape-alternatives": r"lists alternatives|no `?\\?\|`? alternatives|One declaration: no ellipsis",
    "output-shape": r"must declare '?shape'? or|Every output tensor's shape must be fully specified",
    "null-default": r"does not\W+admit None|may not carry `default: null`|admits? `?None`?",
    "optional": r"optional`?: `?true",
    "mutated": r"mutated`?: `?true",
    "two-workloads": r"at least (?:2|two) workloads?",
    "required-params": r"missing required param|[Pp]arams without a default must be pinned|all_required_params",
    "label-dtype": r"label\b[^.]{0,80}\bnames?\b[^.]{0,40}\bdtype|MUST NOT name a dtype",
    "workload-keys": r"Workload keys derive|shape key is derived|workloads?\[\{?i\}?\] has unknown keys",
    "roofline-strings": r"must be a non-empty string|non-empty strings",
    "kernel-map": r"kernel_map is missing|Required when `status: implemented`",
    "bench-declared": r"bench_manifest_driven must be declared|Required `true` when `status: implemented`",
    "bench-workloads": r"\bload_workloads\b",
    "kernel-map-argument": r"Slot S12|\bS12\b",
    "dispatch-call": r"Slot S13|\bS13\b",
    "infer-shapes": r"_infer_output_shapes",
    "validate-dtypes": r"_validate_dtypes",
    "empty-inputs": r"inputs: ?\{\}|at least one input tensor or one param|or one param",
    "combos": r"dtype_combos",
    "optional-none": r"admits? None but|None is admitted|whether\W+`None` is admitted",
    "kw-only": r"kw_only",
    "ctor-default": r"has manifest default|omits `default` MUST|default mismatch|[Dd]efaults? (?:must )?(?:equals?|match|agree)",
    "static-dims": r"static_dims",
    "rule-helpers": r"calls unknown",
    "no-ellipsis": r"[Nn]o ellipsis",
    "no-shape-alias": r"No shape aliasing",
    "roofline-names": r"Codegen knows how to bind the following names",
}
"""Each gated demand and the words by which a tree states it."""


@dataclass(frozen=True)
class Spec:
    """The demands that hold in one tree, and the files that state them; ``helpers`` are functions beside the manifest."""

    known: frozenset[str]
    sources: tuple[str, ...] = ()
    text: str = ""
    helpers: frozenset[str] = frozenset()

    @cached_property
    def digest(self) -> str:
        """What changes when the specification does."""
        return content_digest(
            f"{sorted(self.known)} {sorted(self.helpers)} {self.text}".encode("utf-8", "surrogatepass")
        )

    def knows(self, feature: str) -> bool:
        """Whether the tree's own specification, or config, demands ``feature``.

        Raises:
            KeyError: there is no such feature.
        """
        FEATURES[feature]
        return feature in self.known

    def mentions(self, word: str) -> bool:
        """Whether the tree's specification uses ``word`` as a whole word."""
        return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", self.text) is not None


def find_spec(project: Project, base: str, folder: str, asked: Iterable[str]) -> Spec:
    """The specification of the tree at ``base`` whose manifest lies in ``folder``.

    ``asked`` are features that config demands; ``latest`` asks for all.
    """
    for name in asked:
        if name != "latest" and name not in FEATURES:
            close = get_close_matches(name, FEATURES, 1)
            known = f"did you mean `{close[0]}`?" if close else f"known: latest, {', '.join(FEATURES)}"
            raise OpschemaError(f"tool.opschema.tileops: `spec` names no demand `{name}`; {known}")
    texts: list[str] = []
    paths: list[str] = []
    helpers: set[str] = set()
    for path in _candidates(project, base, folder):
        source = project.source(path)
        if source is not None and path.endswith(".py") and path.startswith(folder + "/"):
            helpers.update(_FUNCTION.findall(source.text))
        if source is not None and all(word in source.text for word in VOCABULARY):
            paths.append(path)
            texts.append(source.text)
    text = "\n".join(texts)
    found = FEATURES if "latest" in asked else [name for name, words in FEATURES.items() if re.search(words, text)]
    return Spec(frozenset({*found, *asked}), tuple(paths), text, frozenset(helpers))


_FUNCTION = re.compile(r"^def[ \t]+(\w+)", re.MULTILINE)


def _candidates(project: Project, base: str, folder: str) -> list[str]:
    """Documents and scripts of the tree: neither the library's own code nor its tests."""
    package = folder
    while package and f"{package.rpartition('/')[0]}/__init__.py" in project.workspace.file_set:
        package = package.rpartition("/")[0]
    found: list[str] = []
    for path in project.workspace.under(base):
        name = path.rpartition("/")[2]
        if path.startswith(folder + "/") or not path.startswith(package + "/"):
            code = path.endswith(".py") and not name.startswith(("test_", "bench_", "conftest"))
            if path.endswith(".md") or code:
                found.append(path)
    return found
