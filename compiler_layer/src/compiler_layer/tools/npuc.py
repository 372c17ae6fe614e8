"""``npuc``: compiles models from the command line, and shows what the passes do to them."""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from compiler_layer.dialects.ov.types import Shape
from compiler_layer.errors import CompilerError, CompilerUsageError
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.model import Model
from compiler_layer.passes.adjust_precision import PRECISIONS
from compiler_layer.passes.specialize_shapes import parse_shapes
from compiler_layer.pipeline import Options, compile_model, passes, run_passes
from driver_layer.abi.platforms import DEFAULT_PLATFORM, PLATFORMS

_EPILOG = """\
A model is an openvino_model.xml, a Hugging Face folder, or IR as text (.mlir): what --stop-after
printed can be compiled on from there.

An NPU needs static shapes. Names may be patterns; variables go by their id:

  npuc compile models/demo -o prefill.blob \\
      --shape input_ids=1x128 --shape attention_mask=1x128 --shape position_ids=1x128 \\
      --shape beam_idx=1 --shape 'past_key_values.*=1x4x0x32'

  npuc compile models/demo --stop-after lift-state ...     the graph as a pure function
  npuc compile models/demo --print-ir-after tile ...       what each op is cut into
  npuc passes                                              the passes in order
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; give the exit code: 2 for wrong usage and bad models."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        return arguments.run(arguments)
    except CompilerError as error:
        print(f"npuc: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has seen enough; what is still buffered must not raise at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="npuc",
        description="Compiles stateful OpenVINO LLM graphs into static NPU blobs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    listing = commands.add_parser("passes", help="list the passes in order, with what they do")
    listing.set_defaults(run=_list_passes)
    command = commands.add_parser(
        "compile",
        help="compile a model to a blob, or as far as a pass",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("model", type=Path, help=".xml, Hugging Face folder, or .mlir")
    command.add_argument("-o", "--output", type=Path, help="the blob; MODEL.blob if not given")
    command.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1x128",
        help="static shape of an input or variable; may be repeated",
    )
    command.add_argument("--precision", choices=PRECISIONS, default="f16", help="of activations")
    command.add_argument("--platform", choices=list(PLATFORMS), default=DEFAULT_PLATFORM)
    command.add_argument("--tiles", type=int, default=0, help="NCE tiles to use; 0: up to four")
    command.add_argument("--print-ir-after", action="append", default=[], metavar="PASS")
    command.add_argument("--print-ir-after-all", action="store_true")
    command.add_argument("--stop-after", metavar="PASS", help="print the IR and compile no further")
    command.set_defaults(run=_compile)
    return parser


def _list_passes(arguments: argparse.Namespace) -> int:
    del arguments
    for each in passes(Options()):
        print(f"{each.name:<20} {(type(each).__doc__ or '').splitlines()[0]}")
    return 0


def _compile(arguments: argparse.Namespace) -> int:
    began = time.perf_counter()
    _check_passes([*arguments.print_ir_after, *filter(None, [arguments.stop_after])])
    path: Path = arguments.model
    model = _read(path)
    model.set_input_shapes(_shapes(model, arguments.shape))
    options = Options(arguments.precision, arguments.platform, arguments.tiles, verify_each=True)
    printer = _Printer(arguments)
    if arguments.stop_after:
        wanted = passes(options)
        last = [each.name for each in wanted].index(arguments.stop_after)
        run_passes(model, wanted[: last + 1], options, printer)
        return 0
    blob = compile_model(model, options, path.stem, printer)
    output: Path = arguments.output or Path(path.stem + ".blob")
    _write(output, blob)
    seconds = time.perf_counter() - began
    print(f"{output}: {len(blob):,} bytes in {seconds:.2f} s", file=sys.stderr)
    return 0


class _Printer:
    """Prints the IR after the passes that were asked for."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._all = arguments.print_ir_after_all
        self._wanted = {*arguments.print_ir_after, arguments.stop_after}

    def __call__(self, name: str, model: Model) -> None:
        if self._all or name in self._wanted:
            print(f"// IR after {name}\n{model.text()}")


def _check_passes(names: Sequence[str]) -> None:
    known = [each.name for each in passes(Options())]
    for name in names:
        if name not in known:
            raise CompilerUsageError(f"no pass {name!r}; there are {', '.join(known)}")


def _read(path: Path) -> Model:
    if not path.exists():
        raise CompilerUsageError(f"{path}: no such file or folder")
    if path.is_dir():
        ir = path / "openvino_model.xml"
        return read_ir(ir) if ir.exists() else read_folder(path)
    if path.suffix == ".mlir":
        return Model.parse(path.read_text(errors="replace"), str(path))
    return read_ir(path)


def _shapes(model: Model, given: Sequence[str]) -> Mapping[str, Shape]:
    """Give every input and variable that a pattern names its shape.

    Raises:
        CompilerUsageError: a pattern names nothing.
    """
    names = [port.name for port in model.inputs]
    names += [variable.name for variable in model.variables() if variable.read is not None]
    shapes: dict[str, Shape] = {}
    for pattern, shape in parse_shapes(",".join(given)).items():
        matching = fnmatch.filter(names, pattern)
        if not matching:
            known = ", ".join(names[:8])
            raise CompilerUsageError(f"no input or variable {pattern!r}; there are {known} …")
        shapes |= dict.fromkeys(matching, shape)
    return shapes


def _write(path: Path, blob: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        CompilerUsageError: it cannot be written.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(blob)
        Path(file.name).replace(path)
    except OSError as error:
        raise CompilerUsageError(f"{path}: {error.strerror}") from None
