"""Load the operator lists of a workspace and their entries."""

from __future__ import annotations

from functools import lru_cache

from opschema_cli.lint.loaded import Loaded
from opschema_cli.project import Project
from opschema_rules.aten.kinds import mappings_of
from opschema_rules.executorch.declarations import declarations
from opschema_rules.executorch.detection import ExecutorchOptions, files_of
from opschema_rules.executorch.kernels import read_kernels
from opschema_rules.executorch.library_kernels import library_kernels
from opschema_rules.executorch.model import OpEntry, OpList, Tree
from opschema_rules.executorch.selections import read_selections


def load(project: Project, options: ExecutorchOptions) -> Loaded:
    """Load all lists of the workspace, and the code they are compared with."""
    tree = read_tree(project, options)
    loaded = Loaded(files=[item.file.path for item in tree.lists])
    for item in tree.lists:
        loaded.subjects += [item, *item.entries]
        loaded.entries += [entry.stretch for entry in item.entries]
    loaded.subjects += read_selections(tree)
    loaded.ops = len(tree.by_name)
    loaded.late.append(lambda: read_kernels(tree))
    loaded.late.append(lambda: declarations(tree))
    loaded.late.append(lambda: library_kernels(tree))
    return loaded


@lru_cache(maxsize=2)
def read_tree(project: Project, options: ExecutorchOptions) -> Tree:
    """The lists of a workspace, read once; items that are not mappings are left to a rule."""
    tree = Tree(project, options)
    for file in files_of(project, options):
        found = OpList(file, tree)
        found.entries += [OpEntry(file, index, node, found) for index, node in mappings_of(file)]
        tree.lists.append(found)
    return tree
