"""Trees of candidate tokens, of which one path is accepted (Eagle 3).

A draft model proposes several continuations. The target reads all of them in one step: candidates
are side by side, and ``eagle_tree_mask``, added to the scores, restricts each to attend to its
ancestors. Then the caller accepts a path by setting ``npuw_eagle3_sampling_result``: the rows of K
and V of all other candidates are dropped, and the remaining rows move together.

trait           the trait, with checks of options and imported programs: begin here
names           names of the inputs and the variable
graph           passes for the mask in static models
tree_mask       the caller's mask, and its place in a static model's mask
candidates      candidates of the last step, and the variable by which a caller accepts a path

Source: NPUW's Eagle 3 extension, and its use in openvino_genai's stateful Eagle 3 pipeline.
"""

from npuw_layer.traits.trees.trait import TRAIT as TRAIT
