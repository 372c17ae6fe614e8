"""Trees of candidates, of which one path is accepted (Eagle 3).

A draft guesses several ways to go on. The target reads all of them in one step: candidates lie
side by side, and what ``eagle_tree_mask`` adds to scores lets each see none but its ancestors. Then
the caller accepts a path, and tells by ``npuw_eagle3_sampling_result`` which candidates that is;
the rows of K and V of all others go, and those that stay move together.

names           the input and the variable
graph           passes of static models: prompts have no such input, steps one of their length
tree_mask       what it is set to, and where that lies in a static model's
candidates      the tokens of the last step, and what stays of them
variable_state  the variable by which that is told
check           what trees rule out
imported_ports  the input in programs from elsewhere

Source: NPUW's Eagle 3 extension, and openvino_genai's stateful Eagle 3 pipeline for how it is used.
"""
