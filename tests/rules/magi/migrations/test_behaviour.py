"""The results of ops before and after each migration: with a stand-in for the decorator, and with MagiCompiler's own ones."""

from __future__ import annotations

import itertools
import os
import random
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from opschema_cli.testing import migrate_files
from opschema_rules.magi.examples import HEAD, OPS_PATH, example_files
from opschema_rules.magi.pack import PACK
from tests.rules.magi.migrations.running import decorator, load, same
from tests.rules.magi.migrations.test_add_meta import COMPUTED, PROVEN, op

CORPUS = Path(os.environ.get("OPSCHEMA_CORPUS", "."))
NEW, OLD = CORPUS / "oplibs/magi-e68e0b0", CORPUS / "oplibs/magi-e68e0b0p"
UPSTREAM = "tests/api_tests/test_register_custom_op.py"


@dataclass(frozen=True)
class Case:
    """A module whose ``run()`` calls its ops; ``before`` is how the real decorators answer to it before it is migrated."""

    migration: str
    text: str
    options: tuple[str, ...] = ()
    before: str = ""
    old: bool = True

    def migrated(self) -> str:
        """The text afterwards; nothing is left to a person."""
        done = migrate_files(PACK, self.migration, example_files([("python", self.text)]), self.options)
        assert done.notes() == []
        assert all(item.status == "migrated" for item in done.result.sites)
        found = done.files[OPS_PATH]
        assert found != HEAD + self.text
        return found


FREEZE = [
    # The classes of MagiCompiler's own `TestMutableDataclassRejected`.
    """\
@dataclass  # NOTE: missing frozen=True
class _MutableCfg:
    scale: float


@magi_register_custom_op(name="kit::mutable_dc_top")
def _op(x: Tensor, cfg: _MutableCfg) -> Tensor:
    return x * cfg.scale


def run():
    return _op(torch.ones(4), _MutableCfg(scale=3.0))
""",
    """\
@dataclass  # NOT frozen
class _MutableInner:
    val: float


@dataclass(frozen=True)
class _OuterCfg:
    inner: _MutableInner


@magi_register_custom_op(name="kit::mutable_dc_nested")
def _op(x: Tensor, cfg: _OuterCfg) -> Tensor:
    return x * cfg.inner.val


def run():
    return _op(torch.arange(3.0), _OuterCfg(_MutableInner(0.5)))
""",
    """\
@dataclass(order=True)
class Cfg:
    w: Tensor
    n: int = 3

    @property
    def double(self):
        return self.n * 2


def meta(x, cfg):
    return x.new_empty(x.shape)


@magi_register_custom_op("kit::ordered", infer_output_meta_fn=meta)
def f(x: Tensor, cfg: Cfg) -> Tensor:
    return x * cfg.w * cfg.double


def run():
    cfg = Cfg(torch.tensor([1.0, 2.0]))
    return f(torch.ones(2), cfg), f(torch.ones(2), cfg=Cfg(cfg.w, n=5))
""",
]
ENUM = [
    """\
class Mode(Enum):
    ADD = "add"
    MUL = "mul"


def helper(x, mode: Mode):
    return x + 1 if mode is not Mode.MUL else x * 3


@magi_register_custom_op("kit::moded")
def f(x: Tensor, mode: Mode) -> Tensor:
    if mode is Mode.ADD:
        return helper(x, mode) + 10
    return helper(x, mode)


def run():
    return f(torch.ones(2), Mode.ADD), f(torch.ones(2), Mode.MUL), f(torch.ones(2), mode=Mode("add"))
""",
    """\
class Mode(Enum):
    A = "a"
    B = "b"


FIRST = Mode.A
TABLE = {Mode.A: 2.0, Mode.B: 3.0}


@magi_register_custom_op("kit::table")
def f(x: Tensor, mode: Mode, scale: float) -> Tensor:
    scales = [scale if item is mode else 1.0 for item in Mode]
    return x * TABLE[mode] + sum(scales) + (1 if FIRST is mode else 0) + (1 if mode in (Mode.B,) else 0)


def run():
    return f(torch.ones(2), Mode.A, 4.0), f(torch.ones(2), Mode.B, 4.0)
""",
]
TUPLE = [
    """\
@magi_register_custom_op("kit::padded", infer_output_meta_fn=lambda x, by: x.new_empty(x.shape[0] + by[0] + by[1]))
def pad(x: Tensor, by: tuple[int, int]) -> Tensor:
    left, right = by
    return torch.nn.functional.pad(x, [left, right])


def run():
    both = (2, 0)
    return pad(torch.ones(2), (1, 2)), pad(torch.ones(2), by=(0, 1)), pad(torch.ones(3), both)
""",
    """\
@magi_register_custom_op("kit::optional")
def f(x: Tensor, more: tuple[Tensor, Tensor] = (), by: Optional[tuple[float, ...]] = None) -> Tensor:
    return x * (sum(by) if by is not None else 1.0) + sum(item.sum() for item in more)


def run():
    one = torch.ones(2)
    return f(one, (one, one), (1.0, 2.5)), f(one, more=(one, one, one)), f(one, by=None), f(one)
""",
]
TUPLE_FIELD = [
    """\
@dataclass(frozen=True)
class Cfg:
    by: tuple[int, int] = (1, 1)
    scale: float = 2.0


@magi_register_custom_op("kit::field", infer_output_meta_fn=lambda x, cfg: x.new_empty(x.shape[0] + sum(cfg.by)))
def pad(x: Tensor, cfg: Cfg) -> Tensor:
    return torch.nn.functional.pad(x, tuple(cfg.by)) * cfg.scale


def run():
    return pad(torch.ones(2), Cfg()), pad(torch.ones(2), Cfg((2, 1))), pad(torch.ones(2), cfg=Cfg(scale=3.0, by=(0, 1)))
""",
]
DROP = [
    """\
@magi_register_custom_op("kit::dropped", has_internal_collective=False, mutates_args=())
def f(x: Tensor) -> Tensor:
    return x * 2


def run():
    return f(torch.ones(2))
""",
]
GROUP = [
    """\
def setup(ctx, inputs, output):
    x, n, _, w, scale = inputs
    ctx.save_for_backward(x, w)
    ctx.k = n * scale + inputs[-1] + inputs[2]


def backward(ctx, grad):
    x, w = ctx.saved_tensors
    return grad * w * ctx.k, None, None, grad * x * ctx.k, None


@magi_register_custom_op("kit::grouped", setup_context_fn=setup, backward_fn=backward)
def f(x: Tensor, n: int, shift: float, w: Tensor, scale: float) -> Tensor:
    return x * w * (n * scale + scale + shift)


def run():
    x, w = torch.arange(1.0, 4.0, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
    y = f(x, 2, 0.25, w, 1.5) + f(x, n=3, scale=0.5, w=w, shift=0.0) + f(w, 1, shift=1.0, w=x, scale=2.0)
    y.sum().backward()
    return y.detach(), x.grad, w.grad
""",
]

