"""What the inputs and outputs of a tile's program are called, and the numbers that stand for none.

Nothing here loads graphs: a warm start has no use for them.
"""

from __future__ import annotations

QUERY, KEYS, VALUES, MASK = "q", "k", "v", "mask"
KEYS_SCALES, VALUES_SCALES = "k_scales", "v_scales"

STORED = (KEYS, KEYS_SCALES, VALUES, VALUES_SCALES)
"""What a tile reads of a cache; scales only if rows have 8 bits."""

CARRIED = ("weights_in", "total_in", "highest_in")
"""What comes from the tile before, all f32: by row, [heads, group, tokens, 1], the sum of weights;
the weighted sum of values [heads, group, tokens, width]; and by row the largest score."""

RESULT = ("weights", "total", "highest")
"""The same for the next tile; in this order, what is made of scores becomes one kernel."""

OUTPUT = "output"
"""What the last program gives."""

LOWEST = -1e30
"""What masks add to scores of positions that are not attended to: no score counts beside it, and no
sum with a score leaves f32."""

NOTHING = -2e30
"""The largest score where none was found yet; e to the power of its distance to any is 0."""
