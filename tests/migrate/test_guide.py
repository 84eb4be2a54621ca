"""The example of the guide works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from opschema_cli.testing import migrate_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

GUIDE = Path(__file__).parents[2] / "docs/writing-a-migration.md"


def test_the_example_of_the_guide() -> None:
    example, test = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    scope: dict[str, Any] = {"__name__": __name__}
    exec(example, scope)
    record = scope["forget_field"]
    pack = replace(PACK, migrations=lambda: (record,))
    files = example_files([("yaml", "old: 1\n")])
    manifest = next(path for path, text in files.items() if "old: 1" in text)
    files["README.md"] = "Say old in the manifest.\n"
    done = migrate_files(pack, "forget-field", files, ["name=old"])
    assert "old" not in done.files[manifest]
    assert done.notes() == ["README.md:1: `old` is still mentioned here"]
    assert {path: text for path, text in done.files.items() if path != manifest} == {
        path: text for path, text in files.items() if path != manifest
    }
    sound = re.sub(r"family: \w+", "family: norm", files[manifest].replace("  old: 1\n", ""))
    scope |= {"PACK": pack, "MANIFEST": sound}
    exec(test, scope)
    scope["test_the_field_goes"]()
