"""Changes that a maintainer of FlyDSL kernels may make by mistake, and such as only look wrong, found with Python's own parser.

They are chosen without regard to the rules: what the kernels' author means is read from the tree itself.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from functools import cache

import msgspec

from tests.corpus.python_text import PythonText
from tests.corpus.seeded import Change, Make, Texts, by_name

Function = ast.FunctionDef
_MEANT_TO_FAIL = re.compile(r"raises|xfail|skip")


class File(PythonText):
    """A parsed file with its kernels and launchers."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(path, text)
        self.failing = [
            (item.lineno, item.end_lineno or 0)
            for item in ast.walk(self.tree)
            if isinstance(item, ast.With) and "raises" in ast.unparse(item.items[0])
        ]
        """The lines of blocks that expect an error."""
        self.functions = [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    def is_sound(self, node: ast.expr) -> bool:
        """Whether a node is not in a block that expects an error."""
        return not any(first <= node.lineno <= last for first, last in self.failing)

    def decorated(self, word: str) -> list[Function]:
        """The functions under ``flyc.kernel`` or ``flyc.jit``."""
        return [item for item in self.functions if _decorator(item, word) is not None]


class Launch(msgspec.Struct):
    """A call of a kernel that is launched there and then."""

    file: File
    kernel: Function
    call: ast.Call
    launch: ast.Call


def _decorator(function: Function, word: str) -> ast.expr | None:
    for item in function.decorator_list:
        target = item.func if isinstance(item, ast.Call) else item
        if ast.unparse(target) == f"flyc.{word}":
            return item
    return None


@cache
def _file(path: str, text: str) -> File | None:
    try:
        return File(path, text)
    except SyntaxError:
        return None


def files(texts: Texts) -> Iterator[File]:
    """The files of the tree with kernels that are meant to work."""
    for path, text in sorted(texts.items()):
        if path.endswith(".py") and "flyc." in text and not _MEANT_TO_FAIL.search(path):
            found = _file(path, text)
            if found is not None and "python/flydsl/" not in path:
                yield found


def launches(texts: Texts) -> Iterator[Launch]:
    """The launches of kernels of the same file by plain arguments, outside tests of errors."""
    for file in files(texts):
        kernels: dict[str, list[Function]] = {}
        for item in file.decorated("kernel"):
            kernels.setdefault(item.name, []).append(item)
        for node in ast.walk(file.tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "launch"
                and isinstance(call := node.func.value, ast.Call)
                and isinstance(call.func, ast.Name)
                and len(found := kernels.get(call.func.id, [])) == 1
                and not any(isinstance(item, ast.Starred) for item in call.args)
                and all(item.arg for item in call.keywords)
                and file.is_sound(node)
            ):
                yield Launch(file, found[0], call, node)


def _annotation(item: ast.arg) -> str:
    return ast.unparse(item.annotation) if item.annotation is not None else ""


def _plain(kernel: Function) -> bool:
    args = kernel.args
    return not (args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs)


def group(path: str) -> str:
    """The file, in which a kernel and its launches are."""
    return path


# Mistakes


def new_parameter(texts: Texts) -> Iterator[Change]:
    for item in launches(texts):
        if (
            _plain(item.kernel)
            and not item.kernel.args.defaults
            and len(item.call.args) == len(item.kernel.args.args) > 0
        ):
            end = item.file.span(item.kernel.args.args[-1])[1]
            yield item.file.edit(end, end, ", n_rows_total: fx.Int32")


def dropped_parameter(texts: Texts) -> Iterator[Change]:
    for item in launches(texts):
        args = item.kernel.args.args
        if _plain(item.kernel) and not item.kernel.args.defaults and len(item.call.args) == len(args) > 1:
            yield item.file.edit(item.file.span(args[-2])[1], item.file.span(args[-1])[1], "")


def reordered_parameters(texts: Texts) -> Iterator[Change]:
    for item in launches(texts):
        args = item.kernel.args.args
        if not _plain(item.kernel) or item.kernel.args.defaults or len(item.call.args) != len(args):
            continue
        for one, other in itertools.pairwise(args):
            differ = {_annotation(one), _annotation(other)} == {"fx.Tensor", "fx.Int32"}
            if differ and "#" not in item.file.between(one, other):
                yield item.file.exchange(one, other)
                break


def new_parameter_of_a_launcher(texts: Texts) -> Iterator[Change]:
    """The launcher is called by its name in the same file, with positional arguments for all parameters."""
    for file in files(texts):
        for launcher in file.decorated("jit"):
            args = launcher.args.args
            plain = [arg for arg in args if "Stream" not in _annotation(arg)]
            calls = [
                node
                for node in ast.walk(file.tree)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == launcher.name
            ]
            names = [item for item in file.functions if item.name == launcher.name]
            sure = [
                call
                for call in calls
                if len(call.args) >= len(plain)
                and not call.keywords
                and not any(isinstance(a, ast.Starred) for a in call.args)
            ]
            if (
                len(names) == 1
                and plain
                and len(calls) == len(sure) > 0
                and _plain(launcher)
                and "raises" not in file.text
            ):
                start = file.span(plain[0])[0]
                yield file.edit(start, start, "workspace: fx.Tensor, ")


def gpu_loop_over_a_list(texts: Texts) -> Iterator[Change]:
    """`range` for `range_constexpr`, where the loop's variable is the index of a list of the same function."""
    for file in files(texts):
        for kernel in file.decorated("kernel"):
            lists = {
                target.id
                for node in ast.walk(kernel)
                if isinstance(node, ast.Assign) and isinstance(node.value, (ast.List, ast.ListComp))
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for loop in (node for node in ast.walk(kernel) if isinstance(node, ast.For)):
                call = loop.iter
                used = any(
                    isinstance(node, ast.Subscript)
                    and isinstance(node.value, ast.Name)
                    and node.value.id in lists
                    and isinstance(node.slice, ast.Name)
                    and isinstance(loop.target, ast.Name)
                    and node.slice.id == loop.target.id
                    for part in loop.body
                    for node in ast.walk(part)
                )
                if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("range_constexpr") and used:
                    yield file.edit(*file.span(call.func), "range")


def block_of_a_constant(texts: Texts) -> Iterator[Change]:
    """`if` for `if const_expr`, where a variable is assigned in the block alone and read behind it."""
    for file in files(texts):
        for kernel in file.decorated("kernel"):
            stores = [
                node for node in ast.walk(kernel) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            ]
            loads = [node for node in ast.walk(kernel) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
            inner = {
                id(part)
                for node in ast.walk(kernel)
                if isinstance(node, Function) and node is not kernel
                for part in ast.walk(node)
            }
            for node in kernel.body:
                if not isinstance(node, ast.If) or not isinstance(node.test, ast.Call) or not node.test.args:
                    continue
                if not ast.unparse(node.test.func).endswith("const_expr") or id(node) in inner:
                    continue
                inside = {id(part) for part in ast.walk(node)}
                bound = (
                    {item.id for item in stores if id(item) in inside}
                    - {item.id for item in stores if id(item) not in inside}
                    - {arg.arg for arg in kernel.args.args}
                )
                end = node.end_lineno or 0
                if any(item.id in bound and item.lineno > end and id(item) not in inner for item in loads):
                    yield file.edit(*file.span(node.test), file.source(node.test.args[0]))


def constexpr_for_a_number(texts: Texts) -> Iterator[Change]:
    """A run-time number becomes a `Constexpr`, and its launcher still has a run-time number."""
    for item in launches(texts):
        launcher = next(
            (f for f in item.file.decorated("jit") if any(node is item.launch for node in ast.walk(f))), None
        )
        numbers = {arg.arg for arg in launcher.args.args if _annotation(arg) == "fx.Int32"} if launcher else set()
        for arg, value in zip(item.kernel.args.args, item.call.args, strict=False):
            if (
                _annotation(arg) == "fx.Int32"
                and isinstance(value, ast.Name)
                and value.id in numbers
                and arg.annotation
            ):
                yield item.file.edit(*item.file.span(arg.annotation), "fx.Constexpr[int]")
                break


def number_for_a_constexpr(texts: Texts) -> Iterator[Change]:
    """A `Constexpr` becomes a run-time number, and the body counts a loop by it or decides by it while tracing."""
    for file in files(texts):
        for kernel in file.decorated("kernel"):
            for arg in kernel.args.args:
                if _annotation(arg) != "fx.Constexpr[int]" or arg.annotation is None:
                    continue
                if any(
                    isinstance(node, ast.Call)
                    and ast.unparse(node.func).endswith(("range_constexpr", "const_expr"))
                    and any(isinstance(part, ast.Name) and part.id == arg.arg for part in ast.walk(node))
                    for node in ast.walk(kernel)
                ):
                    yield file.edit(*file.span(arg.annotation), "fx.Int32")
                    break


def lost_kernel_decorator(texts: Texts) -> Iterator[Change]:
    for item in launches(texts):
        decorator = _decorator(item.kernel, "kernel")
        if decorator is not None and len(item.kernel.decorator_list) == 1:
            start = item.file.text.rindex("@", 0, item.file.span(decorator)[0])
            yield item.file.edit(start, item.file.at(item.kernel.lineno, item.kernel.col_offset), "")


def lost_jit_decorator(texts: Texts) -> Iterator[Change]:
    for item in launches(texts):
        for launcher in item.file.decorated("jit"):
            decorator = _decorator(launcher, "jit")
            if (
                decorator is not None
                and len(launcher.decorator_list) == 1
                and any(node is item.launch for node in ast.walk(launcher))
            ):
                start = item.file.text.rindex("@", 0, item.file.span(decorator)[0])
                yield item.file.edit(start, item.file.at(launcher.lineno, launcher.col_offset), "")


def misspelt_api(texts: Texts) -> Iterator[Change]:
    """Two letters of a name of FlyDSL are exchanged."""
    for file in files(texts):
        for node in ast.walk(file.tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "fx"
                and len(node.attr) > 6
            ):
                name = node.attr
                wrong = name[:3] + name[4] + name[3] + name[5:]
                if wrong != name and "hasattr" not in file.text and file.is_sound(node):
                    end = file.span(node)[1]
                    yield file.edit(end - len(name), end, wrong)
                    break


def misspelt_keyword(texts: Texts) -> Iterator[Change]:
    """A keyword of a function of FlyDSL, written without its last letter."""
    for file in files(texts):
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Call) and re.match(r"(?:fx|flyc)\.\w+(?:\.\w+)*$", ast.unparse(node.func)):
                word = next((item for item in node.keywords if item.arg and len(item.arg) > 3), None)
                if word is not None and word.arg and ast.unparse(node.func) not in ("flyc.kernel", "flyc.jit"):
                    start = file.at(word.lineno, word.col_offset)
                    yield file.edit(start, start + len(word.arg), word.arg[:-1])
                    break


def break_in_a_gpu_loop(texts: Texts) -> Iterator[Change]:
    for file in files(texts):
        for kernel in file.decorated("kernel"):
            for loop in (node for node in kernel.body if isinstance(node, ast.For)):
                if isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "range":
                    last = loop.body[-1]
                    indent = " " * last.col_offset
                    end = file.span(last)[1]
                    yield file.edit(end, end, f"\n{indent}if fx.thread_idx.x > 7:\n{indent}    break")


def none_before_a_loop(texts: Texts) -> Iterator[Change]:
    """A variable that a GPU loop updates begins as None."""
    for file in files(texts):
        for kernel in file.decorated("kernel"):
            for before, loop in zip(kernel.body, kernel.body[1:], strict=False):
                if (
                    isinstance(loop, ast.For)
                    and isinstance(loop.iter, ast.Call)
                    and ast.unparse(loop.iter.func) == "range"
                    and isinstance(before, ast.Assign)
                    and isinstance(before.targets[0], ast.Name)
                    and any(
                        isinstance(node, ast.Name)
                        and isinstance(node.ctx, ast.Store)
                        and node.id == before.targets[0].id
                        for node in ast.walk(loop)
                    )
                ):
                    yield file.edit(*file.span(before.value), "None")


def none_for_a_tensor(texts: Texts) -> Iterator[Change]:
    for item in launches(texts):
        for arg, value in zip(item.kernel.args.args, item.call.args, strict=False):
            if _annotation(arg) == "fx.Tensor":
                yield item.file.edit(*item.file.span(value), "None")
                break


def larger_block(texts: Texts) -> Iterator[Change]:
    """The block of a launch is doubled, and the kernel's `known_block_size` is not."""
    for item in launches(texts):
        decorator = _decorator(item.kernel, "kernel")
        block = next((word.value for word in item.launch.keywords if word.arg == "block"), None)
        if (
            isinstance(decorator, ast.Call)
            and "known_block_size" in ast.unparse(decorator)
            and isinstance(block, (ast.Tuple, ast.List))
            and block.elts
        ):
            start, end = item.file.span(block.elts[0])
            yield item.file.edit(start, end, f"2 * {item.file.text[start:end]}")


FAULTS: dict[str, Make] = by_name(
    new_parameter,
    dropped_parameter,
    reordered_parameters,
    new_parameter_of_a_launcher,
    gpu_loop_over_a_list,
    block_of_a_constant,
    constexpr_for_a_number,
    number_for_a_constexpr,
    lost_kernel_decorator,
    lost_jit_decorator,
    misspelt_api,
    misspelt_keyword,
    break_in_a_gpu_loop,
    none_before_a_loop,
    none_for_a_tensor,
    larger_block,
)


# Right changes


def parameter_with_a_default(texts: Texts) -> Iterator[Change]:
    for item in launches(texts):
        if (
            _plain(item.kernel)
            and not item.kernel.args.defaults
            and len(item.call.args) == len(item.kernel.args.args) > 0
        ):
            last = item.kernel.args.args[-1]
            end, indent = item.file.span(last)[1], " " * item.kernel.body[0].col_offset
            first = item.file.at(item.kernel.body[-1].lineno, item.kernel.body[-1].col_offset)
            text = item.file.text[end:first] + f"assert unroll_by == 4\n{indent}"
            yield item.file.edit(end, first, f", unroll_by: fx.Constexpr[int] = 4{text}")


def launch_by_keywords(texts: Texts) -> Iterator[Change]:
    for item in launches(texts):
        if _plain(item.kernel) and len(item.call.args) == len(item.kernel.args.args) > 1 and not item.call.keywords:
            file, pairs = item.file, list(zip(item.kernel.args.args, item.call.args, strict=True))
            words = [f"{arg.arg}={file.source(value)}" for arg, value in reversed(pairs)]
            yield file.edit(file.span(item.call.args[0])[0], file.span(item.call.args[-1])[1], ", ".join(words))


def launch_in_two_steps(texts: Texts) -> Iterator[Change]:
    for item in launches(texts):
        file, start, indent = item.file, item.file.span(item.call)[0], item.file.indent(item.call)
        if indent is not None:
            rest = file.text[file.span(item.call)[1] : file.span(item.launch)[1]].lstrip()
            call = file.source(item.call)
            yield file.edit(start, file.span(item.launch)[1], f"prepared = {call}\n{indent}prepared{rest}")


def launch_by_another_name(texts: Texts) -> Iterator[Change]:
    for item in launches(texts):
        file, start, indent = item.file, item.file.span(item.call)[0], item.file.indent(item.call)
        if indent is not None:
            name = item.kernel.name
            yield file.edit(start, start + len(name), f"chosen = {name}\n{indent}chosen")


def prose_about_errors(texts: Texts) -> Iterator[Change]:
    for file in files(texts):
        for kernel in file.decorated("kernel"):
            start = file.at(kernel.body[0].lineno, kernel.body[0].col_offset)
            indent = " " * kernel.body[0].col_offset
            if not ast.get_docstring(kernel):
                text = f'"""Not `x.mark_static()`, `break`, or `if n > 3: return`.\n\n{indent}import flydsl.nothing\n{indent}"""'
                yield file.edit(start, start, f"{text}\n{indent}")


def argument_in_a_variable(texts: Texts) -> Iterator[Change]:
    for item in launches(texts):
        file, start, indent = item.file, item.file.span(item.call)[0], item.file.indent(item.call)
        value = item.call.args[0] if item.call.args else None
        if indent is not None and isinstance(value, ast.Name):
            first, end = file.span(value)
            text = f"operand = {value.id}\n{indent}{file.text[start:first]}operand"
            yield file.edit(start, end, text)


def helper_for_the_block(texts: Texts) -> Iterator[Change]:
    """The statements of a kernel's `if` under `const_expr` are followed by an `else` that assigns nothing new."""
    for file in files(texts):
        for kernel in file.decorated("kernel"):
            for node in kernel.body:
                if isinstance(node, ast.If) and not node.orelse and "const_expr" in ast.unparse(node.test):
                    end, indent = file.span(node)[1], " " * node.col_offset
                    yield file.edit(end, end, f"\n{indent}else:\n{indent}    pass")


def guarded_api(texts: Texts) -> Iterator[Change]:
    for file in files(texts):
        if "import flydsl.expr as fx\n" in file.text and "\nimport flydsl.expr as fx\n" in file.text:
            at = file.text.index("\nimport flydsl.expr as fx\n") + len("\nimport flydsl.expr as fx\n")
            rest = file.text[at:]
            if rest.startswith(("from", "import", "\n")) and "__future__" not in rest:
                text = "WIDE = fx.Float1024 if hasattr(fx, 'Float1024') else fx.Float32\n"
                yield file.edit(at, at, text)


def renamed_loop_variable(texts: Texts) -> Iterator[Change]:
    for file in files(texts):
        for kernel in file.decorated("kernel"):
            for loop in (
                node for node in ast.walk(kernel) if isinstance(node, ast.For) and isinstance(node.target, ast.Name)
            ):
                assert isinstance(loop.target, ast.Name)
                name, outside = (
                    loop.target.id,
                    [node for node in ast.walk(kernel) if isinstance(node, ast.Name) and node.id == loop.target.id],
                )
                inside = [node for node in ast.walk(loop) if isinstance(node, ast.Name) and node.id == name]
                if len(outside) == len(inside) and len(name) > 1 and '"' not in file.source(loop):
                    start, end = file.span(loop)
                    yield file.edit(start, end, re.sub(rf"\b{name}\b", "step_index", file.text[start:end]))


def loop_of_constants(texts: Texts) -> Iterator[Change]:
    """`range` for `range_constexpr`, where the loop's variable is only computed with: the loop runs on the GPU."""
    for file in files(texts):
        for kernel in file.decorated("kernel"):
            end = file.span(kernel)[1]
            indent = " " * kernel.body[0].col_offset
            if isinstance(kernel.body[-1], ast.Expr):
                text = f"\n{indent}total = fx.Int32(0)\n{indent}for unused in range(4):\n{indent}    total = total + 1"
                yield file.edit(end, end, text)


RIGHT: dict[str, Make] = by_name(
    parameter_with_a_default,
    launch_by_keywords,
    launch_in_two_steps,
    launch_by_another_name,
    prose_about_errors,
    argument_in_a_variable,
    helper_for_the_block,
    guarded_api,
    renamed_loop_variable,
    loop_of_constants,
)
