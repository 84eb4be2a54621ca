"""One field dropped from every entry, with its lines and comments."""

from __future__ import annotations

from collections import Counter

import pytest
import yaml

from opschema_cli.migrate.migration import OptionError
from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.aten.pack import PACK
from tests.rules.aten.oracle import installed

NATIVE = "native_functions.yaml"

FUNCTIONS = """\
# The operators.

- func: abs(Tensor self) -> Tensor
  # Boxed since 1.5.
  use_c10_dispatcher: full  # all of it
  variants: function, method

- func: sin(Tensor self) -> Tensor
  use_c10_dispatcher:
    - full
    # not yet
    - with_namedtensor
# use_c10_dispatcher is documented in README.md.
- {func: "cos(Tensor self) -> Tensor", use_c10_dispatcher: full, variants: function}
- use_c10_dispatcher: full
  func: tan(Tensor self) -> Tensor
- func: cosh(Tensor self) -> Tensor
"""

LEFT = """\
# The operators.

- func: abs(Tensor self) -> Tensor
  variants: function, method

- func: sin(Tensor self) -> Tensor
# use_c10_dispatcher is documented in README.md.
- {func: "cos(Tensor self) -> Tensor", variants: function}
- func: tan(Tensor self) -> Tensor
- func: cosh(Tensor self) -> Tensor
"""


def dropped(*options: str, text: str = FUNCTIONS, **files: str) -> Migrated:
    return migrate_files(PACK, "drop-entry-field", {NATIVE: text, **files}, options or ["field=use_c10_dispatcher"])


def test_the_field_goes_with_all_that_is_its_own() -> None:
    done = dropped()
    assert done.files[NATIVE] == LEFT
    assert done.sites()[0] == f"{NATIVE}:5: drop `use_c10_dispatcher` of `abs`"
    assert len(done.sites()) == 4
    assert done.notes() == [
        f"{NATIVE}:3: a comment went with `use_c10_dispatcher` of `abs`: `# Boxed since 1.5.`",
        f"{NATIVE}:6: a comment went with `use_c10_dispatcher` of `sin`: `# not yet`",
    ]


def test_a_comment_that_stands_apart_stays() -> None:
    first = "- func: a(Tensor x) -> Tensor\n  autogen: a.out\n    # its own\n"
    text = f"{first}\n    # an old\n  # entry\n\n- func: b(Tensor x) -> Tensor\n"
    done = dropped("field=autogen", text=text)
    assert done.files[NATIVE] == text.replace("  autogen: a.out\n    # its own\n", "")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_comment_below_goes_whatever_ends_its_line(end: str) -> None:
    text = "- func: a(Tensor x) -> Tensor\n  autogen: a.out\n    # its own\n\n- func: b(Tensor x) -> Tensor\n".replace(
        "\n", end
    )
    done = dropped("field=autogen", text=text)
    assert done.files[NATIVE] == text.replace(f"  autogen: a.out{end}    # its own{end}", "")


def test_readers_are_noted_once_nobody_has_it() -> None:
    readers = {
        "gen.py": "x = e.pop('use_c10_dispatcher')\ny = e['use_c10_dispatcher']\nuse_c10_dispatcher = 1\n",
        "README.md": "### `use_c10_dispatcher`\n",
        "other.py": "use_c10_dispatcher = 'use_c10_dispatcher_too'\n",
    }
    assert dropped(**readers).notes()[2:] == [
        "README.md:1: this names `use_c10_dispatcher`, which no entry has any more",
        "gen.py:1: this names `use_c10_dispatcher`, which no entry has any more",
    ]
    assert dropped("field=use_c10_dispatcher", "op=tan", **readers).notes() == []


def test_entries_are_chosen_by_name_and_by_value() -> None:
    text = "".join(
        f"- func: {name}(Tensor self) -> Tensor\n  variants: {value}\n"
        for name, value in (("a", "function"), ("b", "method"), ("ab", "function"))
    )
    assert dropped("field=variants", "op=a*", text=text).files[NATIVE].count("variants") == 1
    assert dropped("field=variants", "value=function", text=text).files[NATIVE].count("variants: method") == 1
    assert len(dropped("field=variants", "value=function", "op=a", text=text).sites()) == 1


def test_items_of_a_backend_are_entries_too() -> None:
    text = """\
all_version: [v2.1]
official:
  - func: abs(Tensor self) -> Tensor
    acl_op: all_version
    exposed: all_version
custom:
  - func: npu_abs(Tensor self) -> Tensor
    exposed: all_version
"""
    done = migrate_files(PACK, "drop-entry-field", {"op_plugin_functions.yaml": text}, ["field=exposed"])
    assert done.files["op_plugin_functions.yaml"] == text.replace("    exposed: all_version\n", "")


def test_a_field_that_is_written_twice_stays() -> None:
    text = "- func: a(Tensor self) -> Tensor\n  variants: function\n  variants: method\n"
    done = dropped("field=variants", text=text)
    assert done.files[NATIVE] == text
    assert done.notes() == [f"{NATIVE}:3: drop `variants` by hand: the key `variants` is written 2 times"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["field=func"], "-o field=func: every entry needs it"),
        (["field=use_c10_dispatch"], "-o field=use_c10_dispatch: no entry has it; did you mean `use_c10_dispatcher`?"),
        (["field=variants", "op=abss"], "-o op=abss: there is no such entry; did you mean `abs`?"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: list[str], message: str) -> None:
    with pytest.raises(OptionError) as raised:
        dropped(*options)
    assert message == str(raised.value)


def test_a_field_that_is_gone_is_no_mistake() -> None:
    assert dropped(text=LEFT).sites() == []


def test_a_field_of_the_installed_torch() -> None:
    text = installed(NATIVE)
    done = dropped("field=autogen", text=text)
    kept = [
        {key: value for key, value in entry.items() if key != "autogen"} for entry in yaml.load(text, yaml.CSafeLoader)
    ]
    assert yaml.load(done.files[NATIVE], yaml.CSafeLoader) == kept
    before, after = ([line for line in found.splitlines() if line.strip()] for found in (text, done.files[NATIVE]))
    gone = Counter(before) - Counter(after)
    assert not Counter(after) - Counter(before)
    assert [line.strip() for line in gone if "#" in line] == ["# wrappers for TH functions"]
    assert [note.partition(" went ")[2] for note in done.notes()] == [
        "with `autogen` of `geometric_`: `# wrappers for TH functions`"
    ]
