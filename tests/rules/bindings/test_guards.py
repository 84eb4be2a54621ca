"""Uses of modules that are meant: names that are asked for or set, and calls that are expected to fail."""

from __future__ import annotations

import pytest

from tests.rules.bindings.test_calls import codes


@pytest.mark.parametrize(
    "python",
    [
        "with pytest.raises(TypeError):\n    ext.f()\n",
        "pytest.raises(TypeError, lambda: ext.f())\n",
        "with pytest.raises(AttributeError):\n    ext.nothing\n",
        "with pytest.raises(ValueError):\n    a, b, c = ext.pair(x, s, w)\n",
        "@pytest.mark.xfail\ndef test():\n    ext.f()\n",
        "class T(unittest.TestCase):\n    def test(self):\n        with self.assertRaises(TypeError):\n            ext.f()\n",
        "class T(unittest.TestCase):\n    def test(self):\n        self.assertRaises(TypeError, lambda: ext.f())\n",
        "with contextlib.suppress(AttributeError):\n    ext.nothing()\n",
        "try:\n    ext.f(x, 1, 2, 3, 4)\nexcept TypeError:\n    ext.f(x)\n",
        "try:\n    ext.f(x, 1, 2, 3, 4)\nexcept OSError:\n    raise\nexcept Exception:\n    ext.f(x)\n",
        "if torch.__version__ > '2':\n    ext.f()\n",
        "HAS = hasattr(ext, 'nothing')\nif HAS:\n    ext.nothing()\n",
        "def g():\n    if not hasattr(ext, 'nothing'):\n        return None\n    return ext.nothing()\n",
        "@pytest.mark.skipif(not hasattr(ext, 'nothing'), reason='')\ndef test():\n    ext.nothing()\n",
        "if 'nothing' in dir(ext):\n    ext.nothing()\n",
        "ext.nothing = lambda: 1\next.nothing()\n",
        "setattr(ext, 'nothing', 1)\next.nothing\n",
        "for name in names:\n    setattr(ext, name, 1)\next.nothing\n",
        "ext.__dict__['nothing'] = 1\next.nothing\n",
        "ext.__dict__.setdefault('nothing', 1)\next.nothing\n",
        "for name in names:\n    ext.__dict__[name] = print\next.nothing(), ext.f()\n",
        "vars(ext).update(nothing=1)\next.nothing\n",
        "names = vars(ext)\nnames['nothing'] = 1\next.nothing\n",
        "exec(source, ext.__dict__)\next.nothing()\n",
        "exec(source, vars(ext))\next.nothing()\n",
        "ext.__getattr__ = find\next.nothing()\n",
        "setattr(ext, '__getattr__', find)\next.nothing()\n",
        "ext.__class__ = Lazy\next.nothing()\n",
        "mock.patch.object(ext, name, 1)\next.nothing()\n",
        "sys.modules['ext'].nothing = 1\next.nothing\n",
        "mod = sys.modules['ext']\nmod.nothing = 1\next.nothing\n",
        "setattr(sys.modules['ext'], 'nothing', 1)\next.nothing\n",
        "importlib.import_module('ext').nothing = 1\next.nothing\n",
        "def add(mod, name):\n    def do(f):\n        setattr(mod, name, f)\n    return do\n@add(ext, 'nothing')\ndef g(): ...\n"
        "ext.nothing()\n",
        "def add(mod):\n    mod.nothing = 1\nadd(mod=ext)\next.nothing\n",
        "def test(monkeypatch):\n    monkeypatch.setattr(ext, 'f', print)\n    ext.f()\n",
        "with mock.patch.object(ext, 'f'):\n    ext.f()\n",
        "with mock.patch.object(target=ext, attribute='f'):\n    ext.f()\n",
        "with mock.patch('ext.pair', return_value=(1, 2, 3)):\n    a, b, c = ext.pair(1)\n",
        "def test(mocker):\n    mocker.patch(target='ext.nothing')\n    ext.nothing()\n",
        "def test(monkeypatch):\n    monkeypatch.setattr('ext.nothing', print, raising=False)\n    ext.nothing()\n",
        "@mock.patch('ext.f', print)\ndef test():\n    ext.f()\n",
        "@mock.patch('ext')\ndef test(fake):\n    ext.f(), ext.nothing()\n",
        "@mock.patch.multiple(ext, f=print, nothing=mock.DEFAULT)\ndef test():\n    ext.f(), ext.nothing()\n",
        "@mock.patch.multiple('ext', f=print)\ndef test():\n    ext.f()\n",
        "@mock.patch.multiple(ext, **fakes)\ndef test():\n    ext.f(), ext.nothing()\n",
        "def g(x):\n    if x:\n        raise NotImplementedError\n        return ext.nothing()\n    return 1\n",
        "def g(x):\n    return 1\n    ext.f()\n",
        "if typing.TYPE_CHECKING:\n    from ext import Nothing\n",
        "if TYPE_CHECKING:\n    from ext import Nothing\nelse:\n    Nothing = object\n",
        "if False:\n    ext.f()\n    ext.nothing()\n",
        "def g():\n    if 0:\n        def h():\n            ext.f()\n",
    ],
)
def test_what_is_meant(python: str) -> None:
    assert codes(f"import contextlib, pytest, torch, unittest\nfrom unittest import mock\nimport ext\n{python}") == []