CASES = [
    *(Case("freeze-dataclass", text, before="frozen=True", old=False) for text in FREEZE),
    *(Case("enum-to-str-enum", text, before="Expected a value of type 'str'") for text in ENUM),
    *(Case("tuple-to-list", text, before="tuple") for text in TUPLE),
    *(Case("tuple-to-list", text, before="tuple", old=False) for text in TUPLE_FIELD),
    *(Case("drop-argument", text, ("name=has_internal_collective",), "has_internal_collective") for text in DROP),
    *(
        Case("group-flags", text, ("op=f", f"flags={flags}", "name=Flags", "parameter=how"), old=False)
        for text in GROUP
        for flags in ("n,shift,scale", "n", "shift,n", "scale")
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.migration)
def test_the_values_stay(case: Case, tmp_path: Path) -> None:
    before, after = load(HEAD + case.text, tmp_path, None), load(case.migrated(), tmp_path, None)
    assert same(before.run(), after.run())


@pytest.mark.corpus
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.migration)
def test_what_the_newer_decorator_refused_it_takes(case: Case, tmp_path: Path) -> None:
    expected = load(HEAD + case.text, tmp_path, None).run()
    checkout = real(NEW)
    if case.before:
        with pytest.raises((TypeError, ValueError, RuntimeError), match=case.before):
            load(HEAD + case.text, tmp_path, checkout).run()
    else:
        assert same(load(HEAD + case.text, tmp_path, checkout).run(), expected)
    assert same(load(case.migrated(), tmp_path, checkout).run(), expected)


@pytest.mark.corpus
@pytest.mark.parametrize("case", [case for case in CASES if case.old], ids=lambda case: case.migration)
def test_the_older_decorator_takes_it_as_well(case: Case, tmp_path: Path) -> None:
    expected = load(HEAD + case.text, tmp_path, None).run()
    assert same(load(case.migrated(), tmp_path, real(OLD)).run(), expected)


def real(checkout: Path) -> Path:
    """A checkout of MagiCompiler."""
    if not checkout.is_dir():
        pytest.skip(f"OPSCHEMA_CORPUS has no {checkout.name}")
    return checkout


@pytest.mark.corpus
def test_the_classes_are_those_of_upstream() -> None:
    upstream = (real(NEW) / UPSTREAM).read_text(encoding="utf-8")
    lines = {line.strip() for line in upstream.splitlines()}
    for text in FREEZE[:2]:
        classes = text.partition("@magi_register_custom_op")[0]
        assert {line.strip() for line in classes.splitlines()} <= lines


