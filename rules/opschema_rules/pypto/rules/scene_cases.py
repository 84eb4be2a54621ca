"""The decorator and the cases of a scene test, against what simpler's test harness accepts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.source.python import Class, Expr, Function, PythonFile
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.pypto.harness import Harness, harness_of
from opschema_rules.pypto.model import Program
from opschema_rules.pypto.scene_classes import Case, cases_of, decorator_of, is_plain, sure_reads, written_fields


@rule("PTO129", "scene-case")
def scene_case(program: Program) -> Iterator[Diagnostic]:
    """A scene test with a setting that the test harness does not take, or without something that it needs.

    A misspelled platform is noticed by nobody: no run selects the case. An unknown `runtime` or `level` is refused when the test is
    run, an unknown key of `config` or `runtime_env` when its file is imported, and a case without `name` or `platforms`, or
    without a parameter that `generate_args()` reads, ends in a `KeyError`. `generate_args()` and `compute_golden()` are called
    with the parameters of the case as last argument; a test without one of them fails.

    What the harness takes is read from `simpler_setup` and `src/*/runtime` of the tree; nothing is reported where these are not
    part of it. Nothing is reported either in a file whose tests expect errors, for values that are not written in the class,
    for parameters that are read in a branch, or of a class that is built on another test.

    Bad:

    ```python program/test_add.py
    from simpler.task_interface import ArgDirection as D
    from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test


    @scene_test(level=2, runtime="tensormap_and_ringbuffer")
    class TestAdd(SceneTestCase):
        CALLABLE = {"orchestration": {"source": "main.cpp", "function_name": "entry"}, "incores": [{"func_id": 0}]}
        CASES = [{"name": "small", "platforms": ["a2a3"], "params": {"size": 16}}]

        def generate_args(self, params):
            return TaskArgsBuilder(TensorArg("a", make(params["length"])))
    ```

    ```python simpler_setup/scene_test.py
    def selected(case, platform):
        return platform in case["platforms"] and case["name"]
    ```

    Bad:

    ```python program/test_add.py
    from simpler.task_interface import ArgDirection as D
    from simpler_setup import SceneTestCase, scene_test


    @scene_test(level=2, runtime="tensormap_and_ringbuffer")
    class TestAdd(SceneTestCase):
        CALLABLE = {"orchestration": {"source": "main.cpp", "function_name": "entry"}, "incores": [{"func_id": 0}]}
        CASES = [{"name": "small", "platforms": ["a2a3", "a2a3_sim"]}]
    ```

    ```python simpler_setup/platform_info.py
    PLATFORM_MAP: dict[str, tuple[str, str]] = {
        "a2a3": ("a2a3", "onboard"),
        "a2a3sim": ("a2a3", "sim"),
    }
    ```

    Good, the parameter has a default:

    ```python program/test_add.py
    from simpler.task_interface import ArgDirection as D
    from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test


    @scene_test(level=2, runtime="tensormap_and_ringbuffer")
    class TestAdd(SceneTestCase):
        CALLABLE = {"orchestration": {"source": "main.cpp", "function_name": "entry"}, "incores": [{"func_id": 0}]}
        CASES = [{"name": "small", "platforms": ["a2a3"], "params": {"size": 16}}]

        def generate_args(self, params):
            return TaskArgsBuilder(TensorArg("a", make(params["size"], params.get("length", 8))))

        def compute_golden(self, args, params):
            args.a[:] = 1
    ```

    ```python simpler_setup/scene_test.py
    def selected(case, platform):
        return platform in case["platforms"] and case["name"]
    ```
    """
    cls = program.owner
    decorator = decorator_of(program.file, cls) if cls is not None else None
    if cls is None or decorator is None:
        return
    harness, cases = harness_of(program.project), cases_of(cls)
    yield from _decorator(program.file, harness, decorator)
    given = {name for name in harness.required if cases and _may_get(program.file.source.text, name)}
    for case in cases or ():
        yield from _settings(program.file, harness, case)
        yield from _platforms(program.file, harness, case)
        yield from _fields(program.file, harness, case, given)
    if cases and harness.fields and is_plain(program.file, cls):
        yield from _methods(program.file, cls)
        yield from _parameters(program.file, cls, cases)


def _decorator(file: PythonFile, harness: Harness, decorator: Expr) -> Iterator[Diagnostic]:
    named = {keyword: value for keyword, value in decorator.args if keyword}
    named |= dict(zip(("level", "runtime"), decorator.positional(), strict=False))
    runtime, level = named.get("runtime"), named.get("level")
    if runtime is not None and isinstance(runtime.value, str):
        yield from _unknown(file, runtime, harness.runtimes, "runtime")
    if level is not None and isinstance(level.value, int) and harness.levels and level.value not in harness.levels:
        levels = listed([str(item) for item in sorted(harness.levels)], "or")
        yield Diagnostic(f"there is no level {level.value}; use {levels}", Place(file.path, level.span))


def _unknown(file: PythonFile, expr: Expr, known: Iterable[str], what: str, note: str = "") -> Iterator[Diagnostic]:
    """Yield a finding on a string that names nothing."""
    names = sorted(known)
    if names and isinstance(expr.value, str) and expr.value not in names:
        hint = (
            did_you_mean(near_name(expr.value, names, 0.6)) or f"; there {'are' if names[1:] else 'is'} {listed(names)}"
        )
        yield Diagnostic(f"there is no {what} `{expr.value}`{note}{hint}", Place(file.path, expr.span))


def _platforms(file: PythonFile, harness: Harness, case: Case) -> Iterator[Diagnostic]:
    for name, note in (("platforms", ", so that no run selects it"), ("manual", "")):
        value = case.fields[name][1] if name in case.fields else None
        for item in value.items if value is not None and value.kind in ("list", "tuple", "set") else ():
            if item.kind == "const":
                yield from _unknown(file, item, harness.platforms, "platform", note)


def _settings(file: PythonFile, harness: Harness, case: Case) -> Iterator[Diagnostic]:
    """Yield findings on keys of ``config`` and of its ``runtime_env`` that the harness rejects."""
    config = case.fields.get("config")
    inner = _keys(config[1]).get("runtime_env") if config is not None else None
    for mapping, known, title in ((config, harness.config, "config"), (inner, harness.ring, "runtime_env")):
        for name, (key, _) in (_keys(mapping[1]) if mapping is not None and known else {}).items():
            if name not in known:
                hint = did_you_mean(near_name(name, known, 0.6)) or f"; it takes {listed(sorted(known))}"
                message = f"`{title}` of {case.title} takes no `{name}`, and the file cannot be imported{hint}"
                yield Diagnostic(message, Place(file.path, key.span))


def _keys(expr: Expr) -> dict[str, tuple[Expr, Expr]]:
    """Return the constant keys of a dict with their values."""
    if expr.kind != "dict":
        return {}
    pairs = zip(expr.items[::2], expr.items[1::2], strict=True)
    return {key.value: (key, value) for key, value in pairs if key.kind == "const" and isinstance(key.value, str)}


def _fields(file: PythonFile, harness: Harness, case: Case, given: set[str]) -> Iterator[Diagnostic]:
    """Yield findings on fields that a case needs and lacks, and on misspelled ones."""
    text = file.source.text
    others = [name for name in case.fields if name not in harness.fields]
    for name in sorted(harness.required - case.fields.keys() - given):
        near = near_name(name, others, 0.75)
        place = case.fields[near][0] if near is not None else case.expr
        hint = f": is `{near}` a misspelling of it?" if near is not None else ""
        others = [item for item in others if item != near]
        yield Diagnostic(f"{case.title} has no `{name}`, and cannot be selected{hint}", Place(file.path, place.span))
    for name in others:
        meant = near_name(name, harness.fields - harness.required - case.fields.keys(), 0.8)
        if meant is not None and len(re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", text)) == 1:
            message = f"`{name}` of {case.title} is not read; did you mean `{meant}`?"
            yield Diagnostic(message, Place(file.path, case.fields[name][0].span))


def _may_get(text: str, name: str) -> bool:
    """Whether code of a file may set a field of a case."""
    return (
        re.search(rf"""["']{name}["']\s*(?:\]\s*=(?!=)|,)|\.\s*update\(|\bCASES\b(?!\s*(?::[^=\n]*)?= )""", text)
        is not None
    )


