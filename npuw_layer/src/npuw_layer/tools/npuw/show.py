"""``npuw show`` and ``npuw extract``, which inspect a compiled model."""

from __future__ import annotations

from pathlib import Path

import click

from driver_layer.support.command import PATH, Command

_SHOW_EXAMPLES = """\
  npuw show model.blob                     contents of a blob, also of OpenVINO's plugin
  npuw show model.blob --json | jq .openvino

FILE is an exported model, or a file of CACHE_DIR. Only the shown contents are verified. A native
blob (a static model for the NPU itself) begins with an ELF, which readelf, npu-objdump and npuc
explain read in place.
"""

_EXTRACT_EXAMPLES = """\
  npuw extract model.blob blobs            an exported model: a file for each static model
  npuw extract cache/1f0c….blob blobs      an entry of CACHE_DIR
  npuc explain blobs/generate_256.blob     the tasks of such a program

FOLDER is created if missing. A program is an ELF file, which readelf, npu-objdump and npuc explain
read.
"""


@click.command("show", cls=Command, epilog=_SHOW_EXAMPLES)
@click.argument("file", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="print a JSON object")
def show_command(file: Path, as_json: bool) -> int:
    """Show the contents of a blob."""
    # Imported here: other commands do not need the readers of blobs.
    from npuw_layer.tools.npuw.blobs import show_blob

    return show_blob(file, as_json)


@click.command("extract", cls=Command, epilog=_EXTRACT_EXAMPLES)
@click.argument("file", type=PATH)
@click.argument("folder", type=PATH)
def extract_command(file: Path, folder: Path) -> int:
    """Extract the programs of a compiled model."""
    from npuw_layer.tools.npuw.blobs import extract_programs

    return extract_programs(file, folder)
