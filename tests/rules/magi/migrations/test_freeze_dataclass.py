"""Mutable dataclasses that ops take, frozen or left with the place that stands against it."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.magi.examples import HEAD, OPS_PATH, example_files
from opschema_rules.magi.pack import PACK

HEAD_LINES = HEAD.count("\n")

CFG = """\
@dataclass  # settings
class Cfg:
    scale: float
    shift: float = 0.0
"""
OP = """\


@magi_register_custom_op("kit::f")
def f(x: Tensor, cfg: Cfg) -> Tensor:
    return x * cfg.scale
"""


def migrate(text: str, **others: str) -> Migrated:
    files = {**example_files([("python", text)]), **{f"kit/{name}.py": other for name, other in others.items()}}
    done = migrate_files(PACK, "freeze-dataclass", files)
    assert {path: found for path, found in done.files.items() if path != OPS_PATH} == {
        path: found for path, found in files.items() if path != OPS_PATH
    }
    return done


def code(done: Migrated) -> str:
    return done.files[OPS_PATH].removeprefix(HEAD)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("@dataclass", "@dataclass(frozen=True)"),
        ("@dataclass()", "@dataclass(frozen=True)"),
        ("@dataclass(order=True)", "@dataclass(order=True, frozen=True)"),
        ("@dataclass(frozen=False, order=True)", "@dataclass(frozen=True, order=True)"),
        ("@dataclass(\n    order=True,  # sorted\n)", "@dataclass(\n    order=True,  # sorted\n    frozen=True,\n)"),
        ("@dataclass(\n    order=True  # sorted\n)", "@dataclass(\n    order=True,  # sorted\n    frozen=True\n)"),
    ],
)
def test_the_decorator_gets_it(before: str, after: str) -> None:
    text = CFG.replace("@dataclass", before, 1) + OP
    done = migrate(text)
    assert code(done) == CFG.replace("@dataclass", after, 1) + OP
    assert done.notes() == []


def test_a_decorator_of_the_tree_that_hands_on() -> None:
    text = "import functools\n\nconfig = functools.partial(dataclass, kw_only=True)\n\n\n" + CFG + OP
    done = migrate(text.replace("@dataclass  #", "@config  #"))
    assert "@config(frozen=True)  # settings\n" in code(done)


def test_the_classes_of_fields_are_frozen_too() -> None:
    inner = "@dataclass\nclass Inner:\n    w: Tensor\n\n\n"
    outer = "@dataclass(frozen=True)\nclass Outer:\n    inner: Inner\n"
    op = OP.replace("cfg: Cfg", "cfg: Outer").replace("cfg.scale", "cfg.inner.w")
    for written in (outer, outer.replace("(frozen=True)", "")):
        done = migrate(inner + written + op)
        assert code(done) == inner.replace("@dataclass", "@dataclass(frozen=True)") + outer + op
        assert done.notes() == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("cfg.scale = 1.0", "`cfg.scale` is written"),
        ("cfg.scale += 1.0", "`cfg.scale` is written"),
        ("cfg.scale: float = 1.0", "`cfg.scale` is written"),
        ("del cfg.scale", "`cfg.scale` is written"),
        ("y, cfg.scale = 1, 2.0", "`cfg.scale` is written"),
        ("for cfg.scale in range(3): pass", "`cfg.scale` is written"),
        ("with open('f') as cfg.scale: pass", "`cfg.scale` is written"),
        ("setattr(cfg, 'scale', 1.0)", "`setattr(cfg, 'scale', 1.0)` is written"),
        ("setattr(cfg, key, 1.0)", "`setattr(cfg, key, 1.0)` sets attributes by name"),
        ("cfg.extra = 1.0", "`cfg.extra` is written"),
        ("other = cfg; other.extra = 1.0", "`other.extra` is written"),
        ("cfg = cfg or lots; cfg.extra = 1.0", "`cfg.extra` is written"),
        ("Cfg(1.0).extra = 2", "`Cfg(1.0).extra` is written"),
        ("lots[0].scale = 1.0", "`lots[0].scale` is written; whether `lots[0]` is a `Cfg` is not known"),
        ("lots.scale = 1.0", "`lots.scale` is written; whether `lots` is a `Cfg` is not known"),
    ],
)
def test_a_class_whose_instances_are_written_to_stays(line: str, said: str) -> None:
    text = CFG + OP + f"\n\ndef change(cfg: Cfg, lots, key):\n    {line}\n"
    done = migrate(text)
    assert code(done) == text
    assert done.notes() == [
        f"{OPS_PATH}:{HEAD_LINES + 13}: {said}",
        f"{OPS_PATH}:{HEAD_LINES + 2}: freeze `Cfg` by hand: elsewhere, {said}",
    ]
    assert done.sites() == [f"{OPS_PATH}:{HEAD_LINES + 2}: freeze `Cfg` (left)"]


@pytest.mark.parametrize(
    "line",
    [
        "return cfg.scale == 1.0",
        "cfg.__dict__['scale'] = 1.0",
        "object.__setattr__(cfg, 'scale', 1.0)",
        "other = Other(); other.scale = 1.0",
        "Cfg.scale = 3.0",
        "here.extra = 1.0",
        "here.scale: float",
        "x.scale = 1.0",
        "import types; n = types.SimpleNamespace(); n.scale = 1.0",
        "dict(scale=1.0)",
        "model = Model(3).to('cpu'); model.scale = 1.0",
    ],
)
def test_what_writes_to_something_else_does_not_count(line: str) -> None:
    other = (
        "\n\nclass Model(torch.nn.Module): ...\n\n\nclass Other:\n    def __init__(self):\n        self.scale = 1.0\n"
    )
    text = CFG + OP + other + f"\n\ndef change(cfg: Cfg, x: Tensor, here):\n    {line}\n"
    done = migrate(text)
    assert code(done) == text.replace("@dataclass", "@dataclass(frozen=True)", 1)


def test_the_contexts_of_autograd_are_no_instances() -> None:
    text = (
        CFG
        + """\


