"""FLY239: tuners and the functions that they tune."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import BASE_FILES, HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK

FUNCTION = """\
from flydsl.autotune import Autotuner, Config, autotune


@flyc.jit
def scale(A: fx.Tensor, n: fx.Int32, BLOCK: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
    print(A, n, BLOCK)


def loose(A, n, **options):
    print(A, n, options)


"""


def found(text: str, files: dict[str, str] | None = None) -> list[tuple[str, str]]:
    linted = lint_files([PACK], {**BASE_FILES, **(files or {}), KERNELS_PATH: f"{HEAD}{FUNCTION}{text}"}, ["FLY239"])
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


@pytest.mark.parametrize(
    "configs",
    [
        "[Config(BLOCK=1), Config(BLOC=2)]",
        "CONFIGS",
        "configs",
        "lambda A, n: [Config(BLOC=2)]",
        "other_configs",
        "[Config(BLOC=2) for _ in range(4)]",
        "[*CONFIGS]",
    ],
)
def test_a_configuration_with_a_keyword_that_the_function_lacks(configs: str) -> None:
    text = (
        "CONFIGS = (Config(BLOCK=1, waves_per_eu=2), Config(BLOC=2))\n\n\ndef configs(A, n):\n    return list(CONFIGS)\n"
        f"\n\ndef other_configs(A, n):\n    return [Config(BLOC=2)]\n\n\ntuned = autotune(configs={configs}, key=['n'])(scale)\n"
    )
    message = "`scale` has no parameter `BLOC`, so this configuration fails; did you mean `BLOCK`?"
    assert found(text) == [("2", message)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("key=['n', 'N']", "`scale` has no parameter `N`: calls that differ in it share one configuration"),
        (
            "key=['N'], artifact_name='scale'",
            "`scale` has no parameter `N`: with `artifact_name` it raises `ValueError`",
        ),
        ("restore_value=['N']", "`scale` has no parameter `N`: it is ignored"),
        ("reset_to_zero=('N',)", "`scale` has no parameter `N`: it is ignored"),
    ],
)
def test_names_that_are_no_parameters(arguments: str, message: str) -> None:
    made = f"autotune(configs=[Config(BLOCK=1)], {arguments})(scale)"
    assert [item.removesuffix("; did you mean `n`?") for _, item in found(f"tuned = {made}\n")] == [message]


@pytest.mark.parametrize(
    ("call", "place"),
    [
        ("tuned(x)", "tuned"),
        ("tuned(x, 3, 4, 5, 6)", "6"),
        ("tuned(x, 3, size=4)", "4"),
        ("tuned(n=3)", "tuned"),
    ],
)
def test_calls_that_fit_with_no_configuration(call: str, place: str) -> None:
    text = f"tuned = autotune([Config(BLOCK=1)], ['n'])(scale)\n\n\ndef run(x):\n    {call}\n"
    assert [item for item, _ in found(text)] == [place]


@pytest.mark.parametrize(
    "text",
    [
        "tuned = autotune([Config(BLOCK=1)], ['n', 'stream'])(scale)\n\n\ndef run(x):\n    tuned(x, n=3, stream=None)\n",
        "tuned = autotune([Config(BLOCK=1, num_warps=4)], ['size'])(loose)\n\n\ndef run(x):\n    tuned(x, 3, size=4)\n",
        "tuned = autotune([Config(BLOCK=1, pre_hook=print, maxnreg=64)], ['n'])(scale)\n",
        "tuned = autotune([Config(BLOCK=1)], ['n'])(scale)\n\n\ndef run(tuned):\n    tuned()\n",
        "tuned = autotune([Config(BLOCK=1)], ['n'])(scale)\ntuned = print\n\n\ndef run(x):\n    tuned()\n",
        "def make(configs):\n    return autotune(configs, ['n'])(scale)\n\n\nunused = Config(BLOC=1)\n",
        "def make(configs):\n    tuned = autotune(configs, ['n'])(scale)\n    tuned(1)\n",
        "tuned = autotune([Config(**{'BLOCK': 1})], ['n'])(scale)\n\n\ndef run(x):\n    tuned(x)\n",
        "keys = ['N']\ntuned = autotune([Config(BLOCK=1)], keys)(scale)\n",
        "class Config:\n    pass\n\n\ntuned = autotune([Config(BLOC=1)], ['n'])(scale)\n",
        "def autotune(configs, key):\n    return lambda function: function\n\n\ntuned = autotune([Config(BLOC=1)], ['n'])(scale)\n",
        "import pytest\n\n\ndef test_it():\n    with pytest.raises(TypeError):\n        autotune([Config(BLOC=1)], ['n'])(scale)\n",
    ],
)
def test_what_is_right_or_not_known(text: str) -> None:
    assert found(text) == []


def test_a_tuner_as_a_decorator_and_one_that_is_made_at_once() -> None:
    decorated = (
        "@autotune([Config(BLOC=1)], ['n'])\n@flyc.jit\ndef f(A: fx.Tensor, BLOCK: fx.Constexpr[int]):\n    print(A)\n"
    )
    assert [item for item, _ in found(decorated)] == ["1", "'n'"]
    made = "tuned = Autotuner(fn=scale, configs=[Config(BLOC=1)], key=['n'], warmup=1, rep=1)\n"
    assert [item for item, _ in found(made)] == ["1"]
    wrapped = "@autotune([Config(BLOC=1)], ['n'])\n@print\n@flyc.jit\ndef f(A: fx.Tensor):\n    print(A)\n"
    assert found(wrapped) == []


def test_configurations_of_another_file() -> None:
    other = {
        "kit/configs.py": "from flydsl.autotune import Config\n\n\ndef configs(A, n):\n    return [Config(BLOC=1)]\n"
    }
    text = "from kit.configs import configs\n\ntuned = autotune(configs, ['n'])(scale)\n"
    assert [item for item, _ in found(text, other)] == ["1"]


@pytest.mark.parametrize(
    "configs",
    [
        "TABLES['scale']",
        "ALL[:1]",
        "[item for item in ALL if 'BLOCK' in item.kwargs]",
        "[Config(BLOCK=item.kwargs['BLOC']) for item in ALL]",
        "[Config(BLOCK=2)] * len(ALL)",
        "renamed(ALL)",
        "configs_for('scale')",
        "ALL[:1] if torch else ALL",
        "[Config(BLOCK=1, num_warps=None)]",
    ],
)
def test_configurations_that_code_selects_or_computes(configs: str) -> None:
    text = (
        "ALL = [Config(BLOCK=1), Config(BLOC=2)]\nTABLES = {'scale': [Config(BLOCK=1)], 'add': [Config(BLOC=2)]}\n\n\n"
        "def renamed(items):\n    return [Config(BLOCK=item.kwargs['BLOC']) for item in items]\n\n\n"
        "def configs_for(name):\n    if name == 'add':\n        return [Config(BLOC=2)]\n    return [Config(BLOCK=1)]\n\n\n"
        f"tuned = autotune({configs}, ['n'])(scale)\n"
    )
    assert found(text) == []


@pytest.mark.parametrize(
    "change",
    ["CONFIGS.append(Config(BLOCK=4))\n", "for item in CONFIGS:\n    item.kwargs['BLOCK'] = 4\n", "CONFIGS += MORE\n"],
)
def test_a_list_of_configurations_that_is_changed_later(change: str) -> None:
    made = "tuned = autotune(CONFIGS, ['n'])(scale)\n\n\ndef run(x):\n    tuned(x, 3)\n"
    assert [place for place, _ in found(f"CONFIGS = [Config(waves_per_eu=1)]\n{made}")] == ["tuned"]
    assert found(f"CONFIGS = [Config(waves_per_eu=1)]\n{change}{made}") == []


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        ("tuned = autotune(_configs, ['n'], default=fallback)(scale)\n", ["2"]),
        ("tuned = autotune(_configs, ['n'])(scale)\n\n\ndef run(x):\n    tuned(x)\n", ["2", "tuned"]),
        ("tuned = autotune(_configs, ['n'])(scale)\nother = autotune(_configs, ['n'])(loose)\n", []),
        ("tuned = autotune(_configs, ['n'])(scale)\nprint(fallback(), _configs)\n", []),
        ("ALL = _configs\ntuned = autotune(ALL, ['n'])(scale)\n", []),
        ("tuned = autotune(_configs(1, 2), ['n'])(scale)\n", []),
        ("tuned = autotune(_configs, ['n'], prune_configs_by=first)(scale)\n", []),
        ("tuned = autotune(public, ['n'])(scale)\n", []),
        ("tuned = autotune(_of_kind, ['n'])(scale)\n", []),
        ("tuned = autotune(_tried, ['n'])(scale)\n", []),
        ("tuned = autotune(_fitted, ['n'])(scale)\n", []),
        ("tuned = autotune(_yielded, ['n'])(scale)\n", []),
    ],
)
def test_a_function_that_returns_several_lists(uses: str, expected: list[str]) -> None:
    text = (
        "def fallback(*args):\n    return Config(BLOCK=1)\n\n\n"
        "def {}:\n    if n < 4:\n        return [fallback()]\n    return [Config(BLOC=2), Config(BLOCK=2)]\n\n\n"
    )
    text = text.format("_configs(A, n)")
    text += "def public(A, n):\n    if n < 4:\n        return [Config(BLOC=1)]\n    return [Config(BLOCK=2)]\n\n\n"
    text += "def _of_kind(kind=1):\n    if kind:\n        return [Config(BLOC=1)]\n    return [Config(BLOCK=2)]\n\n\n"
    text += "def _tried(A, n):\n    try:\n        return [Config(BLOC=1)]\n    finally:\n        return [Config(BLOCK=2)]\n\n\n"
    text += "@fit\ndef _fitted(A, n):\n    return [Config(BLOC=1)]\n\n\n"
    text += "def _yielded(A, n):\n    yield Config(BLOCK=1)\n    return [Config(BLOC=1)]\n\n\n"
    assert [item for item, _ in found(f"{text}{uses}")] == expected
