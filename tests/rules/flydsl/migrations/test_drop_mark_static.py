"""The API that pinned sizes into the cache key: away with its calls, its tests, its state and what speaks of it."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.flydsl.examples import HEAD, KERNELS_PATH, example_files
from opschema_rules.flydsl.pack import PACK

LINES = HEAD.count("\n")


def migrate(text: str, version: str = "0.2.0", **others: str) -> Migrated:
    files = example_files([("toml", f'[flydsl]\nversion = "{version}"\n'), ("python", text)])
    files |= {f"kit/{name}.py": HEAD + other for name, other in others.items()}
    return migrate_files(PACK, "drop-mark-static", files)


def code(done: Migrated, path: str = KERNELS_PATH) -> str:
    return done.files[path].removeprefix(HEAD)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("t = flyc.from_dlpack(a).mark_static()\n", "t = flyc.from_dlpack(a)\n"),
        ("run(flyc.from_dlpack(a).mark_static(dims=[0, 1]), b)  # pinned\n", "run(flyc.from_dlpack(a), b)  # pinned\n"),
        ("run(flyc.from_dlpack(a).mark_static([0]).mark_static([1]))\n", "run(flyc.from_dlpack(a))\n"),
        ("t = flyc.from_dlpack(a)\nt.mark_static()\nrun(t)\n", "t = flyc.from_dlpack(a)\nrun(t)\n"),
        ("t = flyc.from_dlpack(a)\nt.mark_static([0]).mark_static([1])\n", "t = flyc.from_dlpack(a)\n"),
        ("t = flyc.from_dlpack(a)\nu = t.mark_static([0])\n", "t = flyc.from_dlpack(a)\nu = t\n"),
        (
            "t = (\n    flyc.from_dlpack(a)\n    .mark_static()\n)  # yes\n",
            "t = (\n    flyc.from_dlpack(a)\n)  # yes\n",
        ),
        (
            "def f(a):\n    t = flyc.from_dlpack(a)\n    # for the key\n    t.mark_static()\n    return t\n",
            "def f(a):\n    t = flyc.from_dlpack(a)\n    return t\n",
        ),
        (
            "def f(a, pin):\n    t = flyc.from_dlpack(a)\n    if pin:\n        t = t.mark_static()\n    return t\n",
            "def f(a, pin):\n    t = flyc.from_dlpack(a)\n    if pin:\n        pass\n    return t\n",
        ),
    ],
)
def test_the_object_of_a_call_stays(before: str, after: str) -> None:
    done = migrate(before)
    assert code(done) == after
    assert done.notes() == []


def test_a_dynamic_tensor_loses_its_sizes_from_the_key() -> None:
    text = "t = flyc.from_dlpack(a).mark_layout_dynamic(1)\nu = t.mark_static([0])\nv = flyc.from_dlpack(b)\n"
    done = migrate(text)
    assert code(done) == "t = flyc.from_dlpack(a).mark_layout_dynamic(1)\nu = t\nv = flyc.from_dlpack(b)\n"
    note = (
        "without `mark_static()` its sizes are not in the key of the kernel: pass those that it bakes as `fx.Constexpr`"
    )
    assert done.notes() == [f"kit/kernels.py:{LINES + 2}: {note}"]
    assert migrate(text, "0.4.2").notes() == done.notes()
    assert migrate(text, "0.5.0").notes() == []  # what the kernel bakes is in the program, which is the key


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(t):\n    return t.mark_static()\n", "its object is not known"),
        ("t = flyc.from_dlpack(a)\nt = load()\nt.mark_static()\n", "its object is not known"),
        ("flyc.from_dlpack(a).mark_static(pick())\n", "pick() may have effects"),
        (
            "t = (\n    flyc.from_dlpack(a)\n    # why\n    .mark_static()\n)\n",
            "the removed code contains a comment",
        ),
    ],
)
def test_what_is_not_certain_is_left(text: str, reason: str) -> None:
    done = migrate(text)
    assert code(done) == text
    assert [item.status for item in done.result.sites] == ["left"]
    assert reason in " ".join(done.notes())


@pytest.mark.parametrize(
    "text",
    [
        "torch._dynamo.mark_static(flyc.from_dlpack(a), 0)\n",
        "from torch._dynamo import mark_static\n\nt = flyc.from_dlpack(a)\nmark_static(t, 0)\n",
        "def _mark_static(t):\n    return t\n\n\n_mark_static(flyc.from_dlpack(a))\n",
    ],
)
def test_torch_has_a_function_of_that_name(text: str) -> None:
    done = migrate(text + "flyc.from_dlpack(a).mark_static()\n")
    assert code(done) == text + "flyc.from_dlpack(a)\n"
    assert done.sites() == [f"kit/kernels.py:{LINES + text.count(chr(10)) + 1}: drop the call of `mark_static()`"]
    assert done.notes() == []


def test_up_to_0_1_8_it_is_what_keeps_sizes_in_the_key() -> None:
    text = "t = flyc.from_dlpack(a).mark_static()\n"
    done = migrate(text, "0.1.8")
    assert code(done) == text
    assert done.notes()[0].endswith(
        "by hand: only this call puts sizes into the key of this FlyDSL, or of one that it may be"
    )


ONLY = {
    "its key": "    t = flyc.from_dlpack(a).mark_static()\n    assert t.__cache_signature__() != key(a)\n",
    "itself": "    t = flyc.from_dlpack(a)\n    assert t.mark_static() is t\n",
    "what it raises": "    t = flyc.from_dlpack(a)\n    with pytest.raises(IndexError):\n        t.mark_static([5])\n",
    "its type": '    """Pinned."""\n    assert isinstance(flyc.from_dlpack(a).mark_static(), flyc.TensorAdaptor)\n',
}


@pytest.mark.parametrize("body", ONLY.values(), ids=ONLY)
def test_a_test_that_only_tests_it_goes(body: str) -> None:
    other = "def test_other():\n    assert flyc.from_dlpack(a)\n"
    done = migrate("", test_key=f"def test_pinned():\n{body}\n\n{other}")
    assert code(done, "kit/test_key.py") == other
    assert done.sites() == [f"kit/test_key.py:{LINES + 1}: drop the test `test_pinned`, which only tests `mark_static`"]
    assert done.notes() == []


MORE = {
    "a result": "    out = run(flyc.from_dlpack(a){})\n    assert out == 1\n",
    "what it is handed to": "    t = flyc.from_dlpack(a){}\n    assert run(t) == 1\n",
    "a launch": "    t = flyc.from_dlpack(a){}\n    launch(t)\n    assert t.shape\n",
    "something else too": "    t = flyc.from_dlpack(a){}\n    assert t.shape\n    assert a.sum() == 0\n",
    "nothing": "    flyc.from_dlpack(a){}\n",
}


@pytest.mark.parametrize("body", MORE.values(), ids=MORE)
def test_a_test_that_tests_more_keeps_the_rest(body: str) -> None:
    text = f"def test_pinned():\n{body}"
    done = migrate("", test_key=text.format(".mark_static()"))
    assert code(done, "kit/test_key.py") == text.format("")


def test_a_helper_in_a_module_of_kernels_is_no_test() -> None:
    text = "def test_pinned(a):\n    t = flyc.from_dlpack(a).mark_static()\n    assert t.shape\n"
    assert code(migrate(text)) == text.replace(".mark_static()", "")


ADAPTOR = '''\
from typing import List, Optional


class TensorAdaptor:
    """A tensor.

    Sizes are in the key. Dims that ``mark_static`` names are
    in it too, always.
    """

    def __init__(self, tensor, dynamic_layout=True):
        self.shape = tensor.shape
        # Dims that are pinned.
        self._pinned = frozenset()
        self._dynamic = dynamic_layout

    def key(self):
        if self._dynamic:
            found = ("dynamic", len(self.shape))
            if not self._pinned:
                return found
            return found + tuple(self.shape[dim] for dim in sorted(self._pinned))
        return ("static", self.shape)

    def mark_static(self, dims: Optional[List[int]] = None):
        """Pin sizes."""
        found = set(self._pinned)
        found.update(range(len(self.shape)) if dims is None else dims)
        self._pinned = frozenset(found)
        return self

    def name(self) -> Optional[str]:
        return None
'''

DROPPED = '''\
from typing import Optional


class TensorAdaptor:
    """A tensor.

    Sizes are in the key.
    """

    def __init__(self, tensor, dynamic_layout=True):
        self.shape = tensor.shape
        self._dynamic = dynamic_layout

    def key(self):
        if self._dynamic:
            return ("dynamic", len(self.shape))
        return ("static", self.shape)

    def name(self) -> Optional[str]:
        return None
'''

OWN = "python/flydsl/compiler/jit_argument.py"


def migrate_own(text: str, **others: str) -> Migrated:
    files = {
        "python/flydsl/__init__.py": "",
        "python/flydsl/compiler/__init__.py": "from .jit_argument import TensorAdaptor, from_dlpack\n",
        OWN: text,
        "examples/add.py": HEAD,
    }
    return migrate_files(PACK, "drop-mark-static", {**files, **{f"{name}.md": other for name, other in others.items()}})


def test_the_method_goes_with_what_only_it_writes() -> None:
    done = migrate_own(ADAPTOR)
    assert done.files[OWN] == DROPPED
    assert done.sites() == [f"{OWN}:25: drop `TensorAdaptor.mark_static()`"]
    assert done.notes() == [f"{OWN}:5: mentions of `mark_static` were removed here: check the text"]


@pytest.mark.parametrize(
    "other",
    [
        "    def pin(self):\n        self._pinned = frozenset([0])\n",
        "    def pinned(self):\n        return self._pinned\n",
        "    def pin(self):\n        self._pinned |= {0}\n",
    ],
)
def test_what_something_else_uses_stays(other: str) -> None:
    text = f"{ADAPTOR}\n{other}"
    start, end = text.index("    def mark_static"), text.index("    def name")
    after = (text[:start] + text[end:]).replace("List, ", "")
    after = after.replace(" Dims that ``mark_static`` names are\n    in it too, always.", "")
    assert migrate_own(text).files[OWN] == after


def test_what_other_texts_say_comes_back_as_notes() -> None:
    done = migrate_own(ADAPTOR, guide="Chain `mark_static()`, not `torch._dynamo.mark_static`.\n")
    assert done.notes()[1:] == ["guide.md:1: `mark_static` is still mentioned here"]


def test_a_file_that_does_not_parse_is_told_and_left() -> None:
    broken = "# mark_static is here\ndef f(:\n"
    files = {
        "opschema.toml": '[flydsl]\nversion = "0.2.0"\n',
        "kit/kernels.py": HEAD + "flyc.from_dlpack(a).mark_static()\n",
    }
    done = migrate_files(PACK, "drop-mark-static", {**files, "kit/broken.py": broken})
    assert done.files["kit/broken.py"] == broken
    assert done.files["kit/kernels.py"] == HEAD + "flyc.from_dlpack(a)\n"
    assert done.notes() == ["kit/broken.py:1: `mark_static` is still mentioned here"]


def test_what_is_skipped_keeps_the_texts() -> None:
    text = "# One. Use mark_static.\nt = flyc.from_dlpack(a).mark_static()\nu = flyc.from_dlpack(b).mark_static()\n"
    files = {"opschema.toml": '[flydsl]\nversion = "0.2.0"\n', "kernels.py": HEAD + text}
    done = migrate_files(PACK, "drop-mark-static", files, skip=[f"kernels.py:{LINES + 2}"])
    assert done.files["kernels.py"] == HEAD + text.replace("(b).mark_static()", "(b)")
    assert [item.status for item in done.result.sites] == ["skipped", "migrated"]
