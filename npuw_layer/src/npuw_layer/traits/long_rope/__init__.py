"""LongRoPE: rotary factors that depend on how far an inference reaches.

Begin with ``trait``; ``long_rope`` has the graph's side, ``names`` the input between both.
"""

from npuw_layer.traits.long_rope.trait import TRAIT as TRAIT
