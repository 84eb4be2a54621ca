"""Keys given twice, and scalars that YAML 1.1 reads otherwise than they look."""

from __future__ import annotations

import pytest
import yaml

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.source.yaml import scalar_value
from opschema_cli.source.yaml_compose import compose
from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK
from opschema_rules.tileops.scalars import misread_text

YAML = "kit/manifest/example.yaml"


def files(entry: str) -> dict[str, str]:
    return example_files([("yaml", entry)])


def lint(entry: str, code: str) -> Linted:
    return lint_files([PACK], files(entry), [code])


def found(linted: Linted) -> list[tuple[str, str]]:
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


def param(text: str) -> str:
    return f"signature:\n  params:\n    p: {{{text}}}\n"


def row(text: str) -> str:
    return f"workloads:\n  - {{x_shape: [4], dtypes: [float16], {text}}}\n"


def test_the_later_key_is_shown_with_the_first() -> None:
    text = files("")[YAML].replace("  family: example\n", "  family: example\n  family: other\n")
    linted = lint_files([PACK], {**files(""), YAML: text}, ["YML101"])
    message = "the key `family` is given twice, and the reader silently drops the first value; keep one"
    assert found(linted) == [("family", message)]
    assert linted.position(linted.diagnostics[0].place).line == 4
    assert linted.position(linted.diagnostics[0].related[0].place).line == 3
    assert linted.diagnostics[0].ops == ("ExampleFwdOp",)


@pytest.mark.parametrize(
    ("written", "fixed"),
    [
        ("type: float, default: 0.5, type: float", "type: float, default: 0.5"),
        ("type: float, type:  float, default: 0.5", "type: float, default: 0.5"),
        ("type: float, default: 0.5, default: 0.25", None),
    ],
)
def test_only_an_exact_repetition_is_removed(written: str, fixed: str | None) -> None:
    texts, after = fix_files([PACK], files(param(written)), ["YML101"])
    if fixed is None:
        assert texts == {}
        assert after.codes() == ["YML101"]
    else:
        assert f"p: {{{fixed}}}\n" in texts[YAML]
        assert after.codes() == []


def test_a_block_key_is_removed_with_its_lines() -> None:
    block = "signature:\n  params:\n    p:\n      type: int\n      default:\n        - 1\n        - 2\n"
    again = block + "      default:\n        - 1\n        - 2\n"
    texts, after = fix_files([PACK], files(again), ["YML101"])
    assert texts[YAML] == files(block)[YAML]
    assert after.codes() == []


def test_a_comment_keeps_a_repetition_from_being_removed() -> None:
    block = "signature:\n  params:\n    p:\n      type: int\n      type: int  # why\n"
    texts, _ = fix_files([PACK], files(block), ["YML101"], unsafe=True)
    assert texts == {}


def test_keys_are_compared_as_the_reader_takes_them() -> None:
    assert [
        text for text, _ in found(lint(param("type: dict, default: {2: a, 0x2: b, yes: 1, true: 2}"), "YML101"))
    ] == [
        "0x2",
        "true",
    ]
    assert found(lint(param("type: dict, default: {'1': 1, 1: 2, no: 3, 'no': 4, 'false': 5}"), "YML101")) == []


def test_merges_repeat_and_are_overridden() -> None:
    rows = "workloads:\n  - &a {dtypes: [float16], label: a}\n  - &b {x_shape: [4]}\n  - {<<: *a, <<: *b, label: c}\n"
    assert found(lint(rows, "YML101")) == []


def test_an_op_that_is_declared_twice_is_not_a_repeated_key() -> None:
    text = files("")[YAML]
    assert found(lint_files([PACK], {**files(""), YAML: text + text}, ["YML101"])) == []


