"""Model and shape arguments of commands."""

from __future__ import annotations

import fnmatch
import io
from collections.abc import Sequence
from pathlib import Path

import click

from compiler_layer.dialects.ov.types import Shape
from compiler_layer.errors import CompilerUsageError
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.model import Model
from compiler_layer.passes.dense_experts import DenseExperts
from compiler_layer.passes.specialize_shapes import SpecializeShapes
from compiler_layer.pipeline import Options, run_passes
from compiler_layer.rewriting.shapes import parse_shapes
from driver_layer.support.command import PATH
from driver_layer.support.files import looking_at, open_regular

IR_NAME = "openvino_model.xml"
"""File name of the IR in a model folder."""


model_argument = click.argument("model", type=PATH, metavar="MODEL[.xml|.mlir]")
"""Argument that names a model: a folder or a file."""

shape_option = click.option(
    "--shape",
    multiple=True,
    metavar="NAME=1x128",
    help="static shape of inputs or variables; NAME may be a pattern; may be repeated",
)
"""Option that sets static shapes of inputs."""


def read_model(path: Path) -> Model:
    """Read a model in any of its forms.

    Raises:
        CompilerUsageError: the file does not exist, or cannot be read.
        CompilerInputError: the frontend rejects the model.
    """
    ir = path / IR_NAME
    with looking_at(path, CompilerUsageError):
        if not path.exists():
            raise CompilerUsageError(f"{path}: no such file or folder")
        is_folder = path.is_dir()
        has_ir = is_folder and ir.exists()
    if is_folder:
        return read_ir(ir) if has_ir else read_folder(path)
    if path.suffix == ".mlir":
        return _read_text(path)
    return read_ir(path)


def _read_text(path: Path) -> Model:
    with (
        looking_at(path, CompilerUsageError),
        io.TextIOWrapper(open_regular(path), "utf-8", errors="replace") as file,
    ):
        text = file.read()
    return Model.parse(text, str(path))


def specialize(model: Model, given: Sequence[str]) -> None:
    """Make a model static in place, if any shapes are given.

    Raises:
        CompilerUsageError: a pattern matches nothing, or a shape is missing or does not fit.
    """
    if given:
        wanted = [SpecializeShapes(matching_shapes(model, given)), DenseExperts()]
        run_passes(model, wanted, Options())


def matching_shapes(model: Model, given: Sequence[str]) -> str:
    """Return the shapes of inputs and variables in the passes' form: ``name=1x128,…``.

    Args:
        model: model with these inputs and variables.
        given: ``NAME=1x128``; names may be patterns.

    Raises:
        CompilerUsageError: a pattern matches nothing, or a shape is invalid.
    """
    names = [port.name for port in model.inputs]
    names += [variable.name for variable in model.variables() if variable.read is not None]
    shapes: dict[str, Shape] = {}
    for pattern, shape in parse_shapes(",".join(given)).items():
        matching = fnmatch.filter(names, pattern)
        if not matching:
            known = ", ".join(names[:8])
            raise CompilerUsageError(f"no input or variable {pattern!r}; the model has {known} …")
        shapes |= dict.fromkeys(matching, shape)
    return ",".join(f"{name}={'x'.join(map(str, shape))}" for name, shape in shapes.items())
