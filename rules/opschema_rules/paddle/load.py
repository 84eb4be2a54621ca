"""Load the operator YAML of a workspace."""

from __future__ import annotations

from functools import lru_cache

from opschema_cli.lint.loaded import Loaded
from opschema_cli.project import Project
from opschema_rules.aten.kinds import mappings_of
from opschema_rules.paddle.cpp import cpp_names
from opschema_rules.paddle.detection import PaddleOptions, op_files, other_files
from opschema_rules.paddle.model import OpEntry, OpFile, OtherFile, Tree, group_of


def load(project: Project, options: PaddleOptions) -> Loaded:
    """All files of the workspace, their entries, the C++ functions that these name, and calls in Python."""
    tree = read_tree(project, options)
    loaded = Loaded(files=[*(item.file.path for item in tree.files), *(item.file.path for item in tree.others)])
    for listed in tree.files:
        loaded.subjects += [listed, *listed.entries]
        loaded.entries += [entry.stretch for entry in listed.entries]
    loaded.subjects += [*tree.others, tree]
    loaded.ops = len(tree.by_name)
    loaded.late.append(lambda: cpp_names(tree).checks())
    return loaded


@lru_cache(maxsize=2)
def read_tree(project: Project, options: PaddleOptions) -> Tree:
    """The files of a workspace, read once; items that are not mappings are left to a rule."""
    tree = Tree(project, options)
    listed = list(op_files(project, options))
    for file in listed:
        found = OpFile(file, tree, *group_of(file.path))
        merged = file.document.merged
        found.entries += [OpEntry(file, index, merged(item), found) for index, item in mappings_of(file)]
        tree.files.append(found)
    tree.others += [OtherFile(kind, file, tree) for kind, file in other_files(project, listed)]
    return tree
