"""Unpacks the revisions of real repositories that the corpus tests and the benchmark read.

    python -m benchmarks.corpus tileops path/to/TileOPs.git corpus-folder
    python -m benchmarks.corpus xla path/to/xla.git corpus-folder      # likewise simpler, pypto, pypto-lib, flydsl
    pip download --no-deps -d wheels torch==2.15.0                     # likewise every release of TORCH_RELEASES
    python -m benchmarks.corpus torch wheels corpus-folder             # each wheel's schemas, torchgen and infer_schema
    python -m benchmarks.corpus torch - corpus-folder                  # those of the installed torch
    python -m benchmarks.corpus unrelated folder-of-repositories corpus-folder  # OWNER+NAME.git each; and source distributions
    OPSCHEMA_CORPUS=corpus-folder pytest -m corpus

Nothing of theirs is committed here; the folder lies outside the project.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

HEAD = "52dbc086"
CARRIER_FIX = "bfae9be4"

FIXES = {
    "ce6da052": "SIG201",
    "c4ba9a4a": "WKL101",
    "86149d97": "SIG203",
    "4a776dee": "SIG204",
    "24886ce6": "WKL104",
    "139e60ee": "MAN101",
    "6595d9a0": "MAN202",
    "61142fe8": "WKL103",
    "cb6296f3": "REG201",
}
"""Commits of TileOPs that mended a fault by hand, and the rule that finds it at their parents."""

MIGRATED = (
    *("a72e78b9", "daace1e6", "82535c3d", "8ac5b963", "e01a88ee", "a6b9ff24", "6a61ba14", "e4960c8c", "19ee4c2b"),
    *("46d0918a", "9448edbf", "dfce4964", "2b307059", "2ec50323", "c986df54", "40bd165b"),
)
"""Commits of TileOPs, beside :data:`FIXES`, that did by hand what a migration does."""

HISTORY = (
    *(
        "d4f3e5af",
        "e237145c",
        "87a458c6",
        "eac87492",
        "46d0918a",
        "08668189",
        "f851936a",
        "1cae8d85",
        "c2e01ac8",
        "f093e5e9",
    ),
    *(
        "35ab0afa",
        "23f2a765",
        "a63e7e5d",
        "a898f2d3",
        "b41ed2e0",
        "48782d50",
        "3c4d19aa",
        "32f23a9c",
        "6595d9a0",
        "7ce23e32",
    ),
)
"""Twenty commits spread over the manifest's history."""


XLA_HEAD = "41398bfff3"
XLA_HEADER = "32fe908404"
"""The commit of pytorch/xla that wrote xla_native_functions.yaml in place of a hand-kept header."""

XLA_MOVES = (
    "0064f439f2", "039629c01e", "03eb05e59f", "041ebf92a1", "05fa2aa6ad", "0bef61c546", "11602fc62f", "1262dd46f3",
    "1715ccd0c1", "1e71c8e970", "1f8a7ee160", "227ac13d71", "281f369650", "2cc13c08da", "352dd8c394", "36583d461b",
    "3c0d68da07", "3eb8a9d9eb", "45689b9f9f", "4ab7a24943", "4d85d36fad", "4ea000b9c3", "56a52d5335", "587a6b6d01",
    "5a2bbf3624", "5df0fbf451", "63a85d9b88", "67e4efbc9f", "6bfcd242b2", "71c5a00592", "728b352394", "76df13008a",
    "773265ef66", "79cbdb606f", "7a306610e7", "83e51d2a06", "84a77683ea", "93ed11ba0f", "97686a60f7", "98bbc9cf2d",
    "99a1341b85", "9a341cfd01", "9c01c3ca14", "9e4db963a1", "9f7dfe22cc", "a008de3548", "a1691bdd17", "a4d48cb871",
    "ab15402f7c", "accd86afbb", "b2f9d01612", "b8bf944ecd", "b8cef3e43c", "ba61212bc4", "ba8871e4a0", "bb43e8a704",
    "c4e2622ab4", "c91bf61d14", "c9a132484f", "cbd455b295", "d7c443085f", "e15d8952f6", "e2357ba8d8", "e7ebd144f1",
    "e81b52968b", "eb7878e371", "f62b9d8b0e",
)  # fmt: skip
"""Commits of pytorch/xla that moved operators between the lists of that file."""

XLA_YAML = ("codegen/xla_native_functions.yaml", "xla_native_functions.yaml")
"""Paths of the file in past releases."""

SIMPLER = ("6ebaf7715", "8b34712bc", "d60b8acdb", "affb46123", "b972b288e", "2e598d648")
"""Commits of simpler; of all but the newest the parent is read, too."""

