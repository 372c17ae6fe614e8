"""Export of a compiled static model as a native blob, or as its payload alone."""

from __future__ import annotations

from typing import BinaryIO

from npuw_layer.backends.versions import compiler_number
from npuw_layer.errors import OptionError
from npuw_layer.kinds.static.compiled import CompiledStatic
from npuw_layer.kinds.static.exported import content_of
from npuw_layer.storage.encryption import encrypted
from npuw_layer.storage.model_blob.checks import check_compatibility, check_device
from npuw_layer.storage.model_blob.exported import describe_model
from npuw_layer.storage.native_blob.container import footer, pad
from npuw_layer.storage.native_blob.metadata import Metadata
from npuw_layer.storage.native_blob.section import write_section

_NO_LAYOUT = "[...]"
"""``ov::Layout``'s text of an unspecified layout; an exported IR has no others."""

_OUR_COMPILER = "npuc"


def export_native(compiled: CompiledStatic, file: BinaryIO) -> None:
    """Write a compiled static model to a stream, in the format of OpenVINO's NPU plugin.

    Raises:
        OptionError: the model cannot be exported at all or not raw, or encryption fails.
        ModelError: the model's files have changed since compilation.
        OSError: the stream fails.
    """
    (_write_raw if compiled.options.export_raw_blob else _write_described)(compiled, file)


def _write_raw(compiled: CompiledStatic, file: BinaryIO) -> None:
    """Write the program alone.

    Raises:
        OptionError: a raw program cannot hold the whole model.
    """
    check_compatibility(compiled.options)
    check_device(compiled.device, compiled.options)
    if compiled.variables:
        names = ", ".join(repr(variable.port.any_name) for variable in compiled.variables)
        raise OptionError(
            "NPU_EXPORT_RAW_BLOB = YES: an ELF cannot hold the initial values of the variables "
            f"{names}; leave the option out"
        )
    for part in _payload(compiled):
        file.write(part)


def _write_described(compiled: CompiledStatic, file: BinaryIO) -> None:
    """Write the program and its metadata."""
    programs, options = compiled.programs, compiled.options
    manifest, _ = describe_model(content_of(compiled, programs.program, None))
    payload = _payload(compiled)
    described = Metadata(
        batch=compiled.batch,
        input_layouts=(_NO_LAYOUT,) * len(compiled.inputs),
        output_layouts=(_NO_LAYOUT,) * len(compiled.outputs),
        compiler=compiler_number() if options.compiler == _OUR_COMPILER else None,
        encrypted=bool(options.encryption),
    ).write()
    section = write_section(manifest, described, programs.values, options.encryption)
    for part in (*payload, described, section, footer(sum(map(len, payload)))):
        file.write(part)


def _payload(compiled: CompiledStatic) -> list[bytes | memoryview]:
    """Return the parts of the program, padded to complete pages; encrypted if callbacks are set."""
    program, callbacks = compiled.programs.program, compiled.options.encryption
    pieces = [program, pad(program)]
    return [encrypted(b"".join(pieces), callbacks)] if callbacks else pieces
