"""npu-objdump: prints the content of a blob.

Examples:
    npu-objdump model.blob                 platform, versions, inputs, outputs, sizes
    npu-objdump -t model.blob              task lists of all engines, with their barriers
    npu-objdump -d model.blob              SHAVE programs, disassembled
    npu-objdump -s -r model.blob           sections and relocations
    npu-objdump --check model.blob         validity, also checked by a second ELF library
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from driver_layer.errors import BlobError
from driver_layer.loader.read import Blob, read_blob
from driver_layer.support.command import PATH, Command, run
from driver_layer.support.files import read_regular
from driver_layer.tools.objdump import check, sections, shave, tasks

View = Callable[[Blob], Iterator[str]]

_VIEWS: dict[str, tuple[str, str, View]] = {
    "metadata": ("-m", "platform, versions, inputs and outputs", sections.metadata),
    "sections": ("-s", "section table", sections.table),
    "symbols": ("-y", "symbol tables", sections.symbols),
    "relocations": ("-r", "all relocations, with symbol names", sections.relocations),
    "tasks": ("-t", "task lists, with barriers and symbolic addresses", tasks.lists),
    "barriers": ("-b", "virtual barriers", tasks.barriers),
    "disassemble": ("-d", "SHAVE programs, with the windows of their first calls", shave.programs),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0; 1 if --check found a problem; 2 if the file cannot be read.
    """
    return run(_objdump, argv)


def _view_options(function: Callable[..., int]) -> Callable[..., int]:
    for name, (short, text, _) in reversed(_VIEWS.items()):
        function = click.option(short, f"--{name}", is_flag=True, help=text)(function)
    return function


@click.command("npu-objdump", cls=Command, help=__doc__)
@click.argument("blob", type=PATH)
@_view_options
@click.option("-x", "--all", "all_views", is_flag=True, help="all views above")
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="apply the loader's rules and compare with the library LIEF; print problems, or 'ok'",
)
def _objdump(blob: Path, all_views: bool, checking: bool, **chosen: bool) -> int:
    try:
        data = read_regular(blob)
    except OSError as error:
        raise click.ClickException(f"cannot read {blob}: {error.strerror or error}") from None
    found = 0
    try:
        lines = check.deviations(data) if checking else _views(read_blob(data), all_views, chosen)
        for line in lines:
            found += 1
            print(line)
    except BlobError as error:
        raise click.ClickException(f"{blob} cannot be read as a blob: {error}") from None
    if checking and not found:
        print("ok")
    return 1 if checking and found else 0


def _views(blob: Blob, all_views: bool, chosen: Mapping[str, bool]) -> Iterator[str]:
    names = [name for name in _VIEWS if chosen[name] or all_views]
    for number, name in enumerate(names or ["metadata"]):
        if number:
            yield ""
        yield from _VIEWS[name][2](blob)
