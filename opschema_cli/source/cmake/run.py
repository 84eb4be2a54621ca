"""Runs the commands of a CMake file: conditions, loops, functions and macros, and files that it includes.

Both sides of a condition are read, and a loop runs once for each item that is known. Files that are included, and folders that are
added, are read where that happens.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from opschema_cli.source.cmake.conditions import ALWAYS, Conditions, Origin
from opschema_cli.source.cmake.effects import DEFINES, DEFINES_ALL, MAKES_EXTENSION, MAKES_TARGET, Effects
from opschema_cli.source.cmake.scopes import UNKNOWN, Argument, Frame, Function, Scope, alternatives, bound, compatible
from opschema_cli.source.cmake.syntax import Command, read_commands
from opschema_cli.source.cmake.targets import Target, Targets
from opschema_cli.source.cmake.variables import Assignments
from opschema_cli.source.cmake.words import NAME, Budget, Words, in_tree

_SETS_NOTHING = re.compile(
    r"(?:target|set|add|find|include|link|enable|cmake|hip|cuda)_\w+|message|install|return|break|continue|export|option"
    r"|configure_file|source_group|try_\w+|check_\w+"
)

MAX_WORDS = 200_000
"""Maximum number of words of lists to substitute for variables in one tree."""

MAX_COMMANDS = 40_000
"""Maximum number of commands to run in one tree."""

MAX_DEPTH = 25
"""Maximum nesting of calls, loops and files."""

MAX_LOOP = 500
"""Maximum number of runs of one loop."""

MAX_LOOP_COMMANDS = 2_000
"""Maximum number of commands of one loop, after which the remaining items count as a single unknown one."""

MAX_ALTERNATIVES = 4
"""Maximum number of values of an argument for which to run a call; the call has one of them."""

Variables = Mapping[str, Mapping[str, Origin]]
"""The values of each variable."""


class Unfollowed(msgspec.Struct, frozen=True):
    """A call, with source files, of a function that no file of the tree defines: its name, the file of the call, and the
    sources.
    """

    function: str
    path: str
    sources: tuple[str, ...]


class CMakeFile(msgspec.Struct, frozen=True):
    """The targets of a CMake file, the variables visible to files in its subfolders, and the calls that are not followed."""

    targets: tuple[Target, ...]
    variables: Variables
    unfollowed: tuple[Unfollowed, ...]


class CMakeTree:
    """The CMake files of a tree, each parsed once, and the functions that only one file defines."""

    def __init__(
        self, texts: Mapping[str, str], glob: Callable[[str], Sequence[str]], is_source: Callable[[str], bool]
    ) -> None:
        self.glob = glob
        self.is_source = is_source
        self.commands = {path: read_commands(text) for path, text in texts.items()}
        found: dict[str, list[Function]] = {}
        for path, commands in self.commands.items():
            for command in commands:
                if command.name in ("function", "macro") and command.words:
                    function = read_function(command, posixpath.dirname(path))
                    found.setdefault(function.name, []).append(function)
        self.functions = {name: items[0] for name, items in found.items() if len(items) == 1}
        self.effects = Effects(self.functions)
        self.reached: set[str] = set()
        self.budget = Budget(MAX_COMMANDS, MAX_WORDS)

    def read(self, path: str, variables: Variables) -> CMakeFile:
        """Run a file of the tree with some variables."""
        run = _Run(self, path, variables)
        run.file(path, run.frame)
        return CMakeFile(run.targets.targets(), run.frame.scope.variables, tuple(run.unfollowed))


def read_function(command: Command, folder: str) -> Function:
    """Return the function that a command defines in a file of a folder."""
    name, *parameters = command.words
    return Function(name.lower(), tuple(parameters), command.body, folder, command.name == "macro")


class _Run:
    def __init__(self, tree: CMakeTree, path: str, variables: Variables) -> None:
        self.tree = tree
        self.path = path
        top = posixpath.dirname(path)
        self.frame = Frame(Scope(), top, top, top)
        self.frame.scope.variables = {name: dict(values) for name, values in variables.items()}
        self.conditions = Conditions(path)
        self.words = Words(self.conditions, tree.budget, top)
        self.variables = Assignments(self.words, tree.glob)
        self.targets = Targets(self.words, tree.is_source)
        self.functions: dict[str, Function] = {}
        self.unfollowed: list[Unfollowed] = []
        self.depth = 0

    def file(self, path: str, frame: Frame) -> None:
        """Run the commands of a file."""
        self.tree.reached.add(path)
        before, self.path = self.path, path
        self._body(self.tree.commands[path], frame)
        self.path = before

    def _body(self, body: Sequence[Command], frame: Frame) -> None:
        if self.depth >= MAX_DEPTH:
            return
        self.depth += 1
        open_blocks = self.conditions.depth()
        for command in body:
            self.tree.budget.commands -= 1
            if self.tree.budget.commands > 0:
                self._command(command, frame)
        self.conditions.close(open_blocks)
        self.depth -= 1

    def _command(self, command: Command, frame: Frame) -> None:
        name, words = command.name, command.words
        holds = self._holds(words, frame) if name in ("if", "elseif") else None
        scope = self._scope_of(words, frame) if name in ("if", "elseif") else ""
        if self.conditions.read(name, words, holds, scope) or self.conditions.skips or not words:
            return
        if name in ("function", "macro"):
            function = read_function(command, frame.file)
            self.functions[function.name] = function
        elif name == "foreach":
            self._loop(command, frame)
        elif name == "include":
            self._include(self.words.one(words[0], frame), frame)
        elif name == "add_subdirectory":
            self._subdirectory(self.words.one(words[0], frame), frame)
        elif (called := self.functions.get(name) or self.tree.functions.get(name)) is not None:
            if self.tree.effects.of(called, self.functions):
                self._call(called, self.words.arguments(words, frame), frame)
        else:
            self._built_in(name, words, frame)

    def _include(self, written: str, frame: Frame) -> None:
        path = in_tree(written, frame.folder)
        places = (path, f"{path}.cmake") if written else ()
        found = next((place for place in places if place in self.tree.commands), None)
        if found is not None:
            self.file(found, msgspec.structs.replace(frame, file=posixpath.dirname(found)))

    def _subdirectory(self, written: str, frame: Frame) -> None:
        folder = in_tree(written, frame.folder)
        path = posixpath.join(folder, "CMakeLists.txt")
        if written and path in self.tree.commands and path not in self.tree.reached:
            self.file(
                path,
                Frame(
                    Scope(frame.scope, self.conditions.new("folder"), self.conditions.origin), folder, folder, folder
                ),
            )

    def _call(self, function: Function, arguments: list[Argument], frame: Frame) -> None:
        before = self.conditions.origin
        for origin in alternatives(arguments, MAX_ALTERNATIVES) or [ALWAYS]:
            self.conditions.origin = before | origin
            self._run_call(function, compatible(arguments, origin), frame)
        self.conditions.origin = before

    def _run_call(self, function: Function, arguments: list[Argument], frame: Frame) -> None:
        variables = bound(function, arguments)
        rest = arguments[len(function.parameters) :]
        if function.is_macro:
            inner = msgspec.structs.replace(frame, arguments=arguments, rest=rest, replaced=variables)
        else:
            scope = Scope(frame.scope, self.conditions.new("call"), self.conditions.origin)
            for name, values in variables.items():
                scope.put(name, values, exact=True)
            inner = Frame(scope, frame.folder, frame.file, function.folder, arguments, rest)
        before = self.conditions.origin
        if any(command.name == "return" for command in function.body):
            self.conditions.origin |= {(self.conditions.new("return"), True)}
        self._body(function.body, inner)
        self.conditions.origin = before

    def _loop(self, command: Command, frame: Frame) -> None:
        name = command.words[0]
        items = self.words.values(_items(command.words[1:]), frame)
        leaves = any(item.name in ("break", "continue", "return") for item in command.body)
        before = self.conditions.origin
        least = self.tree.budget.commands - MAX_LOOP_COMMANDS
        for at, (word, origin) in enumerate(items or [(UNKNOWN, ALWAYS)]):
            ends = at == MAX_LOOP or self.tree.budget.commands < least
            word = UNKNOWN if ends else word
            if word == UNKNOWN or leaves or origin is None:
                self.conditions.origin = before | {(self.conditions.new("foreach"), True)}
            else:
                self.conditions.origin = before | origin
            frame.scope.put(name, {word: ALWAYS})
            self._body(command.body, frame)
            if ends:
                break
        self.conditions.origin = before

    def _holds(self, words: Sequence[str], frame: Frame) -> bool | None:
        """Return the value of a condition on an argument of the running function."""
        names = [word for word in words if word != "NOT"]
        if len(names) != 1 or len(words) > 2 or not NAME.fullmatch(names[0]):
            return None
        truth = frame.scope.truth(names[0], self.conditions.origin)
        return truth if truth is None or len(words) == 1 else not truth

    def _scope_of(self, words: Sequence[str], frame: Frame) -> str:
        names = [name for word in words for name in NAME.findall(word)]
        replaced = any(name in frame.replaced for name in names)
        return "".join(map(frame.scope.version, names)) + (self.conditions.new(" macro") if replaced else "")

    def _built_in(self, name: str, words: Sequence[str], frame: Frame) -> None:
        if name == "set":
            self.variables.set(words, frame)
        elif name == "cmake_parse_arguments":
            self.variables.parse_arguments(words, frame)
        elif name == "list" and len(words) > 1:
            self.variables.change_list(words, frame)
        elif name == "file" and words[0] in ("GLOB", "GLOB_RECURSE") and len(words) > 1:
            self.variables.find_files(words, frame)
        elif name == "project":
            self.variables.project(self.words.one(words[0], frame), frame)
        elif not self.variables.computes(name, words, frame):
            self._builds(name, words, frame)

    def _builds(self, name: str, words: Sequence[str], frame: Frame) -> None:
        if MAKES_EXTENSION.fullmatch(name) or MAKES_TARGET.fullmatch(name):
            self.targets.add(words, frame, extension=MAKES_EXTENSION.fullmatch(name) is not None)
        elif name in DEFINES:
            target = self.words.one(words[0], frame)
            self.targets.macros.setdefault(target, []).extend(
                self.targets.defined(words[1:], frame, bare="options" not in name)
            )
        elif name in DEFINES_ALL:
            found = self.targets.defined(words, frame, bare=name == "add_compile_definitions")
            self.targets.common.setdefault(frame.folder, []).extend(found)
        elif not _SETS_NOTHING.fullmatch(name):
            self._unknown(name, words, frame)

    def _unknown(self, name: str, words: Sequence[str], frame: Frame) -> None:
        self.variables.doubt(words, frame)
        if name not in ("string", "unset", "math", "file", "execute_process"):
            named = (word for word, _ in self.words.values(words, frame))
            sources = [in_tree(word, frame.folder) for word in named if self.tree.is_source(word)]
            self.unfollowed += [Unfollowed(name, self.path, tuple(sources))] if sources else []


def _items(words: Sequence[str]) -> list[str]:
    """Return the items that a loop iterates over; a list is given as a variable."""
    if words[:1] != ("IN",):
        return list(words)
    found: list[str] = []
    lists = False
    for word in words[1:]:
        if word in ("LISTS", "ITEMS"):
            lists = word == "LISTS"
        else:
            found.append(f"${{{word}}}" if lists else word)
    return found