def setup(ctx, inputs, output):
    ctx.scale = inputs[1].scale


def backward(ctx, grad):
    return grad * ctx.scale, None


class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x
"""
        + OP.replace('"kit::f"', '"kit::f", setup_context_fn=setup, backward_fn=backward')
    )
    done = migrate(text)
    assert code(done) == text.replace("@dataclass", "@dataclass(frozen=True)", 1)
    assert done.notes() == []


@pytest.mark.parametrize("method", ["__post_init__", "__init__", "grow"])
def test_a_class_that_writes_to_itself_stays(method: str) -> None:
    text = CFG + f"\n    def {method}(self):\n        self.scale = self.scale**0.5\n" + OP
    done = migrate(text)
    assert code(done) == text
    assert done.notes()[0] == f"{OPS_PATH}:{HEAD_LINES + 7}: `self.scale` is written"


def test_writes_in_other_files_count() -> None:
    far = "def widen(cfg):\n    cfg.scale *= 2\n"
    done = migrate(CFG + OP, far=far)
    assert code(done) == CFG + OP
    assert done.notes()[0].startswith("kit/far.py:2: `cfg.scale` is written; whether `cfg` is a `Cfg`")
    near = "from kit.ops import Cfg as C\n\n\ndef widen():\n    made = C(1.0)\n    made.note = 2\n"
    assert migrate(CFG + OP, near=near).notes()[0] == "kit/near.py:6: `made.note` is written"
    harmless = "def widen(thing):\n    thing.note = 2\n    for key in ():\n        setattr(thing, key, 1)\n"
    assert migrate(CFG + OP, harmless=harmless).notes() == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "@dataclass\nclass Base:\n    a: int\n\n\n@dataclass\nclass Cfg(Base):\n    scale: float\n",
            "`Cfg` inherits from `Base`, which is not frozen",
        ),
        (CFG + "\n\n@dataclass\nclass Sub(Cfg):\n    b: int = 0\n", "`Cfg` is inherited by `Sub`, which is not frozen"),
        (
            CFG + "\n    def __setattr__(self, name, value):\n        super().__setattr__(name, value)\n",
            "`Cfg` defines `__setattr__()`",
        ),
        (
            CFG + "\n    def __eq__(self, other):\n        return self.scale == other.scale\n",
            "`Cfg` compares by an `__eq__()` of its own; frozen, it would get a `__hash__()` of all fields",
        ),
    ],
)
def test_classes_that_cannot_be_frozen_alone(text: str, said: str) -> None:
    done = migrate(text + OP)
    assert code(done) == text + OP
    assert any(note.endswith(said) for note in done.notes())


@pytest.mark.parametrize(
    "text",
    [
        CFG + "\n    def __eq__(self, other):\n        return True\n\n    def __hash__(self):\n        return 1\n",
        CFG.replace("@dataclass ", "@dataclass(eq=False) ") + "\n    def __eq__(self, other):\n        return True\n",
        CFG + "\n\nclass Sub(Cfg):\n    def double(self):\n        return self.scale * 2\n",
    ],
)
def test_classes_that_can(text: str) -> None:
    done = migrate(text + OP)
    assert "frozen=True" in code(done)
    assert done.notes() == []


def test_a_write_of_a_class_below_counts() -> None:
    text = CFG + "\n\nclass Sub(Cfg):\n    def double(self):\n        self.scale *= 2\n"
    done = migrate(text + OP)
    assert code(done) == text + OP
    assert done.notes()[0] == f"{OPS_PATH}:{HEAD_LINES + 9}: `self.scale` is written"


def test_ops_that_are_to_fail_and_frozen_or_unused_classes_are_no_sites() -> None:
    failing = (
        "\n\ndef test_it():\n    with pytest.raises(TypeError):\n"
        "        @magi_register_custom_op()\n        def f(cfg: Cfg) -> Tensor: ...\n"
    )
    assert migrate("import pytest\n" + CFG + failing).sites() == []
    assert migrate(CFG.replace("@dataclass", "@dataclass(frozen=True)") + OP).sites() == []
    assert migrate(CFG + OP.replace("cfg: Cfg", "cfg: float")).sites() == []


def test_under_the_plain_contract_no_class_is_a_site() -> None:
    text = CFG + OP
    files = {**example_files([("python", text)]), "opschema.toml": '[magi]\nmagi = "plain"\n'}
    assert migrate_files(PACK, "freeze-dataclass", files).sites() == []


def test_a_write_between_definition_and_use_of_another_class_with_the_same_field() -> None:
    text = (
        CFG
        + OP
        + "\n\n@dataclass\nclass State:\n    scale: float\n\n    def set(self, value):\n        self.scale = value\n"
    )
    text += (
        "\n\ndef reset(state: State | None, states: Optional[State]):\n    state.scale = 1.0\n    states.scale = 1.0\n"
    )
    assert code(migrate(text)) == text.replace("@dataclass", "@dataclass(frozen=True)", 1)


def test_a_class_of_another_file() -> None:
    config = "import dataclasses as d\n\n\n@d.dataclass\nclass Cfg:\n    scale: float\n"
    files = {**example_files([("python", "from kit.config import Cfg\n" + OP)]), "kit/config.py": config}
    done = migrate_files(PACK, "freeze-dataclass", files)
    assert done.files == {**files, "kit/config.py": config.replace("@d.dataclass", "@d.dataclass(frozen=True)")}