@pytest.mark.parametrize(
    ("entry", "text", "message", "fixed"),
    [
        (
            param("type: float, default: 1e-6"),
            "1e-6",
            "`signature.params.p.default` is `1e-6`, text to a YAML 1.1 reader; write `1.0e-6`",
            "default: 1.0e-6",
        ),
        (
            param("type: 'list[float] | None', default: [1.5e3, 1.0]"),
            "1.5e3",
            "`signature.params.p.default[0]` is `1.5e3`, text to a YAML 1.1 reader; write `1.5e+3`",
            "default: [1.5e+3, 1.0]",
        ),
        (
            param("type: 'int | None', default: 1e0"),
            "1e0",
            "`signature.params.p.default` is `1e0`, text to a YAML 1.1 reader; write `1`",
            "default: 1}",
        ),
        (
            row("x_shape: [-.5e1]"),
            "-.5e1",
            "`workloads[0].x_shape[0]` is `-.5e1`, text to a YAML 1.1 reader; write `-5`",
            "x_shape: [-5]",
        ),
        (
            param("type: float, default: -inf"),
            "-inf",
            "`signature.params.p.default` is `-inf`, text to a YAML 1.1 reader; write `-.inf`",
            "default: -.inf",
        ),
        (
            param("type: str, default: off"),
            "off",
            "`signature.params.p.default` is `off`, the boolean `false` to a YAML 1.1 reader; quote it",
            'default: "off"',
        ),
        (
            row("label: 010"),
            "010",
            "`workloads[0].label` is `010`, the octal number for 8 to a YAML 1.1 reader; quote it",
            'label: "010"',
        ),
        (
            "workloads:\n  - label: 12:30\n    dtypes: [float16]\n",
            "12:30",
            "`workloads[0].label` is `12:30`, the number 750 to a YAML 1.1 reader; quote it",
            'label: "12:30"',
        ),
        (
            row("label: 2026-01-31"),
            "2026-01-31",
            "`workloads[0].label` is `2026-01-31`, a date to a YAML 1.1 reader; quote it",
            'label: "2026-01-31"',
        ),
        (
            "ref_api: no\n",
            "no",
            "`ref_api` is `no`, the boolean `false` to a YAML 1.1 reader; quote it",
            'ref_api: "no"',
        ),
        (
            "signature:\n  inputs:\n    on: {dtype: float16}\n",
            "on",
            "the key `on` is the boolean `true` to a YAML 1.1 reader; quote it",
            '"on": {dtype: float16}',
        ),
    ],
)
def test_a_misread_scalar_is_respelt(entry: str, text: str, message: str, fixed: str) -> None:
    linted = lint(entry, "YML102")
    assert found(linted) == [(text, message)]
    assert linted.diagnostics[0].severity is Severity.ERROR
    texts, after = fix_files([PACK], files(entry), ["YML102"])
    assert fixed in texts[YAML]
    assert after.codes() == []


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            row("mode: on"),
            "`workloads[0].mode` is `on`, the boolean `true` to a YAML 1.1 reader; write `true`, or quote it",
        ),
        (row("scale: 1e-3"), "`workloads[0].scale` is `1e-3`, text to a YAML 1.1 reader; write `1.0e-3`"),
        (
            row("size: 0100"),
            "`workloads[0].size` is `0100`, the octal number for 64 to a YAML 1.1 reader; write `100`, or `64` if that is meant",
        ),
    ],
)
def test_where_the_manifest_fixes_no_kind_it_is_a_warning_without_a_safe_fix(entry: str, message: str) -> None:
    linted = lint(entry, "YML102")
    assert found(linted) == [(linted.text(linted.diagnostics[0].place), message)]
    assert linted.diagnostics[0].severity is Severity.WARNING
    assert fix_files([PACK], files(entry), ["YML102"])[0] == {}


@pytest.mark.parametrize(
    "entry",
    [
        param("type: bool, default: no, kw_only: yes"),
        param("type: 'bool | None', default: off"),
        param("type: float, default: .5"),
        param("type: float, default: 1.0e-6"),
        param("type: int, default: 0x10"),
        param("type: int, default: 1_000"),
        param("type: str, default: 1e5"),
        row("label: 1e5"),
        row("label: 'no'"),
        row("label: !!str no"),
        row("p: [007, 0, 00, ~, null, true, FALSE, .inf]"),
        "torch_compile_fullgraph: yes\n",
    ],
)
def test_what_is_read_as_it_looks_is_left_alone(entry: str) -> None:
    assert found(lint(entry, "YML102")) == []


@pytest.mark.parametrize(
    ("entry", "advice", "safe", "unsafe"),
    [
        (param("type: int, default: 1.5e0"), "write an integer", "", ""),
        (param("type: int, default: 1e400"), "write an integer", "", ""),
        (param("type: int, default: inf"), "write an integer", "", ""),
        (param("type: 'int | float', default: 1e3"), "write `1.0e+3`", "", "default: 1.0e+3"),
        (param("type: 'int | float', default: 08"), "write `8`", "default: 8", ""),
        (param("type: float, default: 1e3"), "write `1.0e+3`", "default: 1.0e+3", ""),
    ],
)
def test_a_number_is_respelt_safely_only_where_its_kind_is_certain(
    entry: str, advice: str, safe: str, unsafe: str
) -> None:
    (message,) = (message for _, message in found(lint(entry, "YML102")))
    assert message.endswith(f"; {advice}")
    texts, _ = fix_files([PACK], files(entry), ["YML102"])
    assert safe in texts[YAML] if safe else texts == {}
    texts, _ = fix_files([PACK], files(entry), ["YML102"], unsafe=True)
    assert (safe or unsafe) in texts[YAML] if safe or unsafe else texts == {}


READ = (
    "no On yes OFF true 010 007 08 0 1_000 12:30 1:30.5 1e5 1e-6 1.0e5 1.5e-3 -.5 .5 .5e3 0o17 0x10 inf -inf nan .inf .nan "
    "2026-01-01 2026-1-1 3 -1 3.5 2d 1.2.3 8k 00:00 -010 +7 -.5e3 0_1 1. float16 none nope only offset 1e400 1_0e3 + . 1- e5"
)


@pytest.mark.parametrize("text", READ.split())
def test_a_misreading_is_what_pyyaml_reads(text: str) -> None:
    read = yaml.safe_load(text)
    misread = misread_text(text)
    if misread is None:
        same = [str(read), repr(read)]
        assert isinstance(read, bool | float | int) or text in same
    elif misread.read == "text":
        assert read == text
        assert misread.number is not None
        assert isinstance(yaml.safe_load(misread.number), int | float)
    else:
        assert not isinstance(read, str)


def test_every_number_that_python_reads_and_yaml_does_not_is_seen() -> None:
    for text in ("1e5", "-1E+9", "+.5", "-.25e-3", "09", "1e1_0"):
        node = compose(text).root
        assert node is not None
        assert scalar_value(node) == text
        assert (misread_text(text) is not None) == (text != "1e1_0")
