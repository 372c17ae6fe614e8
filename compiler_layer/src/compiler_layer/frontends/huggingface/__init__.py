"""Hugging Face folders: ``config.json`` with ``*.safetensors``; begin with ``read``.

config, families, rope        a config, as the description of a ``decoder``
safetensors, weights, sample  tensors of a checkpoint; a sample with invented weights instead
blocks                        the parts of a decoder as ops
"""

from compiler_layer.frontends.huggingface.read import read_folder

__all__ = ["read_folder"]
