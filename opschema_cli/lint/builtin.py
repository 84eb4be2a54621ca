"""The findings that the engine itself makes: files that cannot be read, suppressions, its own failures."""

from __future__ import annotations

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.lint.rule import Rule

PAGES = "https://github.com/opschema/opschema/blob/main/docs/rules/{code}.md"
"""The address of a rule's page, for the engine's own rules."""

UNREADABLE = Rule(
    "OPS101",
    "unreadable-file",
    Severity.ERROR,
    """A file of the schema cannot be read as text.

It is missing, a broken link, binary, too large, not readable, or not in its declared encoding. Nothing in it was checked,
so the run ends with exit code 2. A file that no pack recognises is not reported.""",
)
PYTHON_SYNTAX = Rule(
    "OPS102",
    "python-syntax",
    Severity.ERROR,
    """A Python file that a pack recognises, or that such a file imports, does not parse.

Everything that depends on it is *unresolved* and not reported. Templates such as `{{cookiecutter.name}}/ops.py` need not parse.""",
)
CPP_UNREAD = Rule(
    "OPS103",
    "cpp-unread",
    Severity.WARNING,
    """A C++ file that a pack reads is not read.

It is too long, nests too deeply or takes too long to parse. Everything that depends on it is *unresolved* and not reported. A
file with syntax errors is read nevertheless.""",
)
NOT_CHECKED = Rule(
    "OPS104",
    "not-checked",
    Severity.WARNING,
    """Something that rules need is missing, so they did not run, or only in part.

A parser is not installed, for example, or an installed pack cannot be imported. The latter is an error if the configuration
names the pack, or if the pack finds files of its kind. The run reports once what is missing, how many files were not read, and
which rules need them, whatever paths are given, since this concerns the run and not a file. Findings of these rules that are in
a baseline stay there. If its severity reaches `--fail-on`, the run ends with exit code 2.""",
)
STOPPED = Rule(
    "OPS105",
    "rule-stopped",
    Severity.WARNING,
    """A rule had so many findings in one subject that it was stopped there.

A rule stops after 10,000 findings in one subject (a file, an entry, an operator). Fix what is reported, and run again for the
rest.""",
)
NOT_SHOWN = Rule(
    "OPS106",
    "findings-not-shown",
    Severity.INFO,
    """A rule has more findings in one file than a report shows.

A report shows 1,000 of them, the most severe and first ones. The last line counts all, and the exit code, `--fix` and the
baseline consider all.""",
)
GIT_SILENT = Rule(
    "OPS107",
    "git-silent",
    Severity.WARNING,
    """git does not list the files of the workspace, because it waits for one that it reads itself.

This is a pipe or a device in place of a `.gitignore`, or of a file that git's configuration includes. The files were listed
without git: `.gitignore` files count, but not what git's own configuration excludes. Remove the file.""",
)
TORCH_REMOVED = Rule(
    "OPS201",
    "torch-operator-removed",
    Severity.ERROR,
    """An operator of PyTorch that the tree uses and the newer release does not have.

Only `opschema upgrade` reports it: at each entry of a backend's YAML, at each registration of a kernel, and where code uses
`torch.ops.aten.NAME`, `at::NAME(...)` or `at::_ops::NAME`. The other sides are the operator's declaration in the older release,
and operators of the newer one with a similar name. Code under a condition on a version or `hasattr`, and code that is tried,
is left out.""",
)
TORCH_CHANGED = Rule(
    "OPS202",
    "torch-operator-changed",
    Severity.ERROR,
    """An operator of PyTorch that the tree uses and that differs between two releases.

Only `opschema upgrade` reports it. It is an error where something has to be rewritten: a kernel whose parameters or return
types change, a copy of the schema, or a call of `torch.ops.aten.NAME` that lacks an argument which is now required, or names
one that was removed; the message has the new line. Else it is an info: a new default, a tag, an argument that takes
`SymInt`.""",
)
YAML_SYNTAX = Rule(
    "YML001",
    "yaml-syntax",
    Severity.ERROR,
    """A schema file is not YAML, or not YAML that opschema reads.

libyaml's own message is shown at its place. Nesting deeper than 100 levels, more than a million nodes and a second
document in the file are rejected. The file's other entries cannot be checked until it parses. A file that no pack recognises as a
schema file is not reported.""",
)
CRASHED = Rule(
    "OPS900",
    "rule-crashed",
    Severity.ERROR,
    """A rule or a pack raised an exception. The defect is in its code, not in the linted repository.

The message names the pack and the line that raised. A rule is reported once, with the number of subjects on which it failed.
The other rules ran. The run ends with exit code 3. Report it to the authors of the pack; until then, `--ignore` the rule.""",
)
UNUSED = Rule(
    "SUP001",
    "unused-suppression",
    Severity.WARNING,
    """A suppression that suppresses nothing.

The finding that it hid no longer exists, or it is on the wrong line. Delete it. It is reported only if the rules that it names
ran.""",
    fixable="safe",
)
UNKNOWN = Rule(
    "SUP002",
    "unknown-suppression",
    Severity.WARNING,
    """A suppression names no rule that opschema knows, or no rule at all, or begins with another word than `ignore`.

Write `# opschema: ignore[CODE] why`, in C++ `// opschema: ignore[CODE] why`, with a code or a name that `opschema rules` lists.""",
)
STALE = Rule(
    "SUP003",
    "stale-baseline",
    Severity.WARNING,
    """The baseline lists a finding that is no longer there.

Update the baseline with `opschema baseline`, so that the finding cannot return unnoticed.""",
)

BUILTIN_RULES = (
    UNREADABLE,
    PYTHON_SYNTAX,
    CPP_UNREAD,
    NOT_CHECKED,
    STOPPED,
    NOT_SHOWN,
    GIT_SILENT,
    TORCH_REMOVED,
    TORCH_CHANGED,
    CRASHED,
    UNUSED,
    UNKNOWN,
    STALE,
    YAML_SYNTAX,
)

UNCHECKED = (UNREADABLE, PYTHON_SYNTAX, CPP_UNREAD, NOT_CHECKED, STOPPED, GIT_SILENT, YAML_SYNTAX, CRASHED)
"""Rules that report unchecked parts; a selection of rules does not turn them off."""
