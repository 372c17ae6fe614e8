"""Images among the tokens: features (DeepStack), token types, and embeddings for each layer.

Begin with ``trait``; ``visual_rows`` has the caller's features, ``deepstack`` the graph's side,
``names`` the inputs.
"""

from npuw_layer.traits.images.trait import TRAIT as TRAIT
