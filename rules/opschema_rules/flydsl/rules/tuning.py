"""Tuners of FlyDSL's `autotune` that do not match the functions they tune."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.source.bodies import Body
from opschema_cli.source.call_misfits import misfits
from opschema_cli.source.python import Expr
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.detection import ROOT
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.tuners import MAKING, Configs, Tuner, calls_of_tuner, configs_of, tuners_in
from opschema_rules.flydsl.usage import is_unsure

_OPTIONS = frozenset({"waves_per_eu", "maxnreg", "pre_hook"})
"""Keywords of `Config` that are not passed to the function."""

_NAMED = ("key", "reset_to_zero", "restore_value")
"""Arguments of `autotune()` that list parameters of the function."""


@rule("FLY239", "tuner-arguments", pure=True)
def tuner_arguments(file: FlyFile) -> Iterator[Diagnostic]:
    """A tuner whose configurations, key or calls do not fit the function that it tunes.

    `autotune(configs=[...], key=[...])` calls the function with the arguments of the call and the keywords of one `Config`:
    all but `waves_per_eu`, `maxnreg` and `pre_hook`. With a keyword that the function does not have, that configuration fails:
    while tuning it is skipped with a message, and as the default it raises `TypeError`. `Config` takes keywords only.

    `key` lists parameters whose values get a tuning of their own. A name that is no parameter is always `None`, so calls that
    differ in it share one configuration; together with `artifact_name` it raises `ValueError`. In `restore_value` and
    `reset_to_zero` it is ignored, and the configurations are compared on tensors that the others have changed.

    Only functions are checked whose parameters are known and that take no `**kwargs`, and calls of the tuner in its file.
    Configurations that code selects or computes from others are not checked.

    Bad:

    ```python
    from flydsl.autotune import Config, autotune


    @autotune(configs=[Config(BLOCK=128), Config(BLOK=256)], key=["m"])
    @flyc.jit
    def scale(A: fx.Tensor, n: fx.Int32, BLOCK: fx.Constexpr[int]):
        print(A, n, BLOCK)
    ```

    Bad:

    ```python
    from flydsl.autotune import Config, autotune

    CONFIGS = (Config(BLOCK=128), Config(256))


    @flyc.jit
    def scale(A: fx.Tensor, n: fx.Int32, BLOCK: fx.Constexpr[int]):
        print(A, n, BLOCK)


    tuned = autotune(configs=CONFIGS, key=["n"])(scale)


    def run(x):
        tuned(x)
    ```

    Good:

    ```python
    from flydsl.autotune import Config, autotune


    def configs(A, n):
        return [Config(BLOCK=128, waves_per_eu=2), Config(BLOCK=n)]


    @flyc.jit
    def scale(A: fx.Tensor, n: fx.Int32, BLOCK: fx.Constexpr[int], stream: fx.Stream = fx.Stream(None)):
        print(A, n, BLOCK)


    tuned = autotune(configs=configs, key=["n", "stream"])(scale)


    def run(x):
        tuned(x, n=4)
    ```
    """
    tree = file.tree
    for each in tree.files:
        if tree.bodies.program.module_name(each.path).partition(".")[0] == ROOT:
            continue
        bodies = {*tree.bodies.calling(each, MAKING)}
        bodies |= {item.parent for item in tree.bodies.decorated(each, MAKING) if item.parent is not None}
        for body in tree.bodies.sorted(bodies):
            for tuner in tuners_in(tree, body):
                if not is_unsure(tree, body, tuner.expr):
                    yield from _misfits(tree, tuner)


def _misfits(tree: FlyTree, tuner: Tuner) -> Iterator[Diagnostic]:
    configs = configs_of(tree, tuner)
    for body, call in configs.calls:
        for keyword, value in call.args:
            if not keyword and not tree.contract.own:  # else FLY228 reports it
                yield Diagnostic("`Config` takes keywords only: it raises `TypeError`", body.at(value), ops=_ops(tuner))
    if any(item.kind == "kwarg" for item in tuner.params):
        return
    for body, call in configs.calls:
        yield from _of_config(tuner, body, call)
    yield from _names(tuner)
    for body, call in calls_of_tuner(tree, tuner):
        if not is_unsure(tree, body, call):
            yield from _of_call(tuner, configs, body, call)


def _ops(tuner: Tuner) -> tuple[str, ...]:
    return (tuner.target.function.name,) if tuner.target.function is not None else ()


def _related(tuner: Tuner) -> tuple[Related, ...]:
    function = tuner.target.function
    if function is None:
        return ()
    written = f"`{function.name}({', '.join(item.name for item in function.params)})`"
    return (Related(tuner.target.at(function.span), written),)


def _of_config(tuner: Tuner, body: Body, call: Expr) -> Iterator[Diagnostic]:
    """Yield findings on keywords of a configuration that are not parameters."""
    names = _parameters(tuner)
    for keyword, value in call.args:
        unset = keyword == "num_warps" and value.kind == "const" and value.value is None
        if keyword and keyword != "**" and not unset and keyword not in _OPTIONS and keyword not in names:
            message = f"`{_ops(tuner)[0]}` has no parameter `{keyword}`, so this configuration fails"
            message += did_you_mean(near_name(keyword, names))
            yield Diagnostic(message, body.at(value), _related(tuner), ops=_ops(tuner))


def _parameters(tuner: Tuner) -> list[str]:
    """Return the parameters that can be passed by name."""
    return [item.name for item in tuner.params if item.by_name]


def _names(tuner: Tuner) -> Iterator[Diagnostic]:
    """Yield findings on names that are not parameters, in arguments that list parameters."""
    names = _parameters(tuner)
    stored = tuner.argument("artifact_name")
    raises = stored is not None and isinstance(stored.value, str)
    for argument in _NAMED:
        listed = tuner.argument(argument)
        for item in (listed.elements or ()) if listed is not None else ():
            if not isinstance(item.value, str) or item.value in names:
                continue
            effect = "calls that differ in it share one configuration" if argument == "key" else "it is ignored"
            if argument == "key" and raises:
                effect = "with `artifact_name` it raises `ValueError`"
            message = f"`{_ops(tuner)[0]}` has no parameter `{item.value}`: {effect}"
            message += did_you_mean(near_name(item.value, names))
            level = Severity.ERROR if argument == "key" and raises else Severity.WARNING
            yield Diagnostic(message, tuner.body.at(item), _related(tuner), ops=_ops(tuner), severity=level)


def _of_call(tuner: Tuner, configs: Configs, body: Body, call: Expr) -> Iterator[Diagnostic]:
    """Yield findings on a call of the tuner that matches the function with no configuration."""
    given = {word for _, item in configs.calls for word in item.keywords if word and word != "**"}
    found = [item for item in misfits(call, tuner.params) if item.fault != "twice"]
    missing = [item.name for item in found if item.fault == "missing" and item.name not in given]
    name = _ops(tuner)[0]
    if missing and configs.complete and configs.calls:
        message = f"the call passes no {quoted(missing)} to `{name}`, nor does any configuration: it raises"
        yield Diagnostic(message, body.at(call.items[0]), _related(tuner), ops=_ops(tuner))
    for item in found:
        if item.fault in ("surplus", "unknown") and item.argument is not None:
            what = f"has no parameter `{item.name}`" if item.name else "takes fewer arguments"
            yield Diagnostic(f"`{name}` {what}: it raises", body.at(item.argument), _related(tuner), ops=_ops(tuner))
