from __future__ import annotations

import pytest

from opschema_cli.migrate.codemods.new_imports import add_import
from opschema_cli.migrate.codemods.rewrite import Rewrite
from tests.migrate.codemods.rounds import refused, rewritten

NEW = "from dataclasses import dataclass\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", NEW),
        ("x = 1\n", f"{NEW}\n\nx = 1\n"),
        ('"""Doc."""\n\nx = 1\n', f'"""Doc."""\n\n{NEW}\nx = 1\n'),
        ("from __future__ import annotations\n\nx = 1\n", f"from __future__ import annotations\n\n{NEW}\nx = 1\n"),
        ("import torch\n", f"{NEW}\nimport torch\n"),
        ("# Licence.\nimport torch\n", f"# Licence.\n{NEW}\nimport torch\n"),
        (
            "from __future__ import annotations\n\nimport torch\n",
            f"from __future__ import annotations\n\n{NEW}\nimport torch\n",
        ),
        ("import os\nimport sys\n\nimport torch\n", f"import os\nimport sys\n{NEW}\nimport torch\n"),
        ("import os\nfrom enum import Enum\n", f"import os\n{NEW}from enum import Enum\n"),
        (
            "from collections import abc\nfrom enum import Enum\n",
            f"from collections import abc\n{NEW}from enum import Enum\n",
        ),
        ("from abc import ABC\n\nx = 1\n", f"from abc import ABC\n{NEW}\nx = 1\n"),
        ("from dataclasses import field\n", "from dataclasses import dataclass, field\n"),
        ("from dataclasses import KW_ONLY, InitVar\n", "from dataclasses import KW_ONLY, InitVar, dataclass\n"),
        (
            "from dataclasses import (\n    KW_ONLY,\n)\n",
            "from dataclasses import (\n    KW_ONLY,\n    dataclass,\n)\n",
        ),
        ("from dataclasses import (\n    field,\n)\n", "from dataclasses import (\n    dataclass,\n    field,\n)\n"),
        ("from dataclasses import (KW_ONLY,)\n", "from dataclasses import (KW_ONLY, dataclass,)\n"),
        ("import os\r\n", "import os\r\nfrom dataclasses import dataclass\r\n"),
        ("dataclass = 1\n", None),
    ],
)
def test_adding_an_import(before: str, after: str | None) -> None:
    def mark(rewrite: Rewrite) -> None:
        add_import(rewrite, "dataclasses", "dataclass")

    if after is None:
        assert refused(before, mark)
    else:
        assert rewritten(before, mark) == after
