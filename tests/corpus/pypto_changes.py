"""Changes that a maintainer of simpler's programs may make by mistake, and such as only look wrong.

They are chosen without regard to the rules: descriptions are read with Python's own parser, and C++ by its text. Programs whose
sources several descriptions share are left out, since a change there means something else in each.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import msgspec

from tests.corpus.python_text import PythonText
from tests.corpus.seeded import Change, Make, Texts, by_name, replaced

_LEFT_OUT = re.compile(r"/(?:deepseek_v4_flash_decode|qwen3_14b_decode)/|negative|invalid|error|fail")
"""Programs that a compiler wrote, and such as are meant to fail."""


class Item(msgspec.Struct):
    """A kernel of a description."""

    node: ast.Dict
    values: dict[str, ast.expr]

    @property
    def func_id(self) -> int:
        """Its number."""
        return int(ast.unparse(self.values["func_id"]))

    @property
    def signature(self) -> list[str]:
        """Its directions."""
        found = self.values.get("signature")
        return [ast.unparse(item).rpartition(".")[2] for item in found.elts] if isinstance(found, ast.List) else []


class Program(msgspec.Struct):
    """A description in a Python file, its orchestration and its kernels."""

    file: PythonText
    orchestration: dict[str, ast.expr]
    source: str
    items: list[Item]

    @property
    def path(self) -> str:
        """The path of the description."""
        return self.file.path

    def kernel(self, item: Item) -> str:
        """The source of a kernel."""
        return _path(self.path, item.values["source"])


def _fields(node: ast.expr) -> dict[str, ast.expr]:
    if not isinstance(node, ast.Dict):
        return {}
    return {
        key.value: value for key, value in zip(node.keys, node.values, strict=True) if isinstance(key, ast.Constant)
    }


def _path(path: str, source: ast.expr) -> str:
    text = source.value if isinstance(source, ast.Constant) else ""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), text))


@cache
def _described(path: str, text: str) -> list[Program]:
    found: list[Program] = []
    file = PythonText(path, text)
    for node in ast.walk(file.tree):
        if not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CALLABLE"):
            continue
        fields = _fields(node.value)
        orchestration, incores = _fields(fields.get("orchestration", node.value)), fields.get("incores")
        if not isinstance(incores, ast.List) or "source" not in orchestration:
            continue
        items = [Item(item, _fields(item)) for item in incores.elts if isinstance(item, ast.Dict)]
        if all(
            {"func_id", "source"} <= item.values.keys() and isinstance(item.values["source"], ast.Constant)
            for item in items
        ) and all(re.fullmatch(r"\d+", ast.unparse(item.values["func_id"])) for item in items):
            found.append(Program(file, orchestration, _path(path, orchestration["source"]), items))
    return found


def programs(texts: Texts) -> Iterator[Program]:
    """The programs of the tree that have their sources to themselves."""
    found = [
        item
        for path, text in sorted(texts.items())
        if path.endswith(".py") and "CALLABLE" in text and text.isascii() and not _LEFT_OUT.search(path)
        for item in _described(path, text)
    ]
    used = Counter(source for item in found for source in {item.source, *map(item.kernel, item.items)})
    for item in found:
        if (
            item.source in texts
            and item.items
            and all(used[s] == 1 for s in (item.source, *map(item.kernel, item.items)))
        ):
            yield item


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def _in(texts: Texts, path: str, pattern: str) -> Iterator[re.Match[str]]:
    """The matches in a text whose comments are blank."""
    text = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), texts.get(path, ""))
    yield from re.finditer(pattern, text, re.MULTILINE)


def _swap(texts: Texts, path: str, pattern: str, new: str | Callable[[re.Match[str]], str]) -> Iterator[Change]:
    for match in _in(texts, path, pattern):
        text = match.expand(new) if isinstance(new, str) else new(match)
        yield replaced(path, texts[path], *match.span(), text)


def _submitted(texts: Texts, program: Program) -> set[str]:
    return {match[1] for match in _in(texts, program.source, r"rt_submit_ai[vc]_task\(\s*(\w+)")}


def group(path: str) -> str:
    """The folder of a program."""
    return re.split(r"/kernels/|/[^/]*$", path)[0]


# Mistakes


def duplicated_number(texts: Texts) -> Iterator[Change]:
    """Two kernels have one number, as after a paste."""
    for program in programs(texts):
        if len(program.items) > 1:
            yield program.file.replace(program.items[1].values["func_id"], str(program.items[0].func_id))


def forgotten_kernel(texts: Texts) -> Iterator[Change]:
    """A kernel that the orchestration submits is taken off the list."""
    for program in programs(texts):
        last = program.items[-1]
        if str(last.func_id) in _submitted(texts, program) and len(program.items) > 1:
            start, end = program.file.span(last.node)
            tail = program.file.text[end:].lstrip()
            end = len(program.file.text) - len(tail) + (1 if tail.startswith(",") else 0)
            yield program.file.edit(start, end, "")


def other_core(texts: Texts) -> Iterator[Change]:
    """A task is submitted to the core that its kernel is not built for."""
    for program in programs(texts):
        cores = {
            str(item.func_id): ast.literal_eval(item.values["core_type"])
            for item in program.items
            if "core_type" in item.values
        }
        for match in _in(texts, program.source, r"rt_submit_(aiv|aic)_task\(\s*(\d+)"):
            if cores.get(match[2]) == match[1]:
                other = "aic" if match[1] == "aiv" else "aiv"
                yield replaced(program.source, texts[program.source], *match.span(1), other)


def exchanged_directions(texts: Texts) -> Iterator[Change]:
    """The last two directions of a kernel are exchanged."""
    for program in programs(texts):
        for item in program.items:
            found = item.values.get("signature")
            if (
                isinstance(found, ast.List)
                and len(item.signature) > 1
                and len({*item.signature[-2:]}) == 2
                and "SCALAR" not in item.signature
            ):
                texts_of = [ast.unparse(each) for each in found.elts]
                texts_of[-1], texts_of[-2] = texts_of[-2], texts_of[-1]
                yield program.file.replace(found, f"[{', '.join(texts_of)}]")


def shifted_directions(texts: Texts) -> Iterator[Change]:
    """The first direction of a kernel with an output is lost, so that all others are shifted."""
    for program in programs(texts):
        for item in program.items:
            found = item.values.get("signature")
            if isinstance(found, ast.List) and item.signature[1:2] and item.signature[0] == "IN":
                yield program.file.replace(found, f"[{', '.join(ast.unparse(each) for each in found.elts[1:])}]")


def moved_source(texts: Texts) -> Iterator[Change]:
    """A kernel's source was moved to another folder, and the description was not changed."""
    for program in programs(texts):
        source = program.items[0].values["source"]
        if isinstance(source, ast.Constant) and "/" in source.value:
            folder, _, name = source.value.rpartition("/")
            yield program.file.replace(source, repr(f"{folder}/common/{name}"))