FLYDSL = (
    *("5e64bba2", "202793de", "fd6ff00c", "e5f41ee5", "4cffe5f6", "5301ec17", "1dfedbf4", "1f8f3325"),
    *("801fc4e6", "250c11d", "29a9dd66", "d6a8a723", "b25dbe1a", "0fab09fd", "11c4174d"),
)
"""Commits of FlyDSL: what mended a fault or migrated by hand, its parent, and what changed the API; the last is the newest."""


UNRELATED = {
    "helm+charts": "390ee6614b",
    "prometheus-community+helm-charts": "cf408a290a",
    "bitnami+charts": "5165628ae0",
    "argoproj+argo-cd": "37ee0097cf",
    "kubernetes-sigs+kustomize": "12f9e63914",
    "jax-ml+jax": "cec06d116c",
    "vllm-project+vllm-ascend": "182b75ea84",
}
"""Repositories full of YAML that declares no operators, by owner and name."""

UNREAD = {
    "pytorch+helion": "ef091f416a",
    "NVIDIA+warp": "9934a4eb2c",
    "flagos-ai+FlagGems": "ed2508bcb5",
    "tinygrad+tinygrad": "a9069c177a",
    "pytorch+executorch": "cff6f4dd32",
}
"""Repositories whose operators, all or some, no pack reads."""

BOUND = {
    "Dao-AILab+flash-attention": "0251105a2f",
    "NVIDIA+TransformerEngine": "d0067d0da6",
    "NVIDIA+apex": "6424da3b4f",
    "ROCm+aiter": "e404860735",
    "deepseek-ai+DeepGEMM": "54e2261240",
    "deepseek-ai+FlashMLA": "9241ae3ef9",
    "deepspeedai+DeepSpeed": "edaa722126",
    "facebookresearch+pytorch3d": "9381c40163",
    "nerfstudio-project+gsplat": "90d7b4b349",
    "open-mmlab+mmcv": "a8073c74bf",
    "thu-ml+SageAttention": "d1a57a546c",
}
"""Repositories that bind functions with pybind11 and declare no operators for them."""

DISTRIBUTIONS = ("click==8.1.8", "requests==2.32.3", "rich==13.9.4", "django==5.1.4")
"""Python projects on PyPI without operators."""

READ = (
    ".py",
    ".pyi",
    ".yaml",
    ".yml",
    ".cpp",
    ".cc",
    ".cxx",
    ".cu",
    ".cuh",
    ".h",
    ".hpp",
    ".hip",
    ".mm",
    ".toml",
    ".md",
)
"""Files that opschema may read of a repository; others are not unpacked, since large ones may be missing from a mirror."""


def revisions(repository: str) -> dict[str, str]:
    """Every revision of a repository by the name of its folder."""
    if repository == "flydsl":
        return {f"flydsl/{commit}": commit for commit in FLYDSL}
    if repository == "xla":
        header = {f"aten/xla-{XLA_HEADER}": XLA_HEADER, f"aten/xla-{XLA_HEADER}_parent": f"{XLA_HEADER}^"}
        return {"aten/xla-head": XLA_HEAD, **header}
    if repository == "simpler":
        parents = {f"pypto/simpler-{commit}p": f"{commit}^" for commit in SIMPLER[1:]}
        return {**{f"pypto/simpler-{commit}": commit for commit in SIMPLER}, **parents}
    if repository != "tileops":
        commit = {"pypto": "e2d0f78ae", "pypto-lib": "634e77bde"}[repository]
        return {f"pypto/{repository}-{commit}": commit}
    return _of_tileops()


def _of_tileops() -> dict[str, str]:
    found = {f"tileops-{HEAD}": HEAD}
    for commit in (CARRIER_FIX, *FIXES, *MIGRATED):
        found[f"tileops-{commit}"] = commit
        found[f"tileops-{commit}-parent"] = f"{commit}^"
    return {**found, **{f"tileops-{commit}": commit for commit in HISTORY}}


