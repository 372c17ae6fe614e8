"""Images among the tokens: features (DeepStack), token types, and embeddings for each layer.

Begin with ``trait``, which has the inputs and the caller's features; ``deepstack`` has the graph's
side.
"""

from npuw_layer.traits.images.trait import TRAIT as TRAIT