@pytest.mark.corpus
def test_upstream_thawed_is_frozen_again() -> None:
    upstream = (real(NEW) / UPSTREAM).read_text(encoding="utf-8")
    thawed = upstream.replace("dataclass(frozen=True)\n", "dataclass\n")
    done = migrate_files(PACK, "freeze-dataclass", {UPSTREAM: thawed})
    assert done.notes() == []
    assert len(done.sites()) >= 40
    lines = zip(done.files[UPSTREAM].splitlines(), upstream.splitlines(), strict=True)
    left = [after for after, before in lines if after != before]
    assert {line.strip() for line in left} == {"@dataclass", "@dataclasses.dataclass"}
    assert len(left) < 12  # what ops do not take, or take to fail


@pytest.mark.corpus
def test_an_argument_given_to_all_of_upstream_goes_again() -> None:
    upstream = (real(NEW) / UPSTREAM).read_text(encoding="utf-8")
    given = re.sub(r"(?<=@magi_register_custom_op\()(\n *)?", _given, upstream).replace("True, )", "True)")
    done = migrate_files(PACK, "drop-argument", {UPSTREAM: given}, ["name=has_internal_collective"])
    assert done.notes() == []
    assert done.files[UPSTREAM] == upstream


def _given(match: re.Match[str]) -> str:
    """The argument, on a line of its own where the others have one."""
    return f"{match[1] or ''}has_internal_collective=True,{match[1] or ' '}"


# add-meta: the fake is like the real output


def inputs() -> list[torch.Tensor]:
    """Tensors of many types and layouts."""
    types = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
    layouts = [
        lambda t: t,
        lambda t: t.transpose(0, 1),
        lambda t: t[:, ::2],
        lambda t: t[:1].expand(3, 4, 2, 2),
        lambda t: t.contiguous(memory_format=torch.channels_last),
        lambda t: t[0, 0, 0, 0],
        lambda t: t[:0],
        lambda t: t.permute(3, 1, 0, 2),
    ]
    base = [(torch.arange(48) % 5).reshape(3, 4, 2, 2).to(item) for item in types]
    return [layout(item) for item, layout in itertools.product(base, layouts)]


@pytest.mark.parametrize("body", PROVEN)
def test_what_is_proven_holds(body: str, tmp_path: Path) -> None:
    done = migrate_files(PACK, "add-meta", example_files([("python", op(body))]))
    f = load(done.files[OPS_PATH], tmp_path, None).f
    answers = 0
    for x in inputs():
        try:
            found = f(torch.ones(()), x, 1.5, 2)
        except (RuntimeError, NotImplementedError, TypeError):
            continue  # no op of this type
        answers += 1
        fake = f.fake(torch.ones(()), x, 1.5, 2)
        assert (found.shape, found.dtype, found.device) == (fake.shape, fake.dtype, fake.device)
        assert found.stride() == fake.stride(), x.stride()
    assert answers >= 16


@pytest.mark.corpus
def test_computed_fakes_under_the_real_decorator(tmp_path: Path) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    ops = [op(body).replace("kit::f", f"kit::c{n}").replace("def f(", f"def c{n}(") for n, body in enumerate(COMPUTED)]
    module = load(Case("add-meta", "\n\n".join(ops)).migrated(), tmp_path, real(NEW))
    for number, body in enumerate(COMPUTED):
        function = getattr(module, f"c{number}")
        found = function(torch.ones(3, 3), torch.ones(3, 3))
        with FakeTensorMode():
            fake = function(torch.ones(3, 3), torch.ones(3, 3))
        assert (found.shape, found.dtype, found.stride()) == (fake.shape, fake.dtype, fake.stride()), body


META = """\
@dataclass(frozen=True)
class Cfg:
    w: Tensor
    s: float


@magi_register_custom_op("kit::meta")
def f(x: Tensor, cfg: Cfg) -> tuple[Tensor, Tensor]:
    return (cfg.w * cfg.s).to(cfg.w.dtype), x.clone()


def run():
    return f(torch.ones(3), Cfg(torch.ones(2, 4, dtype=torch.int32), 2.0))
"""


@pytest.mark.corpus
def test_fakes_under_the_real_decorator(tmp_path: Path) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    case = Case("add-meta", META)
    before, after = load(HEAD + META, tmp_path, real(NEW)), load(case.migrated(), tmp_path, real(NEW))
    assert same(before.run(), after.run())
    with FakeTensorMode():
        wrong, right = before.run(), after.run()
    real_ones = after.run()
    assert [item.shape for item in wrong] != [item.shape for item in real_ones]
    assert [(item.shape, item.dtype) for item in right] == [(item.shape, item.dtype) for item in real_ones]


# group-flags, generated


