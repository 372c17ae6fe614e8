"""Attention of ONNX Runtime (GroupQueryAttention), taken apart into its ops.

The trait changes graphs alone; a conversation has no part of it.
"""

from npuw_layer.llm.trait import Trait

TRAIT = Trait("grouped_query")