def unpack(git: Path, revision: str, folder: Path) -> None:
    """Write the tree of ``revision`` below ``folder``, unless it is there."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    command = ["git", "-C", str(git), "archive", revision]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as process,
        tarfile.open(fileobj=process.stdout, mode="r|") as tar,
    ):
        tar.extractall(folder, filter="data")


def unpack_read(git: Path, revision: str, folder: Path) -> None:
    """Write those files of ``revision`` below ``folder`` that opschema may read, unless it is there."""
    if folder.exists():
        return
    listed = subprocess.run(
        ["git", "-C", str(git), "ls-tree", "-r", "-z", revision], capture_output=True, check=True
    ).stdout
    for entry in filter(None, listed.split(b"\0")):
        mode, name = entry.partition(b"\t")[::2]
        path = name.decode("utf-8", "surrogateescape")
        if mode.startswith(b"100") and path.endswith(READ):
            blob = mode.split()[2].decode()
            found = subprocess.run(["git", "-C", str(git), "cat-file", "blob", blob], capture_output=True)
            if found.returncode == 0:
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(found.stdout)


def unpack_distribution(requirement: str, folder: Path) -> None:
    """Write the source distribution of ``requirement`` below ``folder``, unless it is there."""
    if folder.exists():
        return
    with tempfile.TemporaryDirectory() as downloads:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*command, "-d", downloads, requirement], check=True)
        with tarfile.open(next(Path(downloads).glob("*.tar.gz"))) as tar:
            tar.extractall(folder, filter="data")


def unrelated(repositories: Path, folder: Path) -> Iterator[str]:
    """Unpack :data:`UNRELATED`, :data:`UNREAD`, :data:`BOUND`, as far as ``repositories`` has them, and :data:`DISTRIBUTIONS`."""
    for name, commit in {**UNRELATED, **UNREAD, **BOUND}.items():
        found = [path for path in (repositories / f"{name}.git", repositories / name / "repo") if path.is_dir()]
        for git in found[:1]:
            unpack_read(git, commit, folder / "unrelated" / name)
            yield f"unrelated/{name}"
    for requirement in DISTRIBUTIONS:
        unpack_distribution(requirement, folder / "unrelated" / requirement)
        yield f"unrelated/{requirement}"


def moves(git: Path, folder: Path) -> Iterator[str]:
    """Write pytorch/xla's YAML before and after each of :data:`XLA_MOVES`."""
    for commit in XLA_MOVES:
        for side, revision in (("before", f"{commit}^"), ("after", commit)):
            for path in XLA_YAML:
                found = subprocess.run(["git", "-C", str(git), "show", f"{revision}:{path}"], capture_output=True)
                if found.returncode == 0:
                    target = folder / "aten/xla-moves" / commit / side / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(found.stdout)
        yield f"aten/xla-moves/{commit}"


def packaged() -> Path | None:
    """The schemas inside the installed torch; None without one."""
    found = importlib.util.find_spec("torchgen")
    folder = Path(found.origin).parent / "packaged" if found is not None and found.origin else None
    return folder if folder is not None and folder.is_dir() else None


_OF_TORCH = re.compile(
    r"torchgen/.*(?<!\.pyc)(?<!/)|torch/_library/[a-z_]+\.py|torch/(?:version|library)\.py"
    r"|torch/include/(?:(?:c10|torch/headeronly)/core/ScalarType|ATen/autocast_mode)\.h"
)
"""Files of a torch release that the corpus holds."""


def unpack_torch(source: Path, folder: Path) -> Iterator[str]:
    """Write each torch of ``source`` below ``folder``: a wheel, a folder of wheels, or one that torch is installed in."""
    wheels = [source] if source.suffix == ".whl" else sorted(source.glob("torch-*.whl"))
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            release = _release(wheel.name)
            _write_torch(((name, archive.read(name)) for name in archive.namelist()), folder / f"aten/torch-{release}")
        yield f"aten/torch-{release}"
    if not wheels:
        installed = next(iter(sorted(source.glob("torch-*.dist-info"))), None)
        if installed is None:
            raise SystemExit(f"there is no torch in {source}")
        release = _release(installed.name)
        paths = [path for part in ("torchgen", "torch/_library") for path in sorted((source / part).rglob("*"))]
        files = [path for path in [*paths, source / "torch/version.py", source / "torch/library.py"] if path.is_file()]
        texts = ((path.relative_to(source).as_posix(), path.read_bytes()) for path in files)
        _write_torch(texts, folder / f"aten/torch-{release}")
        yield f"aten/torch-{release}"


def _release(name: str) -> str:
    """``2.15`` of ``torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl``."""
    found = re.match(r"torch-(\d+\.\d+)\.", name)
    if found is None:
        raise SystemExit(f"{name} names no release of torch")
    return found[1]


def _write_torch(files: Iterable[tuple[str, bytes]], folder: Path) -> None:
    """Write what the corpus holds of a torch; the schemas a second time at the top, where a checkout's tests look."""
    for name, data in files:
        if _OF_TORCH.fullmatch(name) is None:
            continue
        short = re.sub(r"^torchgen/packaged/(?=(?:ATen/native|autograd)/\w+\.yaml)", "", name)
        for path in {name, short}:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def main() -> None:
    """Unpack all revisions."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    known = ["tileops", "xla", "simpler", "pypto", "pypto-lib", "flydsl", "torch", "unrelated"]
    parser.add_argument("repository", choices=known)
    parser.add_argument("git", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.repository == "torch":
        installed = Path(sysconfig.get_paths()["purelib"])
        for name in unpack_torch(installed if str(options.git) == "-" else options.git, options.folder):
            print(name)
        return
    if options.repository == "unrelated":
        for name in unrelated(options.git, options.folder):
            print(name)
        return
    for name, revision in revisions(options.repository).items():
        unpack(options.git, revision, options.folder / name)
        print(name)
    for name in moves(options.git, options.folder) if options.repository == "xla" else ():
        print(name)


if __name__ == "__main__":
    main()
