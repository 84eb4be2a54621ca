"""An op under another name."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.migration import Migration, OptionError
from opschema_rules.tileops.migrations.rename_op import rename_op
from tests.rules.tileops.migrations.drafts import BENCH, CODE, TEST, YAML, files, migrate

RENAME: Migration = rename_op
OTHER_NAME = "it is part of a path or of the name of an operator"
OLD_NEW = {"old": "ExampleFwdOp", "new": "SampleFwdOp"}


def test_key_class_and_mentions_take_the_new_name() -> None:
    done = migrate(files(), RENAME, **OLD_NEW)
    assert done.text(YAML).startswith("SampleFwdOp:\n")
    assert "class SampleFwdOp(Op):" in done.text(CODE)
    assert done.text(TEST) == (
        "from kit.ops.example import SampleFwdOp\n\n\ndef test_example():\n    assert SampleFwdOp\n"
    )
    assert 'load_workloads("SampleFwdOp")' in done.text(BENCH)
    assert done.notes == []
    assert set(done.texts) == {YAML, CODE, TEST, BENCH}


def test_nothing_else_of_a_file_changes() -> None:
    before = files()
    after = migrate(before, RENAME, **OLD_NEW)
    assert all(after.text(path) == before[path].replace("ExampleFwdOp", "SampleFwdOp") for path in before)


def test_other_entries_exports_comments_and_documents_follow() -> None:
    texts = files()
    texts[YAML] += '\n# Like ExampleFwdOp, but slow.\nOtherOp:\n  variant_of: "ExampleFwdOp"\n  status: spec-only\n'
    texts["kit/ops/__init__.py"] = 'from .example import ExampleFwdOp as Short\n\n__all__ = ["ExampleFwdOp"]\n'
    texts["docs/ops.md"] = "Use `ExampleFwdOp`, or kit.ops.ExampleFwdOp.\n"
    done = migrate(texts, RENAME, **OLD_NEW)
    assert '# Like SampleFwdOp, but slow.\nOtherOp:\n  variant_of: "SampleFwdOp"\n' in done.text(YAML)
    assert done.text("kit/ops/__init__.py") == (
        'from .example import SampleFwdOp as Short\n\n__all__ = ["SampleFwdOp"]\n'
    )
    assert done.text("docs/ops.md") == "Use `SampleFwdOp`, or kit.ops.SampleFwdOp.\n"


def test_a_class_of_the_same_name_elsewhere_is_left_alone_and_noted() -> None:
    other = "class ExampleFwdOp:\n    pass\n\n\nexample = ExampleFwdOp()\n"
    done = migrate(files(lab__toy=other), RENAME, **OLD_NEW)
    assert done.text("lab/toy.py") == other
    why = "`ExampleFwdOp` stays here (and 1 times more): line 1 gives the name another meaning in this file"
    assert done.said == [("lab/toy.py", 1, why)]


@pytest.mark.parametrize(
    "text",
    [
        "from vendor import ExampleFwdOp\n\nop = ExampleFwdOp()\n",
        "from kit.ops.op_base import Op as ExampleFwdOp\n",
        "import vendor\n\nop = vendor.ExampleFwdOp()\n",
        "def make(ExampleFwdOp):\n    return ExampleFwdOp\n",
        "def ExampleFwdOp():\n    return 1\n",
        "ExampleFwdOp = 3\n",
        "from lab.other import *\n\nop = ExampleFwdOp()\n",
    ],
)
def test_a_name_of_something_else_is_left_alone(text: str) -> None:
    other = "class ExampleFwdOp:\n    pass\n"
    done = migrate(files(lab__toy=text, lab__other=other), RENAME, **OLD_NEW)
    assert done.text("lab/toy.py") == text
    assert [path for path, _, _ in done.said] == ["lab/other.py", "lab/toy.py"]


def test_a_fallback_for_a_failed_import_is_renamed_with_it() -> None:
    text = "try:\n    from kit.ops.example import ExampleFwdOp\nexcept ImportError:\n    ExampleFwdOp = None\n"
    done = migrate(files(lab__toy=text), RENAME, **OLD_NEW)
    assert "ExampleFwdOp" not in done.text("lab/toy.py")


def test_history_data_and_longer_names_come_back_as_notes() -> None:
    texts = files(lab__toy="class TestExampleFwdOp:\n    pass\n")
    texts["CHANGELOG.md"] = "- added ExampleFwdOp\n"
    texts["results.json"] = '{"ExampleFwdOp": 1}\n'
    done = migrate(texts, RENAME, **OLD_NEW)
    assert {path for path in texts if done.text(path) != texts[path]} == {YAML, CODE, TEST, BENCH}
    assert done.said == [
        ("CHANGELOG.md", 1, "`ExampleFwdOp` stays here: the file is a history"),
        ("lab/toy.py", 1, "`TestExampleFwdOp` holds the old name `ExampleFwdOp`"),
        ("results.json", 1, "`ExampleFwdOp` stays here: files of this kind are not rewritten"),
    ]


def test_a_name_that_holds_another_op_is_no_mention() -> None:
    texts = files(lab__toy="class TestFusedExampleFwdOp:\n    pass\n")
    texts[YAML] += "\nFusedExampleFwdOp:\n  status: spec-only\n"
    done = migrate(texts, RENAME, **OLD_NEW)
    assert done.notes == []


def test_a_path_stays() -> None:
    texts = files()
    texts["docs/ExampleFwdOp.md"] = "# ExampleFwdOp\n"
    texts["docs/index.md"] = "See docs/ExampleFwdOp.md for ExampleFwdOp.\n"
    done = migrate(texts, RENAME, **OLD_NEW)
    assert done.text("docs/index.md") == "See docs/ExampleFwdOp.md for SampleFwdOp.\n"
    assert done.said == [("docs/index.md", 1, f"`ExampleFwdOp` stays here: {OTHER_NAME}")]


def test_an_address_and_the_names_of_operators_stay() -> None:
    code = (
        '@torch.library.custom_op("kit::ExampleFwdOp", mutates_args=())\n'
        "def run(x: torch.Tensor) -> torch.Tensor:\n    return torch.ops.kit.ExampleFwdOp(x)\n"
    )
    texts = files()
    texts[CODE] += f"\n\n{code}"
    texts["docs/a.md"] = "[ExampleFwdOp](https://example.org/api/ExampleFwdOp.html), `ExampleFwdOp`\n"
    done = migrate(texts, RENAME, **OLD_NEW)
    assert done.text(CODE) == texts[CODE].replace("class ExampleFwdOp", "class SampleFwdOp")
    assert done.text("docs/a.md") == "[SampleFwdOp](https://example.org/api/ExampleFwdOp.html), `SampleFwdOp`\n"
    assert done.said == [
        ("docs/a.md", 1, f"`ExampleFwdOp` stays here: {OTHER_NAME}"),
        (CODE, 29, f"`ExampleFwdOp` stays here (and 1 times more): {OTHER_NAME}"),
    ]


def test_the_name_of_an_operator_stays_with_white_space_before_it() -> None:
    texts = files()
    texts[CODE] += (
        "\n\ndef run(x):\n    return torch . ops.kit .\\\n        ExampleFwdOp(x), torch.ops. kit. ExampleFwdOp(x)\n"
    )
    done = migrate(texts, RENAME, **OLD_NEW)
    assert done.text(CODE) == texts[CODE].replace("class ExampleFwdOp", "class SampleFwdOp")


def test_stubs_follow_and_those_of_something_else_stay() -> None:
    texts = files()
    texts["kit/ops/example.pyi"] = "class ExampleFwdOp:\n    def forward(self, x: int) -> int: ...\n"
    texts["lab/toy.pyi"] = "class ExampleFwdOp: ...\n"
    done = migrate(texts, RENAME, **OLD_NEW)
    assert done.text("kit/ops/example.pyi").startswith("class SampleFwdOp:\n")
    assert done.text("lab/toy.pyi") == texts["lab/toy.pyi"]
    assert [path for path, _, _ in done.said] == ["lab/toy.pyi"]


@pytest.mark.parametrize(
    "text",
    [
        "from vendor import SampleFwdOp\nfrom kit.ops.example import ExampleFwdOp\n",
        "from kit.ops.example import ExampleFwdOp\n\nSampleFwdOp = ExampleFwdOp\n",
        "from kit.ops.example import ExampleFwdOp\n\n\ndef make(SampleFwdOp):\n    return ExampleFwdOp(SampleFwdOp)\n",
        "from kit.ops.example import ExampleFwdOp\n\n\ndef SampleFwdOp():\n    return ExampleFwdOp()\n",
    ],
)
def test_a_new_name_that_means_something_else_beside_the_class(text: str) -> None:
    with pytest.raises(OptionError) as error:
        migrate(files(lab__toy=text), RENAME, **OLD_NEW)
    assert str(error.value).startswith("`SampleFwdOp` is the name of something else in lab/toy.py:")


def test_a_new_name_that_stands_elsewhere_or_below_something_else() -> None:
    apart = "from vendor import SampleFwdOp\n"
    below = "import vendor\nfrom kit.ops.example import ExampleFwdOp\n\nassert vendor.SampleFwdOp != ExampleFwdOp\n"
    done = migrate(files(lab__apart=apart, lab__below=below), RENAME, **OLD_NEW)
    assert done.text("lab/apart.py") == apart
    assert done.text("lab/below.py") == below.replace("ExampleFwdOp", "SampleFwdOp")
    assert done.notes == []


@pytest.mark.parametrize(
    "more",
    [
        "if torch.cuda.is_available():\n\n    class ExampleFwdOp(ExampleFwdOp):\n        pass\n",
        "def make(ExampleFwdOp):\n    return ExampleFwdOp\n",
    ],
)
def test_nothing_is_renamed_if_the_class_cannot_be(more: str) -> None:
    texts = files()
    texts[CODE] += f"\n\n{more}"
    done = migrate(texts, RENAME, **OLD_NEW)
    assert done.texts == {}
    assert [(path, line, said.partition(":")[0]) for path, line, said in done.said] == [
        (YAML, 1, "`ExampleFwdOp` keeps its name")
    ]


def test_a_key_that_is_no_class_changes_only_where_it_stands_alone() -> None:
    texts = files(lab__toy='gemm = 1\nname = "gemm"\n')
    texts[YAML] += "\ngemm:\n  status: spec-only  # a gemm\n  family: gemm\n\nfast:\n  variant_of: gemm\n"
    done = migrate(texts, RENAME, old="gemm", new="MatMulOp")
    assert done.lines(YAML) == ["MatMulOp:", "variant_of: MatMulOp"]
    assert done.text("lab/toy.py") == 'gemm = 1\nname = "MatMulOp"\n'


def test_a_quoted_value_of_the_manifest_is_no_mention_of_a_key() -> None:
    texts = files()
    texts[YAML] += '\n"gemm":\n  status: spec-only\n  family: "gemm"  # of `gemm`\n\nfast:\n  variant_of: \'gemm\'\n'
    done = migrate(texts, RENAME, old="gemm", new="MatMulOp")
    assert done.lines(YAML) == ['"MatMulOp":', 'family: "gemm"  # of `MatMulOp`', "variant_of: 'MatMulOp'"]


@pytest.mark.parametrize("old", ["example_fwd", "MatMulOp"])
def test_a_key_whose_class_has_the_new_name_already(old: str) -> None:
    texts = {path: text.replace("ExampleFwdOp", old) if path != CODE else text for path, text in files().items()}
    texts[TEST] = "from kit.ops.example import ExampleFwdOp\n"
    done = migrate(texts, RENAME, old=old, new="ExampleFwdOp")
    assert done.text(YAML).startswith("ExampleFwdOp:\n")
    assert 'load_workloads("ExampleFwdOp")' in done.text(BENCH)
    assert done.text(CODE) == texts[CODE]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"old": "ExampelFwdOp", "new": "SampleFwdOp"}, "no op is called `ExampelFwdOp`; did you mean `ExampleFwdOp`?"),
        ({"old": "ExampleFwdOp", "new": "Sample-Op"}, "`Sample-Op` is not a name for a class"),
        (
            {"old": "ExampleFwdOp", "new": "ExampleKernel"},
            "kit/kernels/example.py defines a class `ExampleKernel` already",
        ),
        ({"old": "ExampleFwdOp", "new": "OtherOp"}, "there is an op `OtherOp` already, in kit/manifest/example.yaml"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, str], message: str) -> None:
    texts = files()
    texts[YAML] += "\nOtherOp:\n  status: spec-only\n"
    with pytest.raises(OptionError) as error:
        migrate(texts, RENAME, **options)
    assert str(error.value) == message