def renamed_function(texts: Texts) -> Iterator[Change]:
    """The function of the orchestration has another name than the description says."""
    for program in programs(texts):
        name = program.orchestration.get("function_name")
        if isinstance(name, ast.Constant):
            yield from _swap(texts, program.source, rf"\b{name.value}(?=\()", "build_task_graph")


def unlisted_argument(texts: Texts) -> Iterator[Change]:
    """The orchestration's signature lacks its last tensor, which the orchestration reads."""
    for program in programs(texts):
        found = program.orchestration.get("signature")
        if isinstance(found, ast.List) and len(found.elts) > 1:
            last = len(found.elts) - 1
            if any(_in(texts, program.source, rf"\.tensor\({last}\)")):
                yield program.file.replace(found, f"[{', '.join(ast.unparse(each) for each in found.elts[:-1])}]")


def index_past_the_end(texts: Texts) -> Iterator[Change]:
    """The orchestration reads a tensor behind the last one."""
    for program in programs(texts):
        found = program.orchestration.get("signature")
        if isinstance(found, ast.List):
            last = len(found.elts) - 1
            yield from _swap(texts, program.source, rf"(?<=\.tensor\(){last}(?=\))", str(last + 1))


def exchanged_kernel_arguments(texts: Texts) -> Iterator[Change]:
    """A kernel takes its input for its output and its output for its input."""
    for program in programs(texts):
        for item in program.items:
            if (
                item.signature
                and item.signature[0] == "IN"
                and item.signature[-1] == "OUT"
                and "SCALAR" not in item.signature
            ):
                path, last = program.kernel(item), len(item.signature) - 1
                found = list(_in(texts, path, rf"\bargs\[(0|{last})\]"))
                if sorted(match[1] for match in found) == ["0", str(last)]:
                    (a, b), (c, d), text = found[0].span(1), found[1].span(1), texts[path]
                    swapped = text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]
                    yield Change(path, swapped, text.count("\n", 0, a) + 1)


