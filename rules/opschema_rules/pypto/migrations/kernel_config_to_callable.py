"""`kernel-config-to-callable`: merges a `kernel_config.py` and its `golden.py` into one scene test."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft, DraftError
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.project import Project
from opschema_cli.source.python_tree import TreeError
from opschema_cli.source.text import Edit, Source, Span
from opschema_rules.pypto import proofs
from opschema_rules.pypto.migrations.old_configs import Config, read_config
from opschema_rules.pypto.migrations.old_goldens import Golden, read_golden
from opschema_rules.pypto.migrations.old_mentions import Mentions, check_links
from opschema_rules.pypto.migrations.old_statements import Unclear
from opschema_rules.pypto.migrations.scene_text import Harness, class_name, find_harness, scene_text, test_name
from opschema_rules.pypto.migrations.scopes import PROGRAMS
from opschema_rules.pypto.model import Kernel, Part, Program

_PROSE = (".md", ".rst", ".txt")
_PLATFORM = re.compile(r"\w+\Z")


class ToCallable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`platforms` are those that the cases run on (`a2a3sim,a2a3`); the old runner got them from its caller. If tests run
    on different platforms, run the migration once for each with `--only`.
    """

    platforms: list[str]


def find(draft: Draft, options: ToCallable) -> Iterator[Site]:
    """Yield the descriptions that are modules.

    Raises:
        OpschemaError: no platform is given, or one that is not a name.
    """
    if not options.platforms or not all(map(_PLATFORM.match, options.platforms)):
        raise OpschemaError("-o platforms=…: expected names of platforms with commas between them")
    for program in _modules(draft):
        yield Site(Place(program.file.path, program.span), "write its program into a scene test", subject=program)


@migration(
    "kernel-config-to-callable",
    find=find,
    options=ToCallable,
    scope=PROGRAMS,
    settled="no description is a module of its own",
    proof=proofs.DESCRIBED,
)
def kernel_config_to_callable(draft: Draft, sites: Sequence[Site], options: ToCallable) -> Iterator[Note]:
    """Turn `kernel_config.py` and `golden.py` into one scene test with a `CALLABLE`.

    Until April 2026 a test of simpler was a folder with a `golden.py` and a `kernels/kernel_config.py`, and a runner was pointed to
    it. Now it is a class that pytest collects, with the same description as its `CALLABLE`.

    `golden.py` becomes `test_<folder>.py`. Its functions and constants stay unchanged; a class below them has

    - `CALLABLE`: `ORCHESTRATION` and `KERNELS` as they are written, comments too, with sources relative to the test;
    - the runtime in its decorator; `RTOL`, `ATOL` and `RUNTIME_ENV`;
    - `CASES`: one for each of `ALL_CASES`, with the settings of `RUNTIME_CONFIG`. All but the default one are `manual`, as
      before;
    - `generate_args` and `compute_golden`, which call the functions.

    `kernel_config.py` is removed; its docstring becomes that of the class.

    Before, `bgemm/kernels/kernel_config.py`:

    ```python
    from pathlib import Path

    from simpler.task_interface import ArgDirection as D

    _ROOT = Path(__file__).parent

    ORCHESTRATION = {
        "source": str(_ROOT / "orchestration" / "bgemm.cpp"),
        "function_name": "aicpu_orchestration_entry",
        "signature": [D.IN, D.IN, D.OUT],
    }
    KERNELS = [
        {"func_id": 0, "source": str(_ROOT / "aic" / "gemm.cpp"), "core_type": "aic", "signature": [D.IN, D.IN, D.OUT]},
    ]
    RUNTIME_CONFIG = {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 4, "block_dim": 3}
    ```

    After, in `bgemm/test_bgemm.py`:

    ```python
    @scene_test(level=2, runtime="tensormap_and_ringbuffer")
    class TestBgemm(SceneTestCase):
        RTOL = 1e-3

        CALLABLE = {
            "orchestration": {
                "source": "kernels/orchestration/bgemm.cpp",
                "function_name": "aicpu_orchestration_entry",
                "signature": [D.IN, D.IN, D.OUT],
            },
            "incores": [
                {"func_id": 0, "source": "kernels/aic/gemm.cpp", "core_type": "aic", "signature": [D.IN, D.IN, D.OUT]},
            ],
        }
    ```

    A description is left unchanged, with a note, if it is computed; if there is no `golden.py`, or already a test (the note
    says whether it is the same); if either file does more than that, is a link or the target of one; and if code still
    refers to it. Notes list what to check in the new test: an orchestration without a signature, which scene tests need (it
    is written where tasks only read, or read and write, each of its tensors); another number of outputs than `__outputs__`
    has; repeated runs; paths in `RUNTIME_ENV`; and mentions in prose.

        opschema migrate kernel-config-to-callable -o platforms=a2a3sim,a2a3 --only 'examples/a2a3/**' --apply
    """
    harness, mentioned = find_harness(draft.project), Mentions.of(draft.project)
    done: list[_Test] = []
    for site in sites:
        assert isinstance(site.subject, Program)
        try:
            test = _read(draft, site.subject, mentioned)
            text = scene_text(test.config, test.golden, harness, class_name(test.folder), options.platforms)
        except (Unclear, DraftError, TreeError) as error:
            yield Note(site.place, f"by hand: {error}", leaves_site=True)
            continue
        draft.move(test.golden_path, test.target)
        draft.edit(test.golden_path, [Edit(Span(0, len(test.golden.tree.text)), text)])
        draft.delete(site.place.path)
        done.append(test)
    after = draft.settle()
    for test in done:
        yield from _notes(after, test, harness)
    removed = {path: test.target for test in done for path in (test.program.file.path, test.golden_path)}
    for place, path in Mentions.of(after).of_files(removed):
        yield Note(place, f"`{path}` is still mentioned here; it is `{removed[path]}` now")


