"""Names of the inputs of Eagle's models, and of the variable that accepts candidates."""

from __future__ import annotations

HIDDEN_STATES, INTERNAL_HIDDEN_STATES = "hidden_states", "internal_hidden_states"
"""f32 [1, n, width]: what a draft takes beside ids, the target's states or its own. NPUW of 2026.4
has both as the first; before, the second was an input of its own."""

TREE_MASK = "eagle_tree_mask"
"""The input f32 or f16 [1, 1, n, stored + n]: what is added to the scores of new tokens."""

SAMPLING_RESULT = "npuw_eagle3_sampling_result"
"""The variable i64 [2 + 512]: how many candidates there were, how many of them were accepted, and
for each 1 if it was, else 0."""

MOST_CANDIDATES = 512
"""Those that the variable has room for, as in the original."""

HEADER = 2
"""The numbers before those of candidates."""