@pytest.mark.parametrize(
    ("python", "code"),
    [
        ("try:\n    ext.f()\nexcept OSError:\n    pass\n", "BND301"),
        ("try:\n    ext.f()\nfinally:\n    close()\n", "BND301"),
        ("with pytest.raises(TypeError):\n    pass\next.f()\n", "BND301"),
        ("if hasattr(ext, 'other'):\n    pass\next.nothing()\n", "BND303"),
        ("__all__ = ['nothing']\next.nothing()\n", "BND303"),
        ("ext2.nothing = 1\next.nothing()\n", "BND303"),
        (
            "if 'a' in ext.__dict__:\n    print(vars(ext)['a'], dict(vars(ext)), ext.__dict__.keys())\next.f()\n",
            "BND301",
        ),
        ("globals().update(vars(ext))\nfor name in vars(ext):\n    print(name, {**vars(ext)})\next.f()\n", "BND301"),
        ("other.__dict__['nothing'] = 1\next.nothing\n", "BND303"),
        ("sys.modules['other'].nothing = 1\nsys.modules['ext'].g == 1\next.nothing\n", "BND303"),
        ("def show(mod, other):\n    setattr(other, 'a', mod)\nshow(ext, x)\next.nothing\n", "BND303"),
        ("mock.patch('ext.g', print)\next.f()\n", "BND301"),
        ("mock.patch('ext2.f', print)\next.f()\n", "BND301"),
        ("mock.patch.multiple(ext, g=print)\next.f()\n", "BND301"),
        ("requests.patch('https://kit.ai/ext.f')\next.f()\n", "BND301"),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    from ext import Nothing\n", "BND303"),
        ("if not TYPE_CHECKING:\n    from ext import Nothing\n", "BND303"),
        ("if True:\n    ext.f()\n", "BND301"),
        ("def g(x):\n    if x:\n        raise NotImplementedError\n    return ext.nothing()\n", "BND303"),
        ("def g(x):\n    def h():\n        return 1\n    return ext.nothing()\n", "BND303"),
        ("def g(x):\n    for y in x:\n        continue\n    ext.f()\n", "BND301"),
    ],
)
def test_what_is_not(python: str, code: str) -> None:
    assert codes(f"import pytest\nimport ext\n{python}") == [code]


def test_a_name_that_another_file_replaces_by_its_full_name() -> None:
    fixture = "@pytest.fixture(autouse=True)\ndef fake(monkeypatch):\n    monkeypatch.setattr('ext.f', print)\n"
    assert codes("import ext\next.f()\next.pair()\n", **{"conftest.py": fixture}) == ["BND301"]
