"""The small workspaces that contain the examples of rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence


def files_of(fences: Sequence[tuple[str, str]], base: Mapping[str, str], module: str, head: str) -> dict[str, str]:
    """The files of an example, by path, on top of ``base``.

    A fence with a path after its language is that entire file; a ``toml`` fence without one is the configuration, a ``python``
    fence the file ``module`` below ``head``.
    """
    files = dict(base)
    for info, text in fences:
        language, _, path = info.partition(" ")
        if path:
            files[path.strip()] = text
        elif language == "toml":
            files["opschema.toml"] = text
        elif language == "python":
            files[module] = head + text
    return files


def files_named(fences: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the files of an example whose fences each name a file after the language (a ``toml`` fence without a path is the
    configuration).

    Raises:
        ValueError: a fence does not.
    """
    for info, _ in fences:
        if " " not in info and info != "toml":
            raise ValueError(
                f"the fence ```{info} names no file; write its path behind the language: ```yaml kit/ops.yaml"
            )
    return files_of(fences, {}, "", "")


def files_by_language(
    paths: Mapping[str, str], base: Mapping[str, str] | None = None
) -> Callable[[Sequence[tuple[str, str]]], dict[str, str]]:
    """Return a function from the fences of an example to its files, by path, on top of ``base``: a fence without a path is the
    file in ``paths`` for its language.
    """

    def files(fences: Sequence[tuple[str, str]]) -> dict[str, str]:
        found = dict(base or {})
        for info, text in fences:
            language, _, path = info.partition(" ")
            found[path.strip() or paths.get(language, language)] = text
        return found

    return files