_CALLED = {"generate_args": ("params",), "compute_golden": ("args", "params")}
_OWN_WAY = ("run_and_validate", "run_class_cases", "def test_", "def _run")
"""Code of tests that the harness does not run, or does not run alone."""


def _methods(file: PythonFile, cls: Class) -> Iterator[Diagnostic]:
    """Yield findings on the two functions that the harness calls."""
    functions = {item.name: item for item in cls.body.functions}
    wrong = [name for name, arguments in _CALLED.items() if not _is_callable(functions.get(name), len(arguments) + 1)]
    if not wrong or not _is_run(file.source.text) or len(functions) != len(cls.body.functions):
        return
    others = [name for name in functions if name not in _CALLED]
    for name in wrong:
        function, arguments = functions.get(name), _CALLED[name]
        if function is not None:
            message = (
                f"`{name}()` is called with {listed(arguments)}, and does not take {'them' if arguments[1:] else 'it'}"
            )
            yield Diagnostic(message, Place(file.path, function.span))
        elif not (name == "compute_golden" and _may_skip(file)) and not any(a.target == name for a in cls.body.assigns):
            near = near_name(name, others, 0.75)
            place = functions[near].span if near is not None else cls.span
            hint = f": is `{near}` a misspelling of it?" if near is not None else ""
            yield Diagnostic(f"`{cls.name}` has no `{name}()`, and fails without it{hint}", Place(file.path, place))


