"""Versions of packages that change whenever their sources do."""

from __future__ import annotations

import functools
import hashlib
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path

_SOURCES = {".py", ".toml"}
"""Suffixes of sources; data tables, e.g. of platforms, count as sources."""


@functools.cache
def package_version(package: str) -> str:
    """Return a version like "0.1.0+3f9a2c41d0be", with a digest of the sources behind the +.

    Args:
        package: an installed package, or a part of it, "a.b".

    An installed wheel lists the hashes of its files, so only one small file is read. For a package
    that runs from a source folder, all sources are read.
    """
    whole = package.partition(".")[0]
    try:
        listed = distribution(whole).read_text("RECORD") or ""
        number = version(whole)
    except PackageNotFoundError:  # run from a folder on sys.path
        listed, number = "", "0"
    folder = package.replace(".", "/")
    lines = sorted(
        line
        for line in listed.splitlines()
        if line.startswith(f"{folder}/") and Path(line.split(",")[0]).suffix in _SOURCES
    )
    digest = hashlib.sha256("\n".join(lines).encode())
    if not lines:
        for path in _sources(package):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return f"{number}+{digest.hexdigest()[:12]}"


def _sources(package: str) -> list[Path]:
    found = find_spec(package)
    folders = [] if found is None else list(found.submodule_search_locations or [])
    files = (path for folder in folders for path in Path(folder).rglob("*.*"))
    return sorted(path for path in files if path.suffix in _SOURCES)
