"""Weight files of a blob without weights: files of the blob's source model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from driver_layer.support.files import looking_at
from npuw_layer.errors import ModelError, OptionError
from npuw_layer.options import Options
from npuw_layer.storage.cache.known_files import KnownFiles
from npuw_layer.storage.cache.model_digest import digest_files
from npuw_layer.storage.model_files import ModelFiles


def verified_weights(
    digests: Mapping[str, str], options: Options, model: Path | None
) -> ModelFiles:
    """Find the weight files, and verify their digests.

    Args:
        digests: SHA-256 of each file, by name.
        options: options that locate the files.
        model: the source model; None if it is not available.

    Raises:
        OptionError: no option locates the files.
        ModelError: files are missing, or have other digests.
    """
    files = named_weights(digests, options, model)
    paths = [files.folder / name for name in digests]
    for name, digest in digest_files(paths, known_files(options)).items():
        if digest != digests[name]:
            raise ModelError(
                f"{files.folder / name} differs from the file at the blob's compilation"
            )
    return files


def named_weights(names: Iterable[str], options: Options, model: Path | None) -> ModelFiles:
    """Find the weight files by name, without a check of their content.

    Raises:
        OptionError: no option locates the files.
        ModelError: files are missing.
    """
    wanted = list(names)
    if not wanted:
        return ModelFiles(Path(), {})
    place = options.weights_path or options.model_ptr or model
    if not place:
        raise OptionError(
            f"the blob contains no weights ({', '.join(wanted)}); set WEIGHTS_PATH to the model's "
            "weights, or MODEL_PTR to the model"
        )
    path = Path(place).expanduser()
    with looking_at(path, ModelError):
        folder = path if path.is_dir() else path.parent
        is_file = path.is_file()
    if options.weights_path and is_file and path.name not in wanted:
        raise ModelError(
            f"WEIGHTS_PATH {path}: the blob was compiled from {', '.join(wanted)}; pass that file "
            "or its folder"
        )
    return ModelFiles.look([folder / name for name in wanted], folder)


def known_files(options: Options) -> KnownFiles:
    """Return the known digests in the cache's folder; without a folder, none are stored."""
    return KnownFiles(options.cache_folder)
