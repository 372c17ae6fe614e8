"""Contents of a blob: its facts as text or JSON, and its programs as files."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from driver_layer.support.files import looking_at
from npuw_layer.errors import BlobError, NpuwFault
from npuw_layer.kinds.static.initial_values import VALUES
from npuw_layer.options import parse_options
from npuw_layer.storage.cache.replace import remove_leftovers, replacing
from npuw_layer.storage.container import (
    MODEL,
    STAGE,
    STATIC,
    Container,
    kind_of,
    read_container,
)
from npuw_layer.storage.encryption import decrypt, is_encrypted
from npuw_layer.storage.manifest import EntryManifest, Manifest, ModelManifest
from npuw_layer.storage.native_blob.container import ends_natively, looks_native, read_blob
from npuw_layer.storage.native_blob.metadata import Metadata
from npuw_layer.storage.native_blob.payload import open_payload
from npuw_layer.storage.native_blob.section import read_section
from npuw_layer.storage.source import open_blob
from npuw_layer.weights.stored_weights import PART

_KINDS = {
    STAGE: "an entry of the cache",
    MODEL: "a language model",
    STATIC: "a static model through NPUW",
}
"""Names of the kinds of NPUW's files."""

Facts = dict[str, Any]


def show_blob(source: Path, as_json: bool) -> int:
    """Print the facts of a blob, in lines or as JSON; return the exit code.

    Raises:
        BlobError: the file is not a blob.
    """
    content, _ = open_blob(source)
    try:
        facts = {**_facts(content), "bytes": len(content)}
    except BlobError as error:
        raise BlobError(f"{source}: {error}") from None
    if as_json:
        print(json.dumps(facts, indent=2))
        return 0
    for line in _lines(facts):
        print(line)
    return 0


def _facts(content: memoryview) -> Facts:
    if is_encrypted(content):
        return {"kind": "a blob of NPUW, encrypted"}
    if not kind_of(content) and looks_native(content):
        return _native(content) if ends_natively(content) else {"kind": "a payload alone (ELF)"}
    return {"kind": _KINDS.get(kind_of(content), ""), **_manifest(_read_programs(content).manifest)}


def _native(content: memoryview) -> Facts:
    blob = read_blob(content, any_version=True)
    facts: Facts = {"kind": "a native blob", "payload": blob.payload.size}
    if blob.metadata is None:
        return {**facts, "metadata": "of an unknown version"}
    facts |= _metadata(blob.metadata)
    if is_encrypted(blob.behind):
        return {**facts, "section": "encrypted"}
    section = read_section(blob.behind, blob.described, encrypted=False, callbacks=())
    return {**facts, **({"section": "none"} if section is None else _manifest(section.manifest))}


def _metadata(metadata: Metadata) -> Facts:
    """Return the fields that the version of the metadata has."""
    number = metadata.compiler
    fields: Sequence[Facts] = (
        {"openvino": ".".join(map(str, metadata.openvino))},
        {"init schedules": list(metadata.init_sizes)},
        {"batch": metadata.batch},
        {"input layouts": metadata.input_layouts, "output layouts": metadata.output_layouts},
        {"compiler": None if number is None else f"{number >> 16}.{number & 0xFFFF}"},
        {"encrypted": metadata.encrypted},
        {"compatibility": metadata.compatibility.decode(errors="backslashreplace") or None},
        {"blob type": metadata.blob_type.name},
    )
    found: Facts = {"metadata": metadata.version}
    for field in fields[: metadata.minor + 1]:
        found |= field
    return found


def _manifest(manifest: Manifest) -> Facts:
    parts = {part.name: part.size for part in manifest.parts}
    if isinstance(manifest, ModelManifest):
        recorded = manifest.versions, manifest.options, manifest.files
        return {
            "parts": parts,
            **dict(zip(("versions", "options", "weights in"), recorded, strict=True)),
        }
    return {
        "parts": parts,
        **({"key": manifest.key} if isinstance(manifest, EntryManifest) else {}),
    }


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each fact; maps get a line for each entry below it."""
    width = max(map(len, facts))
    for name, value in facts.items():
        if isinstance(value, dict):
            yield name
            for inner, fact in cast(Facts, value).items():
                yield f"  {_written(inner)}  {_written(fact)}"
        else:
            yield f"{name:{width}}  {_written(value)}"


def _written(value: object) -> str:
    """Return a fact as text, escaped so that a blob cannot control the terminal."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_written, cast(Sequence[object], value))) or "none"
    return "none" if value is None else ascii(str(value))[1:-1]


def extract_programs(source: Path, folder: Path) -> int:
    """Write each program to a separate file, or none; return the exit code.

    Args:
        source: an exported model, or an entry of the cache.
        folder: target folder, created if needed.

    Raises:
        BlobError: the source is another file.
        NpuwFault: a file already exists, or cannot be written.
    """
    content, _ = open_blob(source)
    try:
        found = list(_programs(content))
    except BlobError as error:
        raise BlobError(f"{source}: {error}") from None
    programs = [(folder / f"{name}.blob", program) for name, program in found]
    _write_all(folder, programs)
    for path, program in programs:
        print(f"{path}  {len(program):,} bytes")
    return 0


def _write_all(folder: Path, programs: Sequence[tuple[Path, memoryview]]) -> None:
    """Write all files to a folder, or none: partial results would block the next run.

    Raises:
        NpuwFault: a file already exists, or cannot be written.
    """
    names = {path.name for path, _ in programs}
    with looking_at(folder, NpuwFault):
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder, names.__contains__, locks=False)
    with ExitStack() as taken_back:
        for path, program in programs:
            with looking_at(path, NpuwFault):
                if os.path.lexists(path):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                with replacing(path) as file:
                    file.write(program)
            taken_back.callback(path.unlink, missing_ok=True)
        taken_back.pop_all()


def _programs(content: memoryview) -> Iterator[tuple[str, memoryview]]:
    """Yield names and bytes of the programs, without weights and initial values."""
    if not kind_of(content) and ends_natively(content):
        yield "program", open_payload(content, parse_options({})).place.view
        return
    found = _read_programs(content)
    found.check_programs()
    for part, program in zip(found.manifest.parts, found.programs, strict=True):
        if part.name not in (PART, VALUES):
            # The name is untrusted, and must not be a path.
            (name,) = re.findall(r"^\w+", part.name) or ["program"]
            yield name, program


def _read_programs(content: memoryview) -> Container[EntryManifest] | Container[ModelManifest]:
    """Read an unencrypted file of NPUW.

    Raises:
        BlobError: the file is not one of NPUW's, or damaged.
    """
    clear = decrypt(content, ())
    kind = kind_of(clear)
    if kind in (MODEL, STATIC):
        return read_container(clear, kind, ModelManifest)
    return read_container(clear, STAGE, EntryManifest)