def scalar_first(texts: Texts) -> Iterator[Change]:
    """A scalar is added before the tensors."""
    for program in programs(texts):
        text = texts[program.source]
        for match in _in(texts, program.source, r"^([ \t]*)(\w+)\.add_scalar\([^;]*\);\n"):
            first = re.search(rf"^[ \t]*{match[2]}\.add_(?:input|output|inout)\(", text, re.MULTILINE)
            between = text[first.start() : match.start()] if first is not None else "{"
            if first is not None and first.start() < match.start() and not re.search(r"[{}]|\bif\b|\bfor\b", between):
                moved = text[: first.start()] + match[0] + between + text[match.end() :]
                yield Change(program.source, moved, text.count("\n", 0, match.start()) + 1)


def other_number_in_the_orchestration(texts: Texts) -> Iterator[Change]:
    """The orchestration submits a kernel by a number that no kernel has."""
    for program in programs(texts):
        yield from _swap(texts, program.source, r"(?<=rt_submit_ai[vc]_task\()\s*\d+(?=,)", "41")
        yield from _swap(
            texts, program.source, r"^#define FUNC_\w+ +\d+$", lambda match: re.sub(r"\d+$", "41", match[0])
        )


def read_accumulator(texts: Texts) -> Iterator[Change]:
    """A tensor that a kernel updates is added as an input."""
    for program in programs(texts):
        if all(item.signature for item in program.items):
            yield from _swap(texts, program.source, r"\.add_inout\((?=\w+\))", ".add_input(")


def dropped_submit(texts: Texts) -> Iterator[Change]:
    """The only task of a kernel is not submitted any more."""
    for program in programs(texts):
        numbers = Counter(match[1] for match in _in(texts, program.source, r"rt_submit_ai[vc]_task\(\s*(\w+)"))
        for match in _in(texts, program.source, r"^[ \t]*rt_submit_ai[vc]_task\(\s*(\d+),[^;]*;[^\n]*\n"):
            if numbers[match[1]] == 1:
                yield replaced(program.source, texts[program.source], *match.span(), "")


def another_argument(texts: Texts) -> Iterator[Change]:
    """A task gets one tensor more, in front of the others: each kernel argument is another one."""
    for program in programs(texts):
        if all(item.signature for item in program.items):
            yield from _swap(
                texts, program.source, r"^([ \t]*)(\w+)\.add_input\((\w+)\);\n", r"\1\2.add_input(\3);\n\g<0>"
            )


def wrong_argument_of_a_kernel(texts: Texts) -> Iterator[Change]:
    """A kernel reads its last argument one place further than it is passed."""
    for program in programs(texts):
        for item in program.items:
            path = program.kernel(item)
            numbers = sorted({int(match[1]) for match in _in(texts, path, r"\bargs\[(\d+)\]")})
            if numbers and item.signature and numbers == list(range(len(numbers))):
                yield from _swap(texts, path, rf"\bargs\[{numbers[-1]}\]", f"args[{numbers[-1] + 1}]")


