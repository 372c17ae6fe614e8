"""Images among the tokens: their features (DeepStack), their types, rows for each layer.

Begin with ``trait``; ``visual_rows`` has features as the caller gives them, ``deepstack`` the
graph's side, ``names`` the inputs.
"""

from npuw_layer.traits.images.trait import TRAIT as TRAIT
