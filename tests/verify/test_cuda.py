"""Runs on a GPU: tilekit's kernels by nvcc, and faults of CUDA kernels that need only torch. Without a GPU these are compiled."""

from __future__ import annotations

import ast
import ctypes
import ctypes.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.verify.compute_sanitizer import TOOLS, UNSUPPORTED, compute_sanitizer
from tests.command import TILEKIT, Opschema
from tests.verify.cuda_faults import CUDA_FAULTS, RAISED, CudaFault, write
from tests.verify.cuda_packages import packages, wheels

torch = pytest.importorskip("torch")

from opschema_cli.verify.harness import Harness  # noqa: E402
from opschema_cli.verify.model import CellResult, Plan, Target  # noqa: E402
from opschema_cli.verify.results import Header, Version  # noqa: E402
from opschema_cli.verify.run import Run  # noqa: E402
from opschema_cli.verify.sanitizers import check_sanitizer  # noqa: E402

HAS_GPU = torch.cuda.is_available()
cuda = pytest.mark.cuda
needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="PyTorch sees no NVIDIA GPU")
needs_nvrtc = pytest.mark.skipif(
    not hasattr(torch.cuda, "_compile_kernel") and not hasattr(torch.cuda, "compile_kernel"),
    reason="this release of torch does not compile kernels by itself",
)


@cuda
@needs_gpu
@pytest.mark.skipif(
    shutil.which("nvcc") is None or shutil.which("g++") is None,
    reason="tilekit's kernels need nvcc, and nvcc needs g++",
)
def test_tilekit_computes_the_same_on_a_gpu_without_its_carriers(tmp_path: Path) -> None:
    for side in ("before", "after"):
        shutil.copytree(TILEKIT, tmp_path / side)
    shutil.copytree(TILEKIT.with_name("tilekit_migrated"), tmp_path / "after", dirs_exist_ok=True)
    done = Opschema(tmp_path / "after", tmp_path / "cache")(
        *("verify", "--before", "../before", "--device", "cuda", "--output-format", "json"), timeout=1200
    )
    found = json.loads(done.out)
    assert found["device"] == torch.cuda.get_device_name()
    assert {cell["verdict"] for cell in found["cells"]} == {"unchanged", "not-checked"}, done.out
    checked = [cell for cell in found["cells"] if cell["verdict"] == "unchanged"]
    assert len(checked) > 300
    assert all(cell.get("figures") for cell in checked)
    assert done.code == 0


def check(fault: CudaFault, folder: Path, *, faulty: bool, sanitizer: bool = False) -> CellResult:
    """The result of the fault's cell: before is the sound op, after the sound or the faulty one."""
    modules = write(fault, folder)
    before, after = (Target(root=str(folder), module=name, name="op", recipe="recipes.py") for name in modules)
    here, cell = Version(name=""), fault.cell
    device = torch.cuda.get_device_name()
    header = Header(run="", shard=1, shards=1, total=1, before=here, after=here, device=device, cells=(cell.id,))
    plan = Plan(op="Op", target=after if faulty else before, cells=(cell,))
    tool = fault.tool if sanitizer else None
    run = Run(header=header, plans=(), compared=True, before={"Op": before}, folder=str(folder), sanitizer=tool)
    with closing(Harness(run)) as harness:
        return harness.check(plan, cell)


def seen(result: CellResult) -> set[str]:
    """The checks that found something on the side after, and whether it raised or died."""
    broken = result.reason.startswith(("after raised", "after died"))
    return {found.check for found in result.findings if found.side == "after"} | ({RAISED} if broken else set())


def by_name(fault: CudaFault) -> str:
    return fault.name


@cuda
@needs_gpu
@needs_nvrtc
@pytest.mark.parametrize("fault", CUDA_FAULTS, ids=by_name)
def test_a_fault_is_a_regression_and_its_sound_twin_is_unchanged(fault: CudaFault, tmp_path: Path) -> None:
    if torch.cuda.device_count() < fault.devices:
        pytest.skip(f"it needs {fault.devices} GPUs")
    sound = check(fault, tmp_path / "sound", faulty=False)
    if fault.large and sound.verdict == "not-checked":
        pytest.skip(sound.reason)
    assert (sound.verdict, sound.reason) == ("unchanged", "")
    found = check(fault, tmp_path / "faulty", faulty=True)
    if fault.chance and found.verdict in ("unchanged", "within-tolerance"):
        pytest.xfail(fault.chance)
    assert found.verdict == "regression", found
    assert seen(found) & fault.checks, found


