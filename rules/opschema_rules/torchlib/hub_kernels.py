"""Kernels for the Hugging Face Hub, which kernel-builder compiles as ``build.toml`` says.

It makes an extension of torch whose namespace is the name of the kernel behind an underscore, then the backend and the revision,
which only the build knows; here it is without those. It also writes the module ``_ops`` of the kernel's package, through which
Python reaches the operators.

Source: https://github.com/huggingface/kernels, documentation of kernel-builder.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from opschema_cli.project import Project
from opschema_cli.source.made_modules import made_module
from opschema_cli.source.python import PythonFile
from opschema_rules.torchlib.mentions import files_that_mention
from opschema_rules.torchlib.toml_tables import items, read_toml, table

BUILD_FILE = "build.toml"

_OPS = """\
import torch

ops = torch.ops.{namespace}


def add_op_namespace_prefix(op_name: str):
    return f"{namespace}::{{op_name}}"
"""


class HubKernel(msgspec.Struct, frozen=True):
    """A kernel: the folder of its ``build.toml``, its name as an identifier, and the sources of its binding, relative to that."""

    folder: str
    name: str
    sources: tuple[str, ...]

    @property
    def namespace(self) -> str:
        """The namespace of its operators, without the part that only the build knows."""
        return f"_{self.name}"

    @property
    def package(self) -> str:
        """The folder of its Python package."""
        return posixpath.join(self.folder, "torch-ext", self.name)


@lru_cache(maxsize=2)
def hub_kernels(project: Project) -> tuple[HubKernel, ...]:
    """The kernels of a workspace."""
    return tuple(_read_kernels(project))


def _read_kernels(project: Project) -> Iterator[HubKernel]:
    for path in project.workspace.files:
        if posixpath.basename(path) == BUILD_FILE:
            build = read_toml(project, path)
            name = table(build, "general").get("name")
            identifier = name.replace("-", "_") if isinstance(name, str) else ""
            if identifier.isidentifier():
                sources = [item for item in items(table(build, "torch").get("src")) if isinstance(item, str)]
                yield HubKernel(posixpath.dirname(path), identifier, tuple(sources))


@lru_cache(maxsize=2)
def generated_modules(project: Project) -> dict[str, PythonFile]:
    """The modules that kernel-builder writes, by path; where a file of the name exists, that one counts."""
    packages = {kernel.package: kernel for kernel in hub_kernels(project)}
    texts = {
        f"{package}/_ops.py": _OPS.format(namespace=kernel.namespace)
        for package, kernel in packages.items()
        if project.workspace.is_file(f"{package}/__init__.py") and not project.workspace.is_file(f"{package}/_ops.py")
    }
    return {path: made_module(path, text) for path, text in texts.items()}


def modules_of_kernels(project: Project, paths: Iterable[str]) -> list[str]:
    """The files among some that may reach an operator through such a module."""
    folders = tuple(f"{posixpath.dirname(path)}/" for path in generated_modules(project))
    return files_that_mention(project, ("ops", "_ops"), (path for path in paths if path.startswith(folders)))
