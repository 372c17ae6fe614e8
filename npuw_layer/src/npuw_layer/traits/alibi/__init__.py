"""ALiBi: biases of attention by distance, looked up by cache position.

The trait changes graphs alone; a conversation has no part of it.
"""

from npuw_layer.llm.trait import Trait

TRAIT = Trait("alibi")
