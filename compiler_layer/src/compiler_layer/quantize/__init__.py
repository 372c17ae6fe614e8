"""Weights in fewer bits: 8 or 4 with a scale per channel or group, or floats of 16.

The pieces, from the inside out: ``linear`` is arithmetic on blocks of numbers; ``schemes`` decides
what a weight becomes; ``weights`` finds the weights of a model; ``tensors`` takes one through the
arithmetic; ``rewrite`` puts the result into the graph; ``report`` says what it cost. Ranges of
activations in 8 bits are found by ``activations``, on the tokens of ``sequences``.
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
from compiler_layer.quantize.report import LayerReport, format_activations, format_table
from compiler_layer.quantize.rewrite import measure_weights, parameters, quantize_weights
from compiler_layer.quantize.schemes import Format
from compiler_layer.quantize.sequences import built_in_sequences, read_sequences
from compiler_layer.quantize.tensor_file import TensorFile
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
    "format_table",
    "measure_activations",
    "measure_weights",
    "parameters",
    "quantize_activations",
    "quantize_weights",
    "read_sequences",
    "store_floats",
]
