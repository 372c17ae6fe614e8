"""Names of the inputs of Eagle's models, and of the variable by which candidates are accepted."""

from __future__ import annotations

HIDDEN_STATES, INTERNAL_HIDDEN_STATES = "hidden_states", "internal_hidden_states"
"""Inputs f32 [1, n, width] of a draft in addition to ids: the target's hidden states, or the
draft's own. NPUW of 2026.4 uses the first for both; before, the second was a separate input."""

TREE_MASK = "eagle_tree_mask"
"""Input f32 or f16 [1, 1, n, stored + n], added to the scores of new tokens."""

SAMPLING_RESULT = "npuw_eagle3_sampling_result"
"""Variable i64 [2 + 512]: the number of candidates, the number of accepted ones, and for each
candidate 1 if accepted, else 0."""

MOST_CANDIDATES = 512
"""Maximum candidates in the variable, as in NPUW."""

HEADER = 2
"""Number of elements before those of candidates."""
