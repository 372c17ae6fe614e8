"""Rows of a static model that hold tokens, not padding.

The attention mask marks these rows, as in NPUW, so no other input is needed. Its last columns are
those of the model's new tokens, with padding on either side. NPUW compares rows with columns from
the first one on; in chunks, whose masks are longer, it therefore skips tiles with tokens.
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
    """Find the mask of a model's rows that hold tokens.

    Args:
        inputs: inputs of a static model.
        rows: rows of a part of the model.

    Returns:
        The mask [1, columns]; None without one, or if the rows may differ from those of the new
        tokens.
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
        _log.info(
            "NPUW_SPATIAL_DYN: %s has as many rows as the model has tokens: no tile is skipped",
            alike,
        )
        return None
    return mask


def used_rows(mask: Array, rows: int) -> range:
    """Return the range of rows from the first token to the last; all rows if the mask is zero.

    Args:
        mask: [1, columns].
        rows: number of rows, which are the mask's last columns.
    """
    used = np.flatnonzero(mask[0, mask.shape[1] - rows :])
    return range(int(used[0]), int(used[-1]) + 1) if used.size else range(rows)
