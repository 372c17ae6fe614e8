"""Files of tensors: their bytes, their types, and lists of them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from npuw_layer.backends.protocols import Array, TensorInfo
from npuw_layer.errors import ModelError, NpuwFault
from npuw_layer.options.reports import DumpOptions
from npuw_layer.storage.cache.replace import replacing


def folder_of(option: str, options: DumpOptions) -> Path:
    """Return NPUW_DUMP_SUBS_DIR; create it if missing.

    Raises:
        NpuwFault: it cannot be created.
    """
    folder = Path(options.dump_subs_dir or ".").expanduser().absolute()
    with reported(option, folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def indexed(name: str, number: int, count: int) -> str:
    """Return the name of one of several; numbers are zero-padded, so that names sort."""
    return f"{name}_{number:0{len(str(count - 1))}}"


def write_tensors(base: Path, side: str, tensors: Sequence[tuple[TensorInfo, Array]]) -> None:
    """Write tensors, and a list of their files, separated by ";".

    Args:
        base: prefix of all file names.
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
    """Convert errors of writing a file into errors that name the option.

    Raises:
        NpuwFault: the file cannot be written.
        ModelError: OpenVINO lacks an op of the graph.
    """
    from compiler_layer.errors import CompilerError

    try:
        yield
    except OSError as error:
        raise NpuwFault(f"{option}: {path}: {error.strerror}") from None
    except CompilerError as error:
        raise ModelError(f"{option}: {path}: {error}") from error
