"""What trees of candidates come in by, and how it is told what became of them."""

from __future__ import annotations

TREE_MASK = "eagle_tree_mask"
"""The input f32 or f16 [1, 1, n, stored + n]: what is added to the scores of new tokens."""

SAMPLING_RESULT = "npuw_eagle3_sampling_result"
"""The variable i64 [2 + 512]: how many candidates there were, how many of them were accepted, and
for each 1 if it was, else 0."""

MOST_CANDIDATES = 512
"""Those that the variable has room for, as in the original."""

HEADER = 2
"""The numbers before those of candidates."""
