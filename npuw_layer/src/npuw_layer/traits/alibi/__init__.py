"""ALiBi: attention biases by distance, looked up by token index.

The trait only changes graphs (``graph``); it has no part in conversations.
"""

from npuw_layer.traits.graph_trait import GraphTrait

TRAIT = GraphTrait("alibi")
