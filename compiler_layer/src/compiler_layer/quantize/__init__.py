"""Weights in fewer bits: 8 or 4 with a scale per channel or group, or floats of 16.

The pieces, from the inside out: ``linear`` is arithmetic on blocks of numbers; ``schemes`` decides
what a weight becomes; ``weights`` finds the weights of a model; ``tensors`` takes one through the
arithmetic; ``rewrite`` puts the result into the graph; ``report`` says what it cost.
"""

from compiler_layer.quantize.floats import store_floats
from compiler_layer.quantize.report import LayerReport, format_table
from compiler_layer.quantize.rewrite import measure_weights, parameters, quantize_weights
from compiler_layer.quantize.schemes import Format
from compiler_layer.quantize.tensor_file import TensorFile
from compiler_layer.quantize.weights import Weight, find_weights

__all__ = [
    "Format",
    "LayerReport",
    "TensorFile",
    "Weight",
    "find_weights",
    "format_table",
    "measure_weights",
    "parameters",
    "quantize_weights",
    "store_floats",
]
