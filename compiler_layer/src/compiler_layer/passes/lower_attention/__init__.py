"""The ``lower-attention`` pass; begin with ``lower``.

of_sequence  one sequence of a batch, read directly from its cache
narrow_rows  keys and values that are stored in fewer bits
mask_reach   number of positions that a mask lets each row attend to
"""

from compiler_layer.passes.lower_attention.lower import LowerAttention, attention_refusal

__all__ = ["LowerAttention", "attention_refusal"]
