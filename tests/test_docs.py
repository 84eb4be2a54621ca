"""The generated pages of the documentation are what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from opschema_cli.config import NO_KEYS, Config
from opschema_cli.lint.docs import doc_files
from opschema_cli.lint.lazy_pack import MIGRATIONS, LazyPack, catalogue_text
from opschema_cli.lint.registry import load_registry
from opschema_cli.migrate.docs import catalogue_text as migration_catalogue
from opschema_cli.migrate.docs import doc_files as migration_files
from opschema_cli.migrate.engine import load_migrations
from tests.verify import faults

ROOT = Path(__file__).parent.parent
RULES = ROOT / "docs" / "rules"
REPOSITORY = "https://github.com/opschema/opschema"


def test_every_rule_has_a_current_page_and_no_page_is_stale() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in RULES.glob("*.md")}
    assert written == doc_files(load_registry().rules), "run `make docs`"


def test_every_rule_has_the_address_of_its_page() -> None:
    registry = load_registry()
    pages = {rule.code: page for rule, page in registry.described(registry.rules)}
    assert pages == {code: f"{REPOSITORY}/blob/main/docs/rules/{code}.md" for code in registry.rules}
    assert all((RULES / f"{code}.md").is_file() for code in pages)


def test_every_pack_has_a_current_catalogue() -> None:
    packs = [pack for pack in load_registry().all_packs if isinstance(pack, LazyPack)]
    assert len(packs) > 2
    for pack in packs:
        assert pack.catalogue.read_text(encoding="utf-8") == catalogue_text(pack.pack.rules), "run `make docs`"
        listed = pack.catalogue.with_name(MIGRATIONS).read_text(encoding="utf-8")
        assert listed == migration_catalogue(load_migrations(pack.pack)), "run `make docs`"


def test_every_migration_has_a_current_page_and_no_page_is_stale() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "migrations").glob("*.md")}
    migrations = [item for pack in load_registry().packs for item in load_migrations(pack)]
    assert len(migrations) > 5
    assert written == migration_files(migrations), "run `make docs`"


def test_the_page_of_the_configuration_has_every_key() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    sample = page.partition("```toml\n")[2].partition("```\n")[0]
    fields = {field.encode_name for field in msgspec.structs.fields(Config)}.difference(NO_KEYS)
    for key in fields:
        assert re.search(rf"^({key} = |\[tool\.opschema\.{key}[\].])", sample, re.MULTILINE), key
    for pack in load_registry().all_packs:
        table = sample.partition(f"[tool.opschema.{pack.name}]")[2].partition("\n[")[0]
        for field in msgspec.structs.fields(pack.options):
            assert re.search(rf"^{field.encode_name} = ", table, re.MULTILINE), f"{pack.name}: {field.encode_name}"


def test_the_page_of_seeded_faults_is_current() -> None:
    assert (ROOT / "docs" / "verify-faults.md").read_text(encoding="utf-8") == faults.page(), "run `make docs`"


def test_links_of_the_documents_lead_to_files() -> None:
    for document in (ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorials/*.md")):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_links_of_the_readme_to_this_repository_lead_to_files() -> None:
    targets = re.findall(rf"\]\({REPOSITORY}/blob/main/([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / target).is_file()] == []


def test_nothing_says_to_install_the_package_of_another_project() -> None:
    """`opschema` on package indexes is another project's; `opschema-cli` is this one."""
    wrong = re.compile(r"""pip install (?:-\S+ )*['"]?opschema(?!-cli)|`opschema\[""")
    roots = ("opschema_cli", "rules", "docs", "fixtures", "README.md", "Makefile", ".pre-commit-hooks.yaml")
    files = [path for root in roots for path in (ROOT / root, *(ROOT / root).rglob("*")) if path.is_file()]
    texts = {path: path.read_text(encoding="utf-8") for path in files if path.suffix in (".py", ".md", ".yaml", "")}
    assert len(texts) > 1000
    assert [str(path) for path, text in texts.items() if wrong.search(text)] == []
