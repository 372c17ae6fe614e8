"""Array types of the lowering, and the grouping of equal rows."""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_WIDEST = 256
_FACTORS: Ints = np.array([secrets.randbits(63) | 1 for _ in range(_WIDEST)], np.int64)
"""Random in each process, so that no blob can be crafted whose rows collide."""


def equal_rows(rows: Ints) -> tuple[Ints, Ints]:
    """Group the rows of a table.

    Args:
        rows: [n, columns], at most 256 columns.

    Returns:
        Index of each group's first row, ascending, and the group of each row.
    """
    with np.errstate(over="ignore"):
        hashes = rows @ _FACTORS[: rows.shape[1]]
        hashes ^= hashes >> 29
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    if not np.array_equal(rows, rows[first[group]]):  # hashes collide
        _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        group = group.reshape(-1)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[group]
