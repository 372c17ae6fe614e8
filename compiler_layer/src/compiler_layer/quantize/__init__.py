"""Weights in fewer bits: 8 or 4 with a scale per channel or group, or 16-bit floats.

The modules, from the inside out: ``linear`` is arithmetic on blocks of numbers; ``schemes`` selects
a weight's storage; ``weights`` finds the weights of a model; ``tensors`` quantizes a weight block
by block; ``rewrite`` inserts the result into the graph; ``report`` measures errors.
``activations`` finds ranges of 8-bit activations, on the tokens of ``sequences``.
"""

from compiler_layer.quantize.activations import (
    Activation,
    Range,
    calibrate,
    find_activations,
    measure_activations,
    quantize_activations,
)
from compiler_layer.quantize.floats import store_floats
from compiler_layer.quantize.report import (
    LayerReport,
    format_activations,
    format_kinds,
    format_table,
)
from compiler_layer.quantize.rewrite import measure_weights, parameters, quantize_weights
from compiler_layer.quantize.schemes import Format
from compiler_layer.quantize.sequences import built_in_sequences, read_sequences
from compiler_layer.quantize.tensors import TensorFile
from compiler_layer.quantize.weights import Weight, find_weights

__all__ = [
    "Activation",
    "Format",
    "LayerReport",
    "Range",
    "TensorFile",
    "Weight",
    "built_in_sequences",
    "calibrate",
    "find_activations",
    "find_weights",
    "format_activations",
    "format_kinds",
    "format_table",
    "measure_activations",
    "measure_weights",
    "parameters",
    "quantize_activations",
    "quantize_weights",
    "read_sequences",
    "store_floats",
]
