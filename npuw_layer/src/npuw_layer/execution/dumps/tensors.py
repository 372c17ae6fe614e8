"""Files of tensors: their bytes, what these are, and lists of them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from npuw_layer.backends.protocols import Array, TensorInfo
from npuw_layer.errors import ModelError, NpuwFault
from npuw_layer.options.reports import DumpOptions
from npuw_layer.storage.cache.replace import replacing


def folder_of(option: str, options: DumpOptions) -> Path:
    """Make NPUW_DUMP_SUBS_DIR, and give it.

    Raises:
        NpuwFault: it cannot be made.
    """
    folder = Path(options.dump_subs_dir or ".").expanduser().absolute()
    with reported(option, folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def indexed(name: str, number: int, count: int) -> str:
    """Name one of several; numbers have as many digits as the largest, so that names sort."""
    return f"{name}_{number:0{len(str(count - 1))}}"


def write_tensors(base: Path, side: str, tensors: Sequence[tuple[TensorInfo, Array]]) -> None:
    """Write tensors, and a list of their files, parted by ";".

    Args:
        base: begins the names of all files.
        side: "input" or "output".
        tensors: their bytes, u8.

    Raises:
        NpuwFault: a file cannot be written.
    """
    names: list[str] = []
    for number, (info, data) in enumerate(tensors):
        name = indexed(f"{base.name}_{side}", number, len(tensors))
        shape = ",".join(map(str, info.shape))
        _write(base.with_name(f"{name}.bin"), data.tobytes())
        _write(base.with_name(f"{name}.txt"), f"{info.element} [{shape}] {info.name}\n".encode())
        names.append(f"{name}.bin")
    _write(base.with_name(f"{base.name}_{side[0]}list.txt"), ";".join(names).encode())


def _write(path: Path, content: bytes) -> None:
    with reported("NPUW_DUMP_IO", path), replacing(path) as file:
        file.write(content)


@contextmanager
def reported(option: str, path: Path) -> Generator[None]:
    """Say which option wanted what cannot be written.

    Raises:
        NpuwFault: the file system refuses it.
        ModelError: OpenVINO has no such op.
    """
    from compiler_layer.errors import CompilerError

    try:
        yield
    except OSError as error:
        raise NpuwFault(f"{option}: {path}: {error.strerror}") from None
    except CompilerError as error:
        raise ModelError(f"{option}: {path}: {error}") from error
