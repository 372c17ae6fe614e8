"""LongRoPE: rotary factors that depend on the largest position of an inference.

Begin with ``trait``; ``graph`` and ``mark_long_inferences`` have the passes, ``names`` the input
that connects both.
"""

from npuw_layer.traits.long_rope.trait import TRAIT as TRAIT
