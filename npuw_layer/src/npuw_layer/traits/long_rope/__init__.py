"""LongRoPE: rotary factors that depend on the largest position of an inference.

Begin with ``trait``, which has the input that marks long inferences; ``graph`` has the passes.
"""

from npuw_layer.traits.long_rope.trait import TRAIT as TRAIT
