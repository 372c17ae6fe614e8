"""Import of a static model from a native blob or a bare ELF, which is untrusted."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, LoadedModel
from npuw_layer.errors import (
    BlobError,
    BlobVersionError,
    DamagedBlob,
    DeviceError,
    OptionError,
)
from npuw_layer.kinds.static.compiled import StaticContent, StaticPrograms
from npuw_layer.kinds.static.imported import MakeDevice
from npuw_layer.kinds.static.initial_values import PARTS, pack_values, unpack_values
from npuw_layer.kinds.static.port import is_port
from npuw_layer.options import parse_options
from npuw_layer.options.routes import check_plain
from npuw_layer.storage.container import PAGE, ByteRange, Container
from npuw_layer.storage.manifest import ModelManifest
from npuw_layer.storage.model_blob.checks import check_device
from npuw_layer.storage.model_blob.imported import BlobBytes, check_versions, verify_model
from npuw_layer.storage.model_files import WeightSources, named_weights, needed_files
from npuw_layer.storage.native_blob.metadata import ANY_BATCH, IGNORE_VERSION, Metadata
from npuw_layer.storage.native_blob.payload import Payload, check_payload, open_payload
from npuw_layer.storage.native_blob.section import Section
from npuw_layer.storage.programs import load

_log = logging.getLogger(__name__)

_PLAIN = {"NPU_USE_NPUW": "NO", "NPUW_LLM": "NO"}
"""Options of models in native blobs."""


def read_native(opened: BlobBytes, make_device: MakeDevice) -> StaticContent:
    """Read a static model for the NPU itself; raises as ``import_static``."""
    given = parse_options(opened.config)
    if given.use_npuw or given.llm:
        raise OptionError(
            "NPU_USE_NPUW and NPUW_LLM: the blob is for the NPU itself; leave them out"
        )
    payload = open_payload(opened.content, given)
    if payload.section is None:
        found = _read_plain(payload, opened, make_device)
    else:
        found = _read_described(payload.place, payload.section, opened, make_device)
    loaded = found.programs.loaded
    if payload.metadata is not None:
        _check_layouts(payload.metadata, loaded)
    return replace(found, batch=_batch(payload.metadata, loaded))


def _read_described(
    payload: ByteRange,
    section: Section,
    opened: BlobBytes,
    make_device: MakeDevice,
) -> StaticContent:
    """Load a payload that this layer's section describes completely."""
    container = _container(payload, section)
    any_version = parse_options(opened.config).disable_version_check
    found = verify_model(
        opened,
        container,
        lambda _: PARTS,
        make_device,
        _ignore_versions if any_version else _check_versions,
    )
    options = found.options
    if options.llm is not False or options.use_npuw is not False:
        raise BlobError("its options are not those of a static model for the NPU itself")
    program, values = container.programs
    loaded = found.load(PARTS[0], program)
    found.check_files([loaded], None)
    programs = StaticPrograms(program, values, loaded, unpack_values(values))
    return StaticContent(found.device, options, programs, WeightSources(found.files, None))


def _container(payload: ByteRange, section: Section) -> Container[ModelManifest]:
    """Combine the payload and the manifest of this layer's section.

    Raises:
        BlobError: the sizes of the parts differ from the manifest.
    """
    parts = section.manifest.parts
    if [part.name for part in parts] != list(PARTS):
        raise BlobError(f"its parts are {', '.join(part.name for part in parts)}")
    program, values = (part.size for part in parts)
    filling = payload.size - program
    if values != len(section.values) or not 0 <= filling < PAGE:
        raise DamagedBlob(
            f"its manifest states {program} and {values} bytes, the file has {payload.size} and "
            f"{len(section.values)}"
        )
    places = payload._replace(size=program), ByteRange(section.values, 0, values)
    gap = ByteRange(payload.content, payload.offset + program, filling)
    return Container(section.manifest, section.digest, places, (gap,))


def _check_versions(found: Mapping[str, str], ours: Mapping[str, str]) -> None:
    try:
        check_versions(found, ours)
    except BlobVersionError as error:
        raise BlobVersionError(
            error.what, error.found, error.needed, advice=IGNORE_VERSION
        ) from None


def _ignore_versions(found: Mapping[str, str], ours: Mapping[str, str]) -> None:
    differing = [what for what, version in ours.items() if found.get(what) != version]
    if differing:
        _log.warning("other versions of %s made the blob; it may not run", ", ".join(differing))


def _read_plain(payload: Payload, opened: BlobBytes, make_device: MakeDevice) -> StaticContent:
    """Load a payload without this layer's section: with the plugin's metadata, or none."""
    options = parse_options({**opened.config, **_PLAIN})
    check_plain(options)
    device = make_device(options)
    check_device(device, options)
    program = payload.place.view
    check_payload(program)
    try:
        loaded = load(device, program)
    except RuntimeError as error:
        raise DeviceError(f"the device rejects its payload: {error}") from error
    if _has_state(loaded):
        raise BlobError(
            "its program has variables, but it has no initial values; export it without "
            "NPU_EXPORT_RAW_BLOB"
        )
    files = named_weights(needed_files([loaded]), options, opened.model)
    programs = StaticPrograms(program, pack_values({}), loaded, {})
    return StaticContent(device, options, programs, WeightSources(files, None))


def _has_state(loaded: LoadedModel) -> bool:
    names = [info.name for info in (*loaded.inputs, *loaded.outputs)]
    return any(name.startswith((READ_PREFIX, ASSIGN_PREFIX)) for name in names)


def _check_layouts(metadata: Metadata, loaded: LoadedModel) -> None:
    """Check that the metadata has a layout for each input and output, if it has any.

    Raises:
        BlobError: the numbers differ.
    """
    sides = (
        ("inputs", metadata.input_layouts, loaded.inputs),
        ("outputs", metadata.output_layouts, loaded.outputs),
    )
    for side, layouts, infos in sides:
        count = sum(is_port(info) for info in infos)
        if layouts and len(layouts) != count:
            raise BlobError(f"it has layouts of {len(layouts)} {side}, but its program has {count}")


def _batch(metadata: Metadata | None, loaded: LoadedModel) -> int | None:
    """Return the batch to run item by item; None if the program takes the complete batch.

    Raises:
        BlobError: the program does not take one item of the batch.
    """
    batch = None if metadata is None else metadata.batch
    if batch in (None, 1):
        return None
    sides = [list(filter(is_port, side)) for side in (loaded.inputs, loaded.outputs)]
    by_items = all(side and all(info.shape[:1] == (1,) for info in side) for side in sides)
    if not by_items or _has_state(loaded):
        said = "any batch" if batch == ANY_BATCH else f"a batch of {batch}"
        raise BlobError(
            f"its metadata requests {said} item by item, but its program does not take single items"
        )
    return batch