FAULTS: dict[str, Make] = by_name(
    duplicated_number,
    forgotten_kernel,
    other_core,
    exchanged_directions,
    shifted_directions,
    moved_source,
    renamed_function,
    unlisted_argument,
    index_past_the_end,
    exchanged_kernel_arguments,
    scalar_first,
    other_number_in_the_orchestration,
    read_accumulator,
    dropped_submit,
    another_argument,
    wrong_argument_of_a_kernel,
)


# Right changes


def reordered_kernels(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        if len(program.items) > 1:
            yield program.file.exchange(program.items[0].node, program.items[1].node)


def directions_by_a_helper(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        found = program.items[0].values.get("signature")
        if isinstance(found, ast.List) and len(found.elts) > 1:
            yield program.file.replace(found, f"list(({', '.join(ast.unparse(each) for each in found.elts)},))")


def directions_repeated(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        for item in program.items:
            found = item.values.get("signature")
            if isinstance(found, ast.List) and item.signature[:2] == ["IN", "IN"]:
                rest = ", ".join(ast.unparse(each) for each in found.elts[2:])
                yield program.file.replace(found, f"[{ast.unparse(found.elts[0])}] * 2 + [{rest}]")


def number_by_a_constant(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        for match in _in(texts, program.source, r"rt_submit_ai[vc]_task\(\s*(\d+)(?=,)"):
            text = texts[program.source]
            include = [found.end() for found in re.finditer(r"^#include [^\n]*\n", text, re.MULTILINE)]
            if include and include[-1] < match.start():
                new = (
                    text[: include[-1]]
                    + f"static constexpr int kChosen = {match[1]};\n"
                    + text[include[-1] : match.start(1)]
                    + "kChosen"
                    + text[match.end(1) :]
                )
                yield Change(program.source, new, text.count("\n", 0, match.start()) + 1)


def tensor_by_another_name(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        yield from _swap(
            texts,
            program.source,
            r"^([ \t]*)(\w+)\.add_input\((\w+)\);",
            r"\1const auto &alias_of = \3;\n\1\2.add_input(alias_of);",
        )


def prose_in_cpp(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        yield from _swap(
            texts,
            program.source,
            r"^([ \t]*)(\w+)\.add_input\((\w+)\);",
            r"\1// \2.add_output(\3); rt_submit_aic_task(99, \2);\n\g<0>",
        )


def code_that_is_off(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        yield from _swap(
            texts, program.source, r"^([ \t]*)(\w+)\.add_input\((\w+)\);", r"#if 0\n\1\2.add_scalar(1);\n#endif\n\g<0>"
        )


def two_at_once(texts: Texts) -> Iterator[Change]:
    """`add_input` takes several tensors."""
    for program in programs(texts):
        yield from _swap(
            texts,
            program.source,
            r"^([ \t]*)(\w+)\.add_input\((\w+)\);\n[ \t]*\2\.add_input\((\w+)\);",
            r"\1\2.add_input(\3, \4);",
        )


def kernel_argument_by_a_pointer(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        for item in program.items:
            path = program.kernel(item)
            yield from _swap(texts, path, r"\bargs\[0\]", "(*(args + 0))")


def source_by_parts(texts: Texts) -> Iterator[Change]:
    for program in programs(texts):
        source = program.items[0].values["source"]
        if isinstance(source, ast.Constant) and "/" in source.value:
            folder, _, name = source.value.rpartition("/")
            yield program.file.replace(source, f"{folder + '/'!r} + {name!r}")


RIGHT: dict[str, Make] = by_name(
    reordered_kernels,
    directions_by_a_helper,
    directions_repeated,
    number_by_a_constant,
    tensor_by_another_name,
    prose_in_cpp,
    code_that_is_off,
    two_at_once,
    kernel_argument_by_a_pointer,
    source_by_parts,
)
