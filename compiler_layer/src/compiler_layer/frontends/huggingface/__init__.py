"""Hugging Face folders: ``config.json`` with a safetensors checkpoint; begin with ``read``.

config, families              a config, as the description of a ``decoder``
rope_values, rope             its rotary embeddings: where values stand, what they mean
safetensors, weights, sample  tensors of a checkpoint; a sample with invented weights instead
blocks                        the parts of a decoder as ops
"""

from compiler_layer.frontends.huggingface.read import read_folder

__all__ = ["read_folder"]
