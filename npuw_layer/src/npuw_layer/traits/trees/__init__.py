"""Trees of candidates, of which one path is accepted (Eagle 3).

A draft guesses several ways to go on. The target reads all of them in one step: candidates lie
side by side, and ``eagle_tree_mask``, added to the scores, lets each attend to its ancestors alone.
Then the caller accepts a path, and names its candidates by ``npuw_eagle3_sampling_result``: the
rows of K and V of all others go, and the rows that stay move together.

trait           the trait's record: begin here
names           the inputs and the variable
graph           the mask in static models
tree_mask       the mask of the caller, and its place in a static model's
candidates      the tokens of the last step, and the ones that are accepted
variable_state  the variable by which a caller accepts a path
check           options that trees rule out
imported_ports  checks of programs from elsewhere

Source: NPUW's Eagle 3 extension, and openvino_genai's stateful Eagle 3 pipeline for how it is used.
"""

from npuw_layer.traits.trees.trait import TRAIT as TRAIT
