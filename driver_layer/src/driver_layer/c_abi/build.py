"""Compilation of the library, cached by the content that it is made of.

The library has the places of this installation's Python and packages in it: the driver's process,
which it starts, finds them there.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from driver_layer.c_abi.emit_c import source
from driver_layer.errors import BuildError
from driver_layer.support.files import make_private

DRIVER = "libze_intel_npu.so.1"
"""Name under which a loader finds a driver of NPUs; in the folder ``driver``."""
LOADER = "libze_loader.so.1"
"""Name under which applications find Level Zero; in the folder ``loader``."""

_FLAGS = (
    "-shared",
    "-fPIC",
    "-O1",
    "-fvisibility=hidden",
    "-pthread",
    "-Wl,-Bsymbolic",  # a loader in the same process has functions of the same names
    "-Wl,-z,nodelete",  # threads leave through it until the process ends
)

START = """\
import os, sys
if os.fork():
    os._exit(0)
try:
    sys.path[:0] = {paths!r}
    from driver_layer.c_abi.serve import serve
    serve(sys.argv[1])
except BaseException as error:
    problem = (str(error).strip().splitlines() or [""])[0]
    print(
        f"driver_layer: the NPU driver cannot start: {{type(error).__name__}}: {{problem}}; "
        "npu-run --check lists all that is needed",
        file=sys.stderr,
        flush=True,
    )
os._exit(1)
"""
"""Code of the driver's process, formatted with the folders of packages.

Its first child goes on, so that the host has no child to wait for.
"""


def compiler() -> tuple[str, ...] | None:
    """Return the command of a C compiler: the system's, or that of the package ziglang."""
    program, *options = shlex.split(os.environ.get("CC", "")) or ["cc"]
    found = shutil.which(program)
    if found is not None:
        return (found, *options)
    if find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    return None


def library() -> Path:
    """Return the folder of the library, built now if it was not before.

    The folder has ``driver/libze_intel_npu.so.1`` and ``loader/libze_loader.so.1``.

    Raises:
        BuildError: there is no compiler, it fails, the package cffi is missing, or there is no
            place for the library.
    """
    if find_spec("cffi") is None:
        raise BuildError('no package cffi: pip install "./driver_layer[c-abi]"')
    command = compiler()
    text = source(sys.executable, START.format(paths=_paths()))
    digest = hashlib.sha256("\0".join([text, *(command or ()), *_FLAGS]).encode()).hexdigest()
    place = _cache() / digest[:24]
    if not place.is_dir():
        if command is None:
            raise BuildError("no C compiler: install one as cc, or pip install ziglang")
        compile_library(command, text, place)
    return place


def _paths() -> list[str]:
    """Return the folders of this Python's packages, without its standard library."""
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    standard |= {str(Path(folder, "lib-dynload")) for folder in standard}
    folders = (os.path.abspath(folder) for folder in sys.path[1:])
    return [folder for folder in folders if Path(folder).is_dir() and folder not in standard]


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(base) if base else Path.home() / ".cache") / "npu-driver" / "c_abi"
    except RuntimeError:
        raise BuildError("no folder for the library: set XDG_CACHE_HOME") from None
    if not make_private(folder):
        raise BuildError(f"{folder}: not a folder of this user alone; set XDG_CACHE_HOME")
    return folder


def compile_library(command: Sequence[str], text: str, place: Path) -> None:
    """Compile, and move the result to its place in one step."""
    with tempfile.TemporaryDirectory(dir=place.parent) as made:
        folder = Path(made, "made")
        for name in ("driver", "loader"):
            (folder / name).mkdir(parents=True)
        (folder / "library.c").write_text(text)
        target = folder / "driver" / DRIVER
        line = [*command, *_FLAGS, "-o", str(target), str(folder / "library.c"), "-ldl"]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"{' '.join(command)} failed: {done.stderr.strip()[-2000:]}")
        (folder / "loader" / LOADER).symlink_to(Path("..", "driver", DRIVER))
        try:
            folder.rename(place)
        except OSError:
            if not place.is_dir():  # else another process was faster
                raise
