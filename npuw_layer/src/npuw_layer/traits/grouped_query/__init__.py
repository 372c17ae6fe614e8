"""GroupQueryAttention of ONNX Runtime, decomposed into ops.

The trait only changes graphs (``graph``); it has no part in conversations.
"""

from npuw_layer.traits.graph_trait import GraphTrait

TRAIT = GraphTrait("grouped_query")