class _Test(msgspec.Struct, frozen=True):
    """An old test that can be rewritten."""

    program: Program
    config: Config
    golden: Golden
    golden_path: str

    @property
    def folder(self) -> str:
        return self.golden_path.rpartition("/")[0]

    @property
    def target(self) -> str:
        return posixpath.join(self.folder, f"test_{test_name(self.folder)}.py")


def _read(draft: Draft, program: Program, mentioned: Mentions) -> _Test:
    """Read the old test that a description belongs to.

    Raises:
        Unclear: it is to be left.
    """
    path, workspace = program.file.path, draft.project.workspace
    golden = _golden_of(draft, program)
    if not golden:
        raise Unclear("there is no `golden.py` beside its folder")
    others = [item for item in _modules(draft) if item.file.path != path and _golden_of(draft, item) == golden]
    if others:
        raise Unclear(f"`{golden}` is the one of `{others[0].file.path}` too")
    check_links(draft.project, (path, golden))
    config = read_config(draft.tree(path), program, posixpath.dirname(golden))
    test = _Test(program, config, read_golden(draft.tree(golden)), golden)
    beside = [item for item in workspace.under(test.folder or ".", ".py") if _is_test(item, test.folder)]
    if beside or workspace.is_file(test.target):
        raise Unclear(f"there is a test already, `{(beside or [test.target])[0]}`{_said(draft, program, beside)}")
    places = (place for place, _ in mentioned.of_files([path, golden]) if _is_code(place.path, path, golden))
    if place := next(places, None):
        line = workspace.source(place.path).position(place.span.start).line
        raise Unclear(f"`{place.path}`, line {line}, refers to it")
    return test


def _said(draft: Draft, program: Program, paths: Sequence[str]) -> str:
    """Compare the program of a description with the tests' classes; empty if they have none."""
    subjects = [item for item in draft.loaded.subjects if isinstance(item, Program) and item.file.path in paths]
    if not subjects:
        return ""
    same = any(_facts(item) == _facts(program) for item in subjects)
    return f"; its `CALLABLE` says {'the same' if same else 'something else'}"


def _facts(program: Program) -> list[tuple[object, ...]]:
    """Return the orchestration and kernels of a description, without names of kernels."""
    parts: list[Part] = [*program.kernels, *([program.orchestration] if program.orchestration is not None else [])]
    return [
        (
            *(part.source, part.text("core_type"), part.text("function_name")),
            part.func_id if isinstance(part, Kernel) else None,
            [slot.direction for slot in part.signature.slots or ()] if part.signature is not None else None,
        )
        for part in parts
    ]


def _modules(draft: Draft) -> list[Program]:
    """Return the descriptions that are modules."""
    return [item for item in draft.loaded.subjects if isinstance(item, Program) and item.form == "module"]


def _golden_of(draft: Draft, program: Program) -> str:
    """Return the ``golden.py`` in a description's folder, or else in the parent folder; empty if there is none."""
    folder = posixpath.dirname(program.file.path)
    paths = (posixpath.join(item, "golden.py") for item in (folder, posixpath.dirname(folder)))
    return next((item for item in paths if item in draft.project.workspace.file_set), "")


def _is_test(path: str, folder: str) -> bool:
    return posixpath.dirname(path) == folder and posixpath.basename(path).startswith("test_")


def _is_code(path: str, *own: str) -> bool:
    return not path.endswith(_PROSE) and path not in own


# -- notes -------------------------------------------------------------------------------------------------------------


def _notes(project: Project, test: _Test, harness: Harness) -> Iterator[Note]:
    source, declared, named = project.workspace.source(test.target), test.config.outputs, test.golden.outputs
    if not test.config.signed:
        message = (
            "the orchestration has no signature; a scene test needs one entry for each tensor of `generate_inputs`"
        )
        yield _note(source, '"orchestration"', message)
    elif declared is not None and named is not None and declared != named:
        message = (
            f"`__outputs__` named {named} tensors; a scene test compares the {declared} that this declares as outputs"
        )
        yield _note(source, '"orchestration"', message)
    if test.config.rounds not in ("", "1"):
        yield _note(
            source, "CASES", f"it ran {test.config.rounds} times; a scene test runs as often as `--rounds` says"
        )
    if not harness.manual and len(test.golden.cases) > 1:
        yield _note(source, "CASES", "only the default one ran; the tree's scene tests run all of their cases")
    environment = test.config.environment
    if environment is not None and re.search(r"_(?:DIR|PATH)\b", environment.text):
        yield _note(source, "RUNTIME_ENV", "paths in it were relative to the folder of `kernel_config.py`")


def _note(source: Source, word: str, message: str) -> Note:
    at = source.text.index(word, source.text.index("@scene_test("))
    return Note(Place(source.path, Span(at, at + len(word))), message)
