"""Which demands a tree makes: by the words of its documents and validator, by the keys of its manifests, by config."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.diagnostic import Severity
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.tileops.detection import TileopsOptions
from opschema_rules.tileops.features import FEATURES, LATEST
from opschema_rules.tileops.load import load
from opschema_rules.tileops.model import Manifest
from opschema_rules.tileops.pack import describe
from opschema_rules.tileops.spec import Spec

VOCABULARY = "status, signature, workloads, shape_rules, roofline.\n"
MANIFEST = """\
ExampleFwdOp:
  signature:
    inputs: {x: {dtype: float16}}
    outputs: {y: {dtype: float16}}
  workloads: []
  roofline: {}
"""


def project_of(files: Mapping[str, str]) -> Project:
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), files)
        assert workspace.files
    return Project(workspace)


def spec_of(manifest: str = MANIFEST, *asked: str, files: Mapping[str, str] | None = None) -> Spec:
    project = project_of({"kit/manifest/a.yaml": manifest, **(files or {})})
    loaded = load(project, TileopsOptions(spec=list(asked)))
    return next(item.spec for item in loaded.subjects if isinstance(item, Manifest))


def stated(text: str, path: str = "docs/manifest.md") -> set[str]:
    return set(spec_of(files={path: VOCABULARY + text}).known)


def test_a_tree_that_says_nothing_makes_no_demand() -> None:
    assert spec_of().known == frozenset()
    assert stated("") == set()


def test_only_a_file_that_speaks_of_manifests_counts() -> None:
    assert spec_of(files={"docs/other.md": "An entry has at least two workloads."}).known == frozenset()
    assert stated("An entry has at least two workloads.") == {"two-workloads"}


@pytest.mark.parametrize(
    "text",
    [
        "An entry has at least two workloads.",
        "An entry has at least\ntwo workloads.",
        "> An entry has at least two rows.",
        'fail(f"{name} needs at least "\n     f"two workloads")',
        'fail("it needs at least two "\n     "workloads")',
    ],
)
def test_words_are_found_wherever_their_line_breaks(text: str) -> None:
    assert stated(text, "tools/check.py") == {"two-workloads"}


@pytest.mark.parametrize("text", ["at least two inputs; workloads", "at least twenty workloads", "two workloads"])
def test_other_words_are_not(text: str) -> None:
    assert stated(text) == set()


def test_the_place_is_where_it_is_first_stated() -> None:
    files = {"docs/manifest.md": VOCABULARY + "One.\nAt most, at least two\nrows.\n"}
    project = project_of({"kit/manifest/a.yaml": MANIFEST, **files})
    facts = {fact.name: fact for fact in describe(project, TileopsOptions())[0].facts}
    assert (facts["two-workloads"].value, facts["two-workloads"].note) == ("on", "docs/manifest.md:3")
    assert facts["status"].value == "off"


def using(attributes: str, param: str = "{type: int}") -> str:
    return MANIFEST.replace("x: {dtype: float16}", f"x: {{dtype: float16, {attributes}}}").replace(
        "  workloads", f"    params: {{n: {param}}}\n  workloads", 1
    )


def test_a_key_in_use_shows_that_the_tree_knows_it() -> None:
    assert spec_of(using("mutated: true")).known == {"mutated"}
    assert spec_of(using("layout: x", "{type: int, kw_only: true}")).known == {"kw-only"}
    place = spec_of(using("mutated: true")).places["mutated"]
    assert (place.path, using("mutated: true")[slice(*place.span)]) == ("kit/manifest/a.yaml", "mutated")


@pytest.mark.parametrize(
    "manifest",
    [
        using("mutated: false"),
        using("mutated: 'true'"),
        using("mutated: [true]"),
        using("x: {mutated: true}"),
        using("layout: x", "{mutated: true}"),
        using("mutated: true") + using("mutated: false").replace("Example", "Other"),
        MANIFEST + "# mutated: true\n",
        MANIFEST.replace("roofline: {}", "roofline: {mutated: true}"),
        # It was in use, and meant less, for as long as variants stood for what a call leaves out.
        using("optional: true"),
    ],
)
def test_a_key_that_may_mean_something_else_shows_nothing(manifest: str) -> None:
    assert spec_of(manifest).known == frozenset()


@pytest.mark.parametrize(
    "manifest", ["- a", "A: 3", "A: {signature: {inputs: [x]}}", "A: {signature: &a {inputs: *a}}"]
)
def test_malformed_entries_show_nothing(manifest: str) -> None:
    text = f"{MANIFEST}{manifest}\n" if manifest.startswith("A") else MANIFEST
    files = {"kit/manifest/b.yaml": f"# mutated kw_only\n{manifest}\n"}
    assert spec_of(text + "# mutated kw_only\n", files=files).known == frozenset()


def test_config_asks_for_one_demand_or_all() -> None:
    assert spec_of(MANIFEST, "status").known == {"status"}
    assert spec_of(MANIFEST, "latest").known == LATEST | {"latest"}
    assert spec_of(MANIFEST, "dispatch-in-init").known == {"dispatch-in-init"}
    assert set(FEATURES) - LATEST == {"dispatch-in-init"}
    with pytest.raises(OpschemaError, match="no requirement `statsu`; did you mean `status`"):
        spec_of(MANIFEST, "statsu")


def test_the_description_names_every_demand_and_how_to_turn_one_on() -> None:
    [found] = describe(project_of({"kit/manifest/a.yaml": MANIFEST}), TileopsOptions())
    assert found.title == "kit/manifest"
    assert (found.facts[0].name, found.facts[0].value) == ("specification", "none")
    assert [fact.name for fact in found.facts[1:]] == list(FEATURES)
    assert {fact.value for fact in found.facts[1:]} == {"off"}
    assert [fact.note for fact in found.facts[1:]] == [feature.meaning for feature in FEATURES.values()]
    assert 'name it in `spec` of `[tool.opschema.tileops]`: `spec = ["key-format"]`' in found.hint


def test_nothing_is_left_to_turn_on_when_all_is_asked_for() -> None:
    [found] = describe(project_of({"kit/manifest/a.yaml": MANIFEST}), TileopsOptions(spec=["latest"]))
    on = {(fact.value, fact.note) for fact in found.facts[1:] if fact.name in LATEST}
    assert on == {("on", "requested by `spec`")}
    assert found.hint == ""


def test_every_manifest_is_described() -> None:
    files = {f"{kit}/manifest/a.yaml": MANIFEST for kit in ("one", "two")}
    files["two/docs/spec.md"] = VOCABULARY
    found = describe(project_of(files), TileopsOptions())
    assert [item.title for item in found] == ["one/manifest", "two/manifest"]


@pytest.mark.parametrize(
    "sentence",
    [
        "R7. Every output tensor's shape must be fully specified via `shape`; it may be a rule.",
        "Outputs should be complete: every output must declare shape or a rule.",
    ],
)
def test_a_demand_counts_as_the_specification_says(sentence: str) -> None:
    files = {"docs/spec.md": f"{VOCABULARY}\n\nAll of it should be read.\n\n{sentence} It should be short.\n"}
    found = spec_of(MANIFEST, files=files)
    assert found.severity("output-shape", Severity.WARNING) is Severity.ERROR
    assert found.severity("kw-only", Severity.INFO) is Severity.INFO


def test_a_demand_of_what_should_be_counts_less() -> None:
    files = {
        "docs/spec.md": f"{VOCABULARY}\n\nShapes should be plain: no ellipsis should stand there.\nThey must be text.\n"
    }
    assert spec_of(MANIFEST, files=files).severity("no-ellipsis", Severity.ERROR) is Severity.WARNING


def test_the_shapes_that_are_checked_are_counted() -> None:
    tilekit = Path(__file__).parents[3] / "fixtures/tilekit"
    shapes = describe(Project(Workspace(tilekit)), TileopsOptions())[-1]
    assert [(fact.name, fact.value) for fact in shapes.facts] == [
        ("returned shapes", "12 of 12"),
        ("shape rules", "27 of 27"),
    ]
