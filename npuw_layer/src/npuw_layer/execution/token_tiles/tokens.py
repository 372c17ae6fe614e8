"""Which rows of a static model hold tokens, and not padding.

The attention mask tells, as in the original: no one needs to be told anything else. Its last
columns are those of the model's new tokens, wherever these stand among them: padding may be on
either side. The original compares rows with columns from the first one on, so of chunks, whose
masks are longer, it leaves out tiles with tokens.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.protocols import READ_PREFIX, Array, TensorInfo
from npuw_layer.tensors.names import MASK, VOCABULARY
from npuw_layer.tensors.token_inputs import TOKENS, of_tokens

_log = logging.getLogger(__name__)

_NO_ROWS = (READ_PREFIX, WEIGHT_PREFIX, VOCABULARY)


def find_mask(inputs: Sequence[TensorInfo], rows: int) -> TensorInfo | None:
    """Find the input that tells which of so many rows hold tokens.

    Args:
        inputs: of a whole static model.
        rows: of a part of it.

    Returns:
        The mask [1, columns], or None: there is none, or the rows may be those of something else
        than the new tokens.
    """
    by_name = {info.name: info for info in inputs}
    mask = by_name.get(MASK)
    if mask is None or len(mask.shape) != 2 or mask.element not in ELEMENT_TYPES:
        return None
    tokens = [by_name[name].shape[:2] for name in TOKENS if name in by_name]
    if tokens != [(1, rows)] or mask.shape[0] != 1 or mask.shape[1] < rows:
        return None
    others = [i for i in inputs if i.name not in of_tokens() and not i.name.startswith(_NO_ROWS)]
    alike = next((info.name for info in others if rows in info.shape), None)
    if alike is not None:
        _log.info("NPUW_SPATIAL_DYN: %s has as many rows as there are tokens: all run", alike)
        return None
    return mask


def used_rows(mask: Array, rows: int) -> range:
    """Tell from which row to which there are tokens; a mask of zeros tells nothing.

    Args:
        mask: [1, columns].
        rows: as many as its last columns.
    """
    used = np.flatnonzero(mask[0, mask.shape[1] - rows :])
    return range(int(used[0]), int(used[-1]) + 1) if used.size else range(rows)