def _is_run(text: str) -> bool:
    """Whether the harness runs the tests of a file."""
    return not any(word in text for word in _OWN_WAY) or "super().test_run(" in text


def _may_skip(file: PythonFile) -> bool:
    """Whether golden functions of a file may not be called."""
    return "skip_golden" in file.source.text or "SKIP_GOLDEN" in file.source.text


def _is_callable(function: Function | None, number: int) -> bool:
    """Whether a function with that name can be called with that many arguments, as far as that is known."""
    return function is not None and (bool(function.decorators) or _takes(function, number))


def _takes(function: Function, number: int) -> bool:
    """Whether a function can be called with that many positional arguments."""
    by_place = [item for item in function.params if item.kind in ("posonly", "normal")]
    variadic = any(item.kind == "vararg" for item in function.params)
    needed = sum(item.default is None for item in by_place)
    asks = any(item.kind == "kwonly" and item.default is None for item in function.params)
    return needed <= number and (variadic or len(by_place) >= number) and not asks


def _parameters(file: PythonFile, cls: Class, cases: list[Case]) -> Iterator[Diagnostic]:
    """Yield findings on parameters that the test always reads and that a case does not have."""
    known = [(case, names) for case in cases if (names := _parameters_of(case)) is not None]
    everywhere = frozenset.intersection(*(names for _, names in known)) if known else frozenset[str]()
    seen: set[str] = set()
    for function in cls.body.functions if known else ():
        own = _CALLED.get(function.name)
        if own is None or len(function.params) != len(own) + 1 or function.decorators or (own[1:] and _may_skip(file)):
            continue
        name = function.params[-1].name
        read = re.compile(rf"""\b{name}\[["'](\w+)["']\]""").findall(file.source.text, function.end, function.outer.end)
        if everywhere.issuperset(read) or not _only_reads(file, function, name):
            continue
        for key, expr in sure_reads(function, name):
            lacking = [case for case, names in known if key not in names]
            if lacking and key not in seen:
                seen.add(key)
                yield _lacks(file, function, key, expr, lacking[0], {item for _, names in known for item in names})


def _lacks(file: PythonFile, function: Function, key: str, expr: Expr, case: Case, names: set[str]) -> Diagnostic:
    hint = did_you_mean(near_name(key, names - {key}, 0.7)) if key not in names else ""
    params = case.fields.get("params")
    related = Related(Place(file.path, (params[1] if params is not None else case.expr).span), "its parameters")
    message = f"`{function.name}()` reads the parameter `{key}`, which {case.title} does not have{hint}"
    return Diagnostic(message, Place(file.path, expr.span), (related,))


def _parameters_of(case: Case) -> frozenset[str] | None:
    """Return the names of a case's parameters; None if they are not written in it."""
    if "params" not in case.fields:
        return frozenset()
    fields = written_fields(case.fields["params"][1])
    return frozenset(fields) if fields is not None else None


def _only_reads(file: PythonFile, function: Function, name: str) -> bool:
    """Whether a function only reads its parameters."""
    first = next(iter(function.statements), None)
    code = file.source.text[first.start : function.outer.end] if first is not None else ""
    reads = re.findall(rf"""\b{name}(?:\[["']\w+["']\](?!\s*(?:=(?!=)|[-+*/|&]=))|\.get\()""", code)
    return len(reads) == len(re.findall(rf"\b{name}\b", code))
