"""Import of blobs by OpenVINO's real NPU plugin: the payload that it passes to a driver.

Without a driver the plugin reads no blob. A stub driver (``level_zero_shim.c``) accepts graphs and
creates none. It runs in a separate process, as a driver is present or absent for a whole process.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SHIM = Path(__file__).with_name("level_zero_shim.c")

NO_GRAPH = "ZE_RESULT_ERROR_UNINITIALIZED"
"""Error message of the stub driver."""


@dataclass(frozen=True)
class Read:
    """Result of importing a blob."""

    payload: str | None
    """SHA-256 of the payload that the driver received; None if the plugin rejected the blob."""
    error: str


def compiler() -> str | None:
    """Return the path of the C compiler, or None."""
    return shutil.which("cc") if sys.platform == "linux" else None


def digest(payload: bytes) -> str:
    """Return the digest of a payload."""
    return hashlib.sha256(payload).hexdigest()


def import_all(
    blobs: Sequence[bytes], folder: Path, options: Mapping[str, str] | None = None
) -> list[Read]:
    """Import blobs with the real plugin.

    Args:
        blobs: any bytes.
        folder: folder for the stub and the blobs.
        options: options for all blobs.
    """
    library = folder / "libze_loader.so.1"
    if not library.exists():
        command = [compiler() or "cc", "-shared", "-fPIC", "-O1", "-w", "-o", library, SHIM]
        subprocess.run(command, check=True, timeout=120)
    for number, blob in enumerate(blobs):
        (folder / f"{number}.blob").write_bytes(blob)
    done = subprocess.run(
        [sys.executable, __file__, folder, str(len(blobs)), json.dumps(dict(options or {}))],
        env=os.environ | {"LD_LIBRARY_PATH": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
    )
    return [Read(**one) for one in json.loads(done.stdout.splitlines()[-1])]


def _main(folder: Path, count: int, options: dict[str, str]) -> None:
    import openvino as ov

    shim = ctypes.CDLL(str(folder / "libze_loader.so.1"))
    size = ctypes.c_uint64.in_dll(shim, "given_size")
    core = ov.Core()
    assert "NPU" in core.available_devices, "the plugin must find the stub"
    found: list[dict[str, str | None]] = []
    for number in range(count):
        size.value = 0
        blob = (folder / f"{number}.blob").read_bytes()
        try:
            core.import_model(io.BytesIO(blob), "NPU", options)
            error = ""
        except RuntimeError as caught:
            error = str(caught)
        given = ctypes.c_void_p.in_dll(shim, "given_bytes").value or 0
        payload = ctypes.string_at(given, size.value) if size.value else None
        found.append({"payload": payload and digest(payload), "error": error})
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]))
