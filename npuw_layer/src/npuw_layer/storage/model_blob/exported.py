"""Export of programs, weights and their origin to one file."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from driver_layer.support.files import looking_at, place_of
from npuw_layer.backends.protocols import Device, LoadedModel
from npuw_layer.errors import NpuwFault, NpuwUsageError
from npuw_layer.options import Options
from npuw_layer.storage.cache.key import current_versions
from npuw_layer.storage.cache.known_files import KnownFiles
from npuw_layer.storage.cache.replace import remove_leftovers, replacing
from npuw_layer.storage.container import describe
from npuw_layer.storage.encryption import write_programs
from npuw_layer.storage.manifest import ModelManifest
from npuw_layer.storage.model_blob.checks import check_compatibility, check_device, fixed_options
from npuw_layer.storage.model_files import WeightSources, needed_files, weight_files
from npuw_layer.storage.programs import constants_of
from npuw_layer.storage.source import SHORT
from npuw_layer.weights.bank import WeightsBank
from npuw_layer.weights.stored_weights import PART, WantedWeights


@dataclass(frozen=True, slots=True)
class Exported:
    """Content of a compiled model's file.

    Attributes:
        device: device of the programs.
        options: options of the compilation.
        programs: by name, in the order that the import expects.
        loaded: the programs among them that read weights.
        weights: weights to store in the file; None without such weights.
        bank: the bank of these weights.
        sources: the weights' files, as they were when the model was compiled.
    """

    device: Device
    options: Options
    programs: Sequence[tuple[str, bytes | memoryview]]
    loaded: Sequence[LoadedModel]
    weights: WantedWeights | None
    bank: WeightsBank
    sources: WeightSources


def export_to(
    target: str | os.PathLike[str] | BinaryIO | None, write: Callable[[BinaryIO], None]
) -> bytes | None:
    """Write a model to a file or a stream; return its bytes without a target.

    Args:
        target: a path, whose file is replaced when writing is complete; or a stream.
        write: writes the model.

    Raises:
        NpuwUsageError: the target is neither, or a stream that does not accept bytes.
        NpuwFault: the disk is full, the folder is read-only, or the path is not a regular file.
    """
    if isinstance(target, str | os.PathLike):
        path = Path(os.fsdecode(target))
        with looking_at(path, NpuwFault):
            place, _ = place_of(path)
            remove_leftovers(place.parent, lambda name: name == place.name, locks=False)
            with replacing(place) as file:
                write(file)
        return None
    if target is not None:
        write(cast(BinaryIO, _OutputStream(target)))
        return None
    whole = io.BytesIO()
    write(whole)
    return whole.getvalue()


def write_model(kind: bytes, model: Exported, file: BinaryIO) -> None:
    """Write a compiled model to a stream, as a blob of NPUW.

    Args:
        kind: a kind of ``storage.container``.
        model: the model's content.
        file: the stream.

    Raises:
        OptionError: the device's programs cannot be exported, or encrypting fails.
        ModelError: the model's files have changed since it was compiled.
        OSError: the stream fails.
    """
    manifest, programs = describe_model(model)
    write_programs(file, kind, manifest, programs, model.options.encryption)


def describe_model(model: Exported) -> tuple[ModelManifest, list[bytes | memoryview]]:
    """Return a model's manifest and its parts: its programs, and weights.

    Raises:
        OptionError: the device's programs cannot be exported.
        ModelError: the model's files have changed since it was compiled.
    """
    device, options, weights = model.device, model.options, model.weights
    check_compatibility(options)
    check_device(device, options)
    known = KnownFiles(options.cache_folder)
    programs = [program for _, program in model.programs]
    parts = [
        describe(name, program, constants_of(device, program)) for name, program in model.programs
    ]
    if weights is not None:
        programs.append(_gather(model, weights))
        parts.append(describe(PART, programs[-1], weights.spans))
    files = needed_files(model.loaded, () if weights is None else weights.infos)
    manifest = ModelManifest(
        parts=tuple(parts),
        versions=current_versions(device, options),
        options=fixed_options(options),
        files=model.sources.files.digests(files, known) if files else {},
        model=model.sources.identity(known),
    )
    return manifest, programs


def _gather(model: Exported, weights: WantedWeights) -> memoryview:
    """Return the weights as one part, from unchanged files.

    Raises:
        ModelError: the files have changed since the model was compiled.
    """
    stored = model.sources.stored
    if stored is not None and stored.layout == weights.layout:
        return stored.content
    content = weights.gather(model.bank.read)
    model.sources.files.check(
        weight_files(name for name in weights.infos if name not in (stored or ()))
    )
    return content


class _OutputStream:
    """A stream to write to.

    Args:
        stream: the caller's stream.

    Raises:
        NpuwUsageError: the object is not a stream, or is a text stream.
    """

    def __init__(self, stream: object) -> None:
        if isinstance(stream, io.TextIOBase) or not callable(getattr(stream, "write", None)):
            raise NpuwUsageError(
                f"a model cannot be exported to {SHORT.repr(stream)}; pass a path or a stream of "
                "bytes, or None to get its bytes"
            )
        self._stream = cast(BinaryIO, stream)

    def write(self, data: bytes | memoryview, /) -> int:
        """Write bytes.

        Raises:
            NpuwUsageError: the stream is closed, read-only, or does not accept bytes.
            NpuwFault: writing fails, e.g. because the disk is full.
        """
        try:
            return self._stream.write(data)
        except (TypeError, ValueError) as error:  # includes io.UnsupportedOperation
            given = SHORT.repr(self._stream)
            raise NpuwUsageError(f"a model cannot be exported to {given}: {error}") from error
        except OSError as error:
            given = SHORT.repr(self._stream)
            raise NpuwFault(f"{given}: {error.strerror or error}") from error
