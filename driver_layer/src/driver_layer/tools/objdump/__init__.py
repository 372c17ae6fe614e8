"""npu-objdump: shows what is in a blob.

Examples:
    npu-objdump model.blob                 what it is: platform, versions, inputs, outputs, sizes
    npu-objdump -t model.blob              the task lists of all engines, with their barriers
    npu-objdump -d model.blob              the SHAVE programs, disassembled
    npu-objdump -s -r model.blob           sections and relocations
    npu-objdump --check model.blob         is it well-formed? a second library reads it too
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from driver_layer.errors import BlobError
from driver_layer.loader.read import Blob, read_blob
from driver_layer.regular_file import read_regular
from driver_layer.tools.objdump import check, sections, shave, tasks
from driver_layer.tools.streams import complain, run_tool

_NAME = "npu-objdump"

View = Callable[[Blob], Iterator[str]]

_VIEWS: dict[str, tuple[str, str, View]] = {
    "metadata": ("-m", "platform, versions, inputs and outputs", sections.metadata),
    "sections": ("-s", "the section table", sections.table),
    "symbols": ("-y", "the symbol tables", sections.symbols),
    "relocations": ("-r", "every relocation, by name", sections.relocations),
    "tasks": ("-t", "the task lists, with barriers and symbolic addresses", tasks.lists),
    "barriers": ("-b", "the virtual barriers", tasks.barriers),
    "disassemble": ("-d", "the SHAVE programs, with the windows of their calls", shave.programs),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0; 1 if --check found something; 2 if the file cannot be read.
    """
    return run_tool(_NAME, lambda: _run(_parser().parse_args(argv)))


def _run(options: argparse.Namespace) -> int:
    try:
        data = read_regular(options.blob)
    except OSError as error:
        return _fail(f"cannot read {options.blob}: {error.strerror or error}")
    except ValueError as error:  # a null character, say
        return _fail(f"cannot read {str(options.blob)!r}: {error}")
    try:
        lines = check.deviations(data) if options.check else _views(read_blob(data), options)
        found = 0
        for line in lines:
            found += 1
            sys.stdout.write(line + "\n")
    except BlobError as error:
        return _fail(f"{options.blob} is no blob that can be shown: {error}")
    if options.check and not found:
        sys.stdout.write("ok\n")
    return 1 if options.check and found else 0


def _fail(message: str) -> int:
    complain(_NAME, message)
    return 2


def _views(blob: Blob, options: argparse.Namespace) -> Iterator[str]:
    chosen = [name for name in _VIEWS if getattr(options, name) or options.all]
    for number, name in enumerate(chosen or ["metadata"]):
        if number:
            yield ""
        yield from _VIEWS[name][2](blob)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_NAME,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("blob", type=Path, help="the blob, e.g. what npuc wrote")
    for name, (short, text, _) in _VIEWS.items():
        parser.add_argument(short, f"--{name}", action="store_true", help=text)
    parser.add_argument("-x", "--all", action="store_true", help="all of these")
    parser.add_argument(
        "--check",
        action="store_true",
        help="apply the loader's rules, and compare with what LIEF reads; 'ok' if all is well",
    )
    return parser
