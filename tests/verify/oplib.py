"""A tiny op library for a worker, whose op does to its process what its param ``do`` says."""

from __future__ import annotations

from pathlib import Path

from opschema_cli.verify.model import Call, Cell, Input, Output, Plan, Target

SOURCE = """
import ctypes, os, pathlib, signal, subprocess, sys, time
import torch

with open({log!r}, "a") as log:
    log.write("imported\\n")
print("loading the library")
os.write(1, b"raw bytes at import")
COMPILED = []


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no message")


class Op:
    def forward(self, x, do=""):
        print("calling", do)
        sys.stdout.flush()
        os.write(1, b"\\x00\\x00\\x00\\x05 raw bytes")
        subprocess.run(["echo", "of a child"])
        if do == "abort":
            os.abort()
        if do == "leave":
            sys.exit("enough")
        if do in ("hang", "stuck"):
            child = subprocess.Popen(["sleep", "1000"])
            with open({log!r} + ".child", "a") as children:
                children.write(f"{{child.pid}}\\n")
            if do == "stuck":  # keeps the GIL
                ctypes.PyDLL(None).sleep(1000)
            time.sleep(1000)
        if do == "compile" and not COMPILED:  # a compiler that takes longer than the call may
            work = "while time.process_time() < 4: pass"
            subprocess.run([sys.executable, "-c", "import time\\n" + work], check=True)
            COMPILED.append(work)
        if do == "think" and not COMPILED:  # a compiler in this process
            COMPILED.append(do)
            until = time.process_time() + 4
            while time.process_time() < until:
                pass
        if do == "lock":  # killed while it builds an extension
            lock = pathlib.Path(os.environ["TORCH_EXTENSIONS_DIR"], "py", "kit", "lock")
            lock.parent.mkdir(parents=True, exist_ok=True)
            os.open(lock, os.O_CREAT | os.O_EXCL)
            time.sleep(1000)
        if do == "raise":
            raise ValueError(os.environ["TRITON_CACHE_DIR"])
        if do == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if do == "fork":  # and both processes go on
            os.fork()
        if do == "mute":
            raise Mute
        if do == "patch":
            torch.save = None
        if do == "bytes":
            bytearray(48 << 30)
        if do == "memory":
            torch.empty(1 << 50)
        return x + {plus}

    def __call__(self, *args):
        return self.forward(*args)
"""


def write_library(root: Path, log: Path, plus: int = 1) -> Path:
    """The library as the module ``lib`` below ``root``; each import adds a line to ``log``."""
    root.mkdir()
    (root / "lib.py").write_text(SOURCE.format(log=str(log), plus=plus))
    return root


def cell(row: str, do: str = "", op: str = "Op") -> Cell:
    call = Call(
        inputs=(Input(name="x", shape=(4, 5), dtype="float32"),),
        params={"do": do},
        outputs=(Output(name="y", shape=(4, 5), dtype="float32"),),
    )
    return Cell(op=op, row=row, dtype="float32", call=call)


def plan(root: Path, module: str = "lib", name: str = "Op", **more: str) -> Plan:
    return Plan(op="Op", target=Target(root=str(root), module=module, name=name), cells=(), **more)
