"""Restored IR with paged attention, whose weights are those of an exported IR."""

from __future__ import annotations

import importlib.util
import lzma
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


def restore(name: str, target: Path) -> Path:
    """Write ``openvino_model.xml`` and ``.bin`` into a folder; return the path of the XML.

    Args:
        name: name of a golden file here and in ``exported``.
        target: the folder.
    """
    exported = HERE.parent / "exported"
    spec = importlib.util.spec_from_file_location("exported_restore", exported / "restore.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    xml: Path = module.restore(exported, name, target)
    xml.write_bytes(lzma.decompress((HERE / f"{name}.xml.xz").read_bytes()))
    with xml.with_suffix(".bin").open("ab") as weights:
        weights.write(np.load(HERE / f"{name}.npz")["tail"].tobytes())
    return xml
