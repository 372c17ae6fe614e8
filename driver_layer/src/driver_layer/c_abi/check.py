"""A check of this installation: all that programs on the simulated NPU need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version

from driver_layer.c_abi.build import compiler, libpython, library
from driver_layer.errors import BuildError

GRAPH_COMPILERS = "driver_layer.graph_compilers"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is needed: its name, whether it is there, and where, or what to do."""

    name: str
    present: bool
    text: str


def findings() -> list[Finding]:
    """Look for everything that is needed."""
    return list(_find())


def _find() -> Iterator[Finding]:
    command = compiler()
    remedy = "install a C compiler as cc, or pip install ziglang"
    yield Finding("C compiler", command is not None, " ".join(command) if command else remedy)
    try:
        yield Finding("library", True, str(library()))
    except BuildError as error:
        yield Finding("library", False, str(error))
    shared = libpython()
    remedy = "programs without Python in them need a Python with a shared library"
    yield Finding("Python's library", bool(shared), shared or remedy)
    names = sorted(entry.name for entry in entry_points(group=GRAPH_COMPILERS))
    remedy = "models are refused, blobs run: pip install ./compiler_layer"
    yield Finding("graph compiler", bool(names), ", ".join(names) or remedy)
    for package in ("openvino", "openvino_genai"):
        try:
            yield Finding(package, True, version(package))
        except PackageNotFoundError:
            remedy = f"for programs in this environment that use it: pip install {package}"
            yield Finding(package, False, remedy)