@cuda
@needs_gpu
@needs_nvrtc
@pytest.mark.parametrize("fault", [fault for fault in CUDA_FAULTS if fault.tool], ids=by_name)
def test_compute_sanitizer_finds_it(fault: CudaFault, tmp_path: Path) -> None:
    try:
        check_sanitizer(fault.tool, "cuda")  # type: ignore[arg-type]
    except OpschemaError as error:
        pytest.skip(str(error))
    sound = check(fault, tmp_path / "sound", faulty=False, sanitizer=True)
    if UNSUPPORTED in str(sound):
        pytest.skip(f"compute-sanitizer: {UNSUPPORTED}")
    assert "sanitizer" not in seen(sound), sound
    found = check(fault, tmp_path / "faulty", faulty=True, sanitizer=True)
    assert found.verdict == "regression", found
    assert seen(found) & {"sanitizer", RAISED}, found


def test_what_is_installed_for_them_is_of_a_release_that_the_driver_supports() -> None:
    found = packages((13, 1), ["compute-sanitizer"])
    assert found[0] == "nvidia-cuda-nvcc>=13,<13.2"
    assert not any("sanitizer" in name for name in found)
    assert packages((13, 0), ["nvcc"]) == ["nvidia-cuda-sanitizer-api>=13,<13.1"]
    assert packages((12, 8), ["nvcc"]) == ["nvidia-cuda-sanitizer-api-cu12<12.9"]
    assert packages((11, 8), []) == packages(None, []) == packages((13, 0), ["nvcc", "compute-sanitizer"]) == []


def test_what_is_downloaded_for_them_is_all_but_torch() -> None:
    project = {"dependencies": ["click>=8"], "optional-dependencies": {"verify": ["pytest>=8", "torch>=2.6"]}}
    found = wheels(project, ["hypothesis>=6", "hatchling>=1", "jsonschema>=4"])
    assert found == ["click>=8", "pytest>=8", "hypothesis>=6", "hatchling>=1", "editables", "setuptools"]


def test_the_faults_are_edits_of_their_sound_twins() -> None:
    for fault in CUDA_FAULTS:
        sound, faulty = (ast.unparse(ast.parse(fault.module(faulty=faulty))) for faulty in (False, True))
        assert sound != faulty, fault.name


@pytest.fixture(scope="module")
def nvrtc() -> ctypes.CDLL:
    """NVRTC of the system or of a package, which needs no GPU."""
    library = next(filter(None, map(_opened, _libraries())), None)
    if library is None:
        pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc")
    return library


def _libraries() -> Iterator[str]:
    yield from filter(None, [ctypes.util.find_library("nvrtc")])
    for folder in sys.path:
        yield from map(str, sorted(Path(folder).glob("nvidia/*/lib/libnvrtc.so.*")))


def _opened(path: str) -> ctypes.CDLL | None:
    with suppress(OSError):
        return ctypes.CDLL(path)
    return None


@pytest.mark.parametrize("architecture", ["80", "90"])
def test_the_kernels_compile(nvrtc: ctypes.CDLL, architecture: str) -> None:
    for fault in CUDA_FAULTS:
        for source in fault.kernels:
            program, size = ctypes.c_void_p(), ctypes.c_size_t()
            assert not nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
            options = (ctypes.c_char_p * 1)(f"--gpu-architecture=sm_{architecture}".encode())
            failed = nvrtc.nvrtcCompileProgram(program, 1, options)
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
            assert (failed, log.value) == (0, b""), f"{fault.name}: {log.value.decode()}"


def test_torch_compiles_the_kernels_where_no_toolkit_is_installed(
    nvrtc: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function of torch that the ops call, up to where the result would be loaded."""
    utils = pytest.importorskip("torch.cuda._utils")
    if not hasattr(utils, "_nvrtc_compile") or not hasattr(utils, "_get_gpu_rtc_library"):
        pytest.skip("this release of torch compiles kernels otherwise, or not at all")
    from torch.utils import cpp_extension

    monkeypatch.setattr(utils, "_get_gpu_rtc_library", lambda: nvrtc)
    monkeypatch.setattr(cpp_extension, "CUDA_HOME", None)
    exec(CUDA_FAULTS[0].module(faulty=False), {})  # what it does at its import lets torch compile
    for fault in CUDA_FAULTS:
        for source in fault.kernels:
            binary, name = utils._nvrtc_compile(source, "kernel", "90")[:2]
            assert (binary[:4], name) == (b"\x7fELF", "kernel"), fault.name


def test_compute_sanitizer_knows_the_options_that_it_is_given(tmp_path: Path) -> None:
    try:
        (program, *options), _ = compute_sanitizer("memcheck", os.environ, tmp_path / "log")
    except OpschemaError:
        pytest.skip("compute-sanitizer is not installed: pip install nvidia-cuda-sanitizer-api")
    said = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    for name, value in zip(options[::2], options[1::2], strict=True):
        assert f"  {name} arg" in said
        assert name == "--log-file" or value.isdecimal() or re.search(rf"[ |]{value} +:|\({value}\)", said), value
    for tool in TOOLS:
        assert re.search(rf"^ +{tool} +: ", said, re.MULTILINE)
