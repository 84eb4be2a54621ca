"""Parameters grouped into one frozen dataclass, with all that calls or belongs to the op, or not at all."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.migration import OptionError
from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.magi.examples import HEAD, OPS_PATH, example_files
from opschema_rules.magi.pack import PACK

LINES = HEAD.count("\n")
OP = """\
@magi_register_custom_op("kit::f")
def f(x: Tensor, n: int, scale: float = 1.0) -> Tensor:
    def inner(k):
        return k * n

    return x * scale + inner(n)
"""
CFG = '''\
@dataclass(frozen=True)
class Cfg:
    """Flags of `f()`."""

    n: int
    scale: float = 1.0


'''
GROUPED = """\
@magi_register_custom_op("kit::f")
def f(x: Tensor, cfg: Cfg) -> Tensor:
    def inner(k):
        return k * cfg.n

    return x * cfg.scale + inner(cfg.n)
"""


def migrate(text: str, flags: str = "n,scale", op: str = "kit::f", **others: str) -> Migrated:
    files = {**example_files([("python", text)]), **{f"kit/{key}.py": other for key, other in others.items()}}
    return migrate_files(PACK, "group-flags", files, [f"op={op}", f"flags={flags}", "name=Cfg"])


def code(done: Migrated) -> str:
    return done.files[OPS_PATH].removeprefix(HEAD)


def refused(done: Migrated, text: str, said: str) -> None:
    assert code(done) == text
    assert said in done.notes()[0]
    assert done.sites()[0].endswith("(left)")


def test_the_op_and_its_dataclass() -> None:
    done = migrate(OP)
    assert code(done) == CFG + GROUPED
    assert done.notes() == []
    assert done.sites() == [f"{OPS_PATH}:{LINES + 2}: group `n`, `scale` of `kit::f` into `Cfg`"]


def test_comments_and_the_docstring_go_along() -> None:
    text = '''\
# The op.
@magi_register_custom_op("kit::f")
def f(
    x: Tensor,  # input
    n: int,  # how often
    bias: Tensor,
    *,
    scale: float,  # how much
) -> Tensor:
    """Scale.

    Args:
        x: What.
        n: How often.
        scale: How much.
    """
    return x * n * scale + bias
'''
    done = migrate(text)
    assert (
        code(done)
        == '''\
@dataclass(frozen=True)
class Cfg:
    """Flags of `f()`."""

    n: int  # how often
    scale: float  # how much


# The op.
@magi_register_custom_op("kit::f")
def f(
    x: Tensor,  # input
    cfg: Cfg,
    bias: Tensor,
) -> Tensor:
    """Scale.

    Args:
        x: What.
        cfg.n: How often.
        cfg.scale: How much.
    """
    return x * cfg.n * cfg.scale + bias
'''
    )


def test_defaults_only_give_a_default() -> None:
    text = OP.replace("n: int,", "n: int = 2,")
    done = migrate(text)
    assert code(done) == CFG.replace("n: int", "n: int = 2") + GROUPED.replace("cfg: Cfg", "cfg: Cfg = Cfg()")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(x, 1)", "f(x, Cfg(n=1))"),
        ("f(x, 1, 2.0)", "f(x, Cfg(n=1, scale=2.0))"),
        ("f(x, n=1, scale=2.0)", "f(x, cfg=Cfg(n=1, scale=2.0))"),
        ("f(scale=2.0, x=x, n=1)", "f(cfg=Cfg(scale=2.0, n=1), x=x)"),
        ("f(x, 1, scale=(y := 2))", "f(x, Cfg(n=1, scale=(y := 2)))"),
        ("f(f(x, 1), 2)", "f(f(x, Cfg(n=1)), Cfg(n=2))"),
        (
            "f(\n        x,\n        1,  # once\n        2.0,\n    )",
            "f(\n        x,\n        Cfg(\n            n=1,  # once\n            scale=2.0,\n        ),\n    )",
        ),
        ("torch.ops.kit.f(x, 1, 2.0)", "torch.ops.kit.f(x, 1, 2.0)"),
        ("torch.ops.kit.f(x, n=1)", "torch.ops.kit.f(x, cfg__n=1)"),
        ("torch.ops.kit.f.default(x, scale=2.0, n=1)", "torch.ops.kit.f.default(x, cfg__scale=2.0, cfg__n=1)"),
        ("g(x, n=1)", "g(x, n=1)"),
    ],
)
def test_calls(before: str, after: str) -> None:
    caller = "\n\ndef g(x, n=1):\n    return "
    done = migrate(OP + caller + before + "\n")
    assert code(done) == CFG + GROUPED + caller + after + "\n"
    assert done.notes() == []


def test_callers_import_the_dataclass_as_they_import_the_op() -> None:
    others = {
        "__init__": 'from kit.ops import f\n\n__all__ = ["f"]\n',
        "a": "from kit.ops import f\n\n\ndef g(x):\n    return f(x, 1), f(x, 2)\n",
        "b": "from .ops import f as op  # the op\n\ny = op(0, n=1)\n",
        "c": "from kit import ops\n\ny = ops.f(0, 1)\n",
        "d": "import kit.ops\n\ny = kit.ops.f(0, 1)\n",
        "e": "from kit import f\n\ny = f(0, 1)\n",
        "far": "def g(x):\n    from kit.ops import (\n        f,\n    )\n\n    return f(x, 1)\n",
        "other": "from elsewhere import f\n\ny = f(0, 1)\n",
    }
    done = migrate(OP, **others)
    found = {key: done.files[f"kit/{key}.py"] for key in others}
    assert found == {
        "__init__": 'from kit.ops import Cfg, f\n\n__all__ = ["f"]\n',
        "a": "from kit.ops import Cfg, f\n\n\ndef g(x):\n    return f(x, Cfg(n=1)), f(x, Cfg(n=2))\n",
        "b": "from .ops import Cfg, f as op  # the op\n\ny = op(0, cfg=Cfg(n=1))\n",
        "c": "from kit import ops\n\ny = ops.f(0, ops.Cfg(n=1))\n",
        "d": "import kit.ops\n\ny = kit.ops.f(0, kit.ops.Cfg(n=1))\n",
        "e": "from kit import Cfg, f\n\ny = f(0, Cfg(n=1))\n",
        "far": "def g(x):\n    from kit.ops import (\n        Cfg,\n        f,\n    )\n\n    return f(x, Cfg(n=1))\n",
        "other": others["other"],
    }


META = "def meta(x, n, scale=1.0):\n    return x.new_empty(n)\n\n\n"
WITH_META = '"kit::f", infer_output_meta_fn=meta'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "def meta(x, n, scale=1.0):\n    return x.new_empty(n)\n",
            "def meta(x, cfg):\n    return x.new_empty(cfg.n)\n",
        ),
        (
            "def meta(x: Tensor, n: int, scale: float = 1.0) -> Tensor:\n    return x.new_empty(n)\n",
            "def meta(x: Tensor, cfg: Cfg) -> Tensor:\n    return x.new_empty(cfg.n)\n",
        ),
        (
            "def meta(x, *, scale, n):\n    return x.new_empty(n)\n",
            "def meta(x, *, cfg):\n    return x.new_empty(cfg.n)\n",
        ),
    ],
)
def test_the_meta_function(before: str, after: str) -> None:
    done = migrate(f"{before}\n\n{OP}".replace('"kit::f"', WITH_META))
    assert code(done) == f"{CFG}{after}\n\n{GROUPED}".replace('"kit::f"', WITH_META)


def test_a_meta_function_with_defaults() -> None:
    text = (
        f"{META}{OP}".replace("n, scale=1.0", "n=2, scale=1.0")
        .replace("n: int", "n: int = 2")
        .replace('"kit::f"', WITH_META)
    )
    done = migrate(text, "scale")
    assert "def meta(x, n=2, cfg=Cfg()):\n" in code(done)
    assert "def f(x: Tensor, n: int = 2, cfg: Cfg = Cfg()) -> Tensor:\n" in code(done)


def test_a_meta_function_above_what_the_fields_need() -> None:
    text = (
        f"{META}HALF = 0.5\n\n\n{OP}".replace("n, scale", "n: int, scale")
        .replace("= 1.0", "= HALF")
        .replace('"kit::f"', WITH_META)
    )
    after = f'def meta(x, cfg: "Cfg"):\n    return x.new_empty(cfg.n)\n\n\nHALF = 0.5\n\n\n{CFG}{GROUPED}'.replace(
        "= 1.0", "= HALF"
    )
    assert code(migrate(text)) == after.replace('"kit::f"', WITH_META)
    late = text.replace("n: int, scale=1.0", "n=2, scale=1.0").replace("n: int,", "n: int = 2,")
    refused(migrate(late, "scale"), late, "in the meta function cfg has no default and would follow n, which has one")


def test_a_meta_function_in_another_file() -> None:
    text = "from kit.metas import meta\n\n\n" + OP.replace('"kit::f"', WITH_META)
    done = migrate(text, metas="def meta(x, n: int, scale: float):\n    return x.new_empty(n)\n")
    assert done.files["kit/metas.py"] == "def meta(x, cfg):\n    return x.new_empty(cfg.n)\n"
    assert done.notes() == []


def test_a_lambda() -> None:
    before = "lambda x, n, scale=1.0: x.new_empty(n, *[n for n in ()], (lambda scale: scale)(scale))"
    after = "lambda x, cfg: x.new_empty(cfg.n, *[n for n in ()], (lambda scale: scale)(cfg.scale))"
    done = migrate(OP.replace('"kit::f"', f'"kit::f", infer_output_meta_fn={before}'))
    assert code(done) == CFG + GROUPED.replace('"kit::f"', f'"kit::f", infer_output_meta_fn={after}')


AUTOGRAD = OP.replace('"kit::f"', '"kit::f", setup_context_fn=setup, backward_fn=backward')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    x, n, scale = inputs\n    ctx.n = n * scale\n", "    x, cfg = inputs\n    ctx.n = cfg.n * cfg.scale\n"),
        ("    x, count, _ = inputs\n    ctx.n = count\n", "    x, cfg = inputs\n    ctx.n = cfg.n\n"),
        ("    _, _, s = inputs\n    ctx.s = s\n", "    _, cfg = inputs\n    ctx.s = cfg.scale\n"),
        ("    (x, n, scale) = inputs\n    ctx.x = x\n", "    (x, _) = inputs\n    ctx.x = x\n"),
        ("    x, *_ = inputs\n    ctx.x = x\n", "    x, *_ = inputs\n    ctx.x = x\n"),
        (
            "    ctx.n = inputs[1] + inputs[-1] + inputs[0]\n",
            "    ctx.n = inputs[1].n + inputs[-1].scale + inputs[0]\n",
        ),
        ("    pass\n", "    pass\n"),
    ],
)
def test_setup_and_backward(before: str, after: str) -> None:
    setup = "def setup(ctx, inputs, output):\n"
    grads = (
        "\n\ndef backward(ctx, grad):\n    if ctx.n:\n        return grad, None, None\n"
        "    return (\n        grad * 2,\n        None,  # n\n        None,\n    )\n\n\n"
    )
    fewer = (
        "\n\ndef backward(ctx, grad):\n    if ctx.n:\n        return grad, "
        "None\n    return (\n        grad * 2,\n        None,  # n\n    )\n\n\n"
    )
    done = migrate(setup + before + grads + AUTOGRAD)
    assert done.notes() == []
    assert code(done) == (setup + after + fewer + CFG + GROUPED).replace(
        '"kit::f"', '"kit::f", setup_context_fn=setup, backward_fn=backward'
    )


@pytest.mark.parametrize(
    ("setup", "backward", "said"),
    [
        ("    save(inputs)\n", "    return grad, None, None\n", "what setup() does with inputs is not known"),
        (
            "    for item in inputs: pass\n",
            "    return grad, None, None\n",
            "what setup() does with inputs is not known",
        ),
        ("    a = inputs[1:]\n", "    return grad, None, None\n", "which of inputs it takes is not known"),
        ("    a = inputs[--1]\n", "    return grad, None, None\n", "which of inputs it takes is not known"),
        ("    a = inputs[k]\n", "    return grad, None, None\n", "which of inputs it takes is not known"),
        ("    x, n = inputs\n", "    return grad, None, None\n", "it does not unpack the 3 inputs one by one"),
        (
            "    x, *n = inputs\n    ctx.n = n\n",
            "    return grad, None, None\n",
            "it does not unpack the 3 inputs one by one",
        ),
        ("    x, n, s = inputs\n    n = n + 1\n", "    return grad, None, None\n", "setup() assigns n"),
        ("    pass\n", "    return grads\n", "it does not return the 3 gradients one by one"),
        ("    pass\n", "    return grad, grad.sum(), None\n", "it has a gradient for n"),
        ("    pass\n", "    return grad, *nothing\n", "it does not return the 3 gradients one by one"),
        ("    cfg = 1\n", "    return grad, None, None\n", "setup() uses cfg already"),
    ],
)
def test_setup_and_backward_that_stand_against_it(setup: str, backward: str, said: str) -> None:
    text = f"def setup(ctx, inputs, output):\n{setup}\n\ndef backward(ctx, grad):\n{backward}\n\n{AUTOGRAD}"
    refused(migrate(text), text, said)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("f(*args)", "this call unpacks its arguments"),
        ("f(x, **more)", "this call unpacks its arguments"),
        ("torch.ops.kit.f(x, **more)", "this call unpacks its arguments"),
        ("run(f, x)", "the op is used here otherwise than by a call"),
        ("table = {'f': f}", "the op is used here otherwise than by a call"),
        ("g = f", "the op is used here otherwise than by a call"),
        ("f.default(x)", "the op is used here otherwise than by a call"),
        ("run(torch.ops.kit.f)", "the op is used here otherwise than by a call"),
        ("run(torch.ops.kit.f.default)", "the op is used here otherwise than by a call"),
        ("f(x)", "this call does not match the parameters of the op"),
        ("f(x, 1, 2, 3)", "this call does not match the parameters of the op"),
        ("f(x, m=1)", "this call does not match the parameters of the op"),
        ("f(n=1, x=probe(), scale=2)", "probe() may have effects"),
        ("f(x, len(f(x, 1)))", "another call of the op is among the flags"),
        ("Cfg = 1", "Cfg is used here already"),
    ],
)
def test_uses_that_stand_against_it(more: str, said: str) -> None:
    text = f"{OP}\n\ndef g(x, args, more, run):\n    {more}\n"
    refused(migrate(text), text, said)


def test_uses_in_other_files_stand_against_it_too() -> None:
    for text, said in [
        ("from kit.ops import f\n\nOPS = [f]\n", "kit/far.py:3: the op is used here otherwise than by a call"),
        ("from kit.ops import f\n\nCfg = 1\nf(0, 1)\n", "kit/far.py:3: Cfg is used here already"),
        ("from kit.ops import *\n\nf(0, 1)\n", "kit/far.py:3: how `Cfg` is to be imported here is not known"),
        (
            "try:\n    from kit.ops import f\nexcept ImportError:\n    f = None\n\nf(0, 1)\n",
            "the op is used here otherwise",
        ),
    ]:
        done = migrate(OP, far=text)
        assert code(done) == OP
        assert done.files["kit/far.py"] == text
        assert said in done.notes()[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            OP.replace("n: int, ", "n: int, w: Tensor, "),
            "`w` has no default and would follow `cfg__scale`, which has one (MAG312)",
        ),
        (
            OP.replace("n: int", "*, eps: float = 0.0, n: int"),
            "the op cannot be registered unchanged: parameter `n` of `f()` is refused",
        ),
        (OP.replace("n: int", "n: Tensor"), "`n` is not a flag, but a tensor or a dataclass"),
        (
            OP.replace("= 1.0", "= [1]").replace("scale: float", "scale: list[int]"),
            "the default of `scale` cannot be kept in a schema",
        ),
        (OP.replace("    return x", "    n = n + 1\n    return x"), "f() assigns n"),
        (OP.replace("    return x", "    print(f'{n=}')\n    return x"), "an f-string prints the name n"),
        (OP.replace("    return x", "    print(locals())\n    return x"), "locals() may use any local"),
        (OP.replace("    return x", "    cfg = n\n    return x"), "f() uses cfg already"),
        (OP.replace("    return x", "    return f(x, n - 1) if n else x"), "the op calls itself here"),
        (OP.replace("x: Tensor, n", "x: Tensor, /, n"), "`x` is positional-only, and the op is called by name"),
        (OP.replace("(x: Tensor, ", "(x, "), "the op cannot be registered unchanged"),
        (OP.replace("\ndef f", "\n@other\ndef f"), "the op is not made by the decorator alone"),
        (OP.replace('"kit::f"', '"kit::f", infer_output_meta_fn=make()'), "its `infer_output_meta_fn` is not known"),
        (
            META.replace("n, ", "m, ") + OP.replace('"kit::f"', '"kit::f", infer_output_meta_fn=meta'),
            "the meta function has other parameters than the op",
        ),
        (
            META + OP.replace('"kit::f"', '"kit::f", infer_output_meta_fn=meta') + "\n\nmeta(1, 2)\n",
            "`meta()`, which comes with the op, is used here too",
        ),
        (
            "def make():\n" + "".join(f"    {line}\n" if line else "\n" for line in OP.splitlines()),
            "the op is made inside of a function",
        ),
        (OP.replace("x: Tensor, n", "x: Tensor, cfg__n: int, n"), "there would be two lowered parameters `cfg__n`"),
    ],
)
def test_signatures_and_bodies_that_stand_against_it(text: str, said: str) -> None:
    refused(migrate(text), text, said)


def test_lowered_calls_by_place_in_another_order() -> None:
    text = OP.replace("n: int, scale: float = 1.0", "n: int, w: Tensor, scale: float")
    calls = "\n\ny = torch.ops.kit.f(x, 1, w, 2.0)\n"
    refused(migrate(text + calls), text + calls, "this call passes an argument by position whose position has changed")
    named = "\n\ny = torch.ops.kit.f(x, n=1, w=w, scale=2.0)\n"
    assert code(migrate(text + named)).endswith("torch.ops.kit.f(x, cfg__n=1, w=w, cfg__scale=2.0)\n")


def test_an_op_under_a_condition() -> None:
    text = "if torch.cuda.is_available():\n" + "".join(f"    {line}\n" if line else "\n" for line in OP.splitlines())
    grouped = "".join(f"    {line}\n" if line else "\n" for line in (CFG.removesuffix("\n") + GROUPED).splitlines())
    assert code(migrate(text)) == f"if torch.cuda.is_available():\n{grouped}"


def test_options_that_fit_nothing() -> None:
    with pytest.raises(OptionError, match="did you mean `kit::f`"):
        migrate(OP, op="kit::ff")
    with pytest.raises(OptionError, match="has no parameter `m`"):
        migrate(OP, flags="n,m")
    files = {**example_files([("python", OP)]), "opschema.toml": '[magi]\nmagi = "plain"\n'}
    with pytest.raises(OptionError, match="takes no dataclasses"):
        migrate_files(PACK, "group-flags", files, ["op=f", "flags=n", "name=Cfg"])
    with pytest.raises(OptionError, match="is not a name"):
        migrate_files(PACK, "group-flags", files, ["op=f", "flags=n", "name=class"])


def test_dataclass_is_imported_where_it_is_not() -> None:
    text = "import torch\nfrom magi_compiler.api import magi_register_custom_op\nfrom torch import Tensor\n\n\n" + OP
    done = migrate_files(PACK, "group-flags", {"kit/ops.py": text}, ["op=f", "flags=n,scale", "name=Cfg"])
    head = (
        "from dataclasses import dataclass\n\nimport torch\n"
        "from magi_compiler.api import magi_register_custom_op\nfrom torch import Tensor\n\n\n"
    )
    assert done.files["kit/ops.py"] == head + CFG + GROUPED
    whole = "import dataclasses\n" + text
    done = migrate_files(PACK, "group-flags", {"kit/ops.py": whole}, ["op=f", "flags=n,scale", "name=Cfg"])
    assert "@dataclasses.dataclass(frozen=True)\nclass Cfg:\n" in done.files["kit/ops.py"]


def test_beside_another_dataclass() -> None:
    other = "@dataclass(frozen=True)\nclass Other:\n    w: Tensor\n\n\n"
    op = OP.replace("n: int", "o: Other, n: int").replace("x * scale", "x * o.w * scale")
    calls = "\n\ndef g(x, w):\n    return f(x, Other(w), 2), torch.ops.kit.f(x, w, 2, cfg=1), torch.ops.kit.f(x, o__w=w, n=2)\n"
    done = migrate(other + op + calls.replace(", cfg=1", ""))
    grouped = GROUPED.replace("x: Tensor", "x: Tensor, o: Other").replace("x * cfg", "x * o.w * cfg")
    after = (
        calls.replace("Other(w), 2", "Other(w), Cfg(n=2)").replace(", cfg=1", "").replace("w=w, n=2", "w=w, cfg__n=2")
    )
    assert code(done) == other + CFG + grouped + after


def test_line_ends_stay() -> None:
    files = {
        path: text.replace("\n", "\r\n") for path, text in example_files([("python", OP)]).items() if path == OPS_PATH
    }
    done = migrate_files(PACK, "group-flags", files, ["op=f", "flags=n,scale", "name=Cfg"])
    assert done.files == {OPS_PATH: (HEAD + CFG + GROUPED).replace("\n", "\r\n")}


def test_tabs_stay() -> None:
    files = {OPS_PATH: (HEAD + OP).replace("    ", "\t")}
    call = "\n\ny = f(\n\tx,\n\t1,  # once\n\t2.0,\n)\n"
    files[OPS_PATH] += call
    done = migrate_files(PACK, "group-flags", files, ["op=f", "flags=n,scale", "name=Cfg"])
    after = "\n\ny = f(\n\tx,\n\tCfg(\n\t\tn=1,  # once\n\t\tscale=2.0,\n\t),\n)\n"
    assert done.files == {OPS_PATH: (HEAD + CFG + GROUPED).replace("    ", "\t") + after}