def generated(seed: int) -> tuple[str, str]:
    """A module with an op of random parameters, calls of it in many ways, and some of its flags."""
    pick = random.Random(seed)
    types = {
        "int": ("3", "2"),
        "float": ("0.5", "1.25"),
        "bool": ("True", "False"),
        "str": ("'up'", "'down'"),
        "Optional[int]": ("None", "4"),
    }
    names = pick.sample(["a", "b", "c", "d", "e"], pick.randint(2, 5))
    kinds = {name: pick.choice(sorted(types)) for name in names}
    cut = pick.randint(0, len(names))
    plain, optional = names[:cut], names[cut:]
    if pick.random() < 0.5 and plain:
        plain.insert(pick.randrange(len(plain) + 1), "w")
        kinds["w"] = "Tensor"
    star = pick.randint(0, len(optional)) if pick.random() < 0.4 else len(optional)
    params = [f"{name}: {kinds[name]}" for name in plain]
    optional_params = [f"{name}: {kinds[name]} = {types[kinds[name]][0]}" for name in optional]
    listed = [
        "x: Tensor",
        *params,
        *optional_params[:star],
        *(["*", *optional_params[star:]] if star < len(optional) else []),
    ]
    terms = [
        "x.clone()",
        *(_term(name, kinds[name]) for name in pick.sample([*plain, *optional], len(plain + optional))),
    ]
    body = f"    out = {terms[0]}\n" + "".join(f"    out = out + {term}\n" for term in terms[1:]) + "    return out\n"
    calls = [_call(pick, plain, optional, star, kinds, types) for _ in range(6)]
    run = (
        "def run():\n    x, w = torch.arange(3.0), torch.ones(3)\n    return [\n"
        + "".join(f"        {call},\n" for call in calls)
        + "    ]\n"
    )
    meta = f"def meta({', '.join(listed)}):\n    return x.new_empty(x.shape)\n\n\n" if pick.random() < 0.5 else ""
    given = ", infer_output_meta_fn=meta" if meta else ""
    text = f'{meta}@magi_register_custom_op("kit::f"{given})\ndef f({", ".join(listed)}) -> Tensor:\n{body}\n\n{run}'
    return text, ",".join(pick.sample(names, pick.randint(1, len(names))))


def _term(name: str, kind: str) -> str:
    terms = {
        "str": f"len({name})",
        "Optional[int]": f"({name} or 7)",
        "bool": f"(2 if {name} else sum({name} for {name} in (1, 2)))",
    }
    return terms.get(kind, f"(lambda k: k * {name})(2)")


def _call(
    pick: random.Random, plain: list[str], optional: list[str], star: int, kinds: dict[str, str], types: dict[str, tuple[str, str]]
) -> str:  # fmt: skip
    def value(name: str) -> str:
        return "w" if kinds[name] == "Tensor" else pick.choice(types[kinds[name]])

    positional = pick.randint(0, len(plain) + star)
    places = [*plain, *optional[:star]][:positional]
    words = [name for name in plain if name not in places]
    words += [name for name in optional if name not in places and pick.random() < 0.6]
    pick.shuffle(words)
    return f"f({', '.join(['x', *map(value, places), *(f'{name}={value(name)}' for name in words)])})"


def grouped(seed: int) -> tuple[str, str] | None:
    """A generated module, before and after; None where it is left, which only MAG312 may do."""
    text, flags = generated(seed)
    done = migrate_files(
        PACK, "group-flags", example_files([("python", text)]), ["op=f", f"flags={flags}", "name=Cfg", "parameter=cfg"]
    )
    if done.notes():
        assert "MAG312" in done.notes()[0]
        return None
    return HEAD + text, done.files[OPS_PATH]


@pytest.mark.parametrize("seed", range(30))
def test_generated_groups(seed: int, tmp_path: Path) -> None:
    found = grouped(seed)
    if found is not None:
        before, after = (load(text, tmp_path, None) for text in found)
        assert same(before.run(), after.run())


@pytest.mark.corpus
@pytest.mark.parametrize("seed", range(30, 70))
def test_generated_groups_under_the_real_decorator(seed: int, tmp_path: Path) -> None:
    found = grouped(seed)
    if found is not None:
        expected = load(found[0], tmp_path, None).run()
        assert same(load(found[1], tmp_path, real(NEW)).run(), expected)
        if ", *, " not in found[0]:  # an op with keyword-only parameters and no dataclass fails when it is called
            assert same(load(found[0], tmp_path, real(NEW)).run(), expected)


def test_most_generated_groups_are_made() -> None:
    assert sum(grouped(seed) is not None for seed in range(30)) >= 20


def test_the_stand_in_is_gone_afterwards() -> None:
    with decorator(None):
        pass
    with pytest.raises(ImportError):
        __import__("magi_compiler.api")
