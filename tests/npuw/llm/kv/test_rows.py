"""Token of each cache row: KVRows, compared with a simple list."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from npuw_layer.llm.kv.copies import RowCopy, copy_kvcache
from npuw_layer.llm.kv.kv_rows import KVRows

ROWS, WINDOW, SINKS = 24, 20, 3


class RowsMachine(RuleBasedStateMachine):
    """Expected token of each row, and the rows that were ever written."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = KVRows(ROWS, WINDOW, SINKS)
        self.kept: list[int] = []
        self.written: set[int] = set()

    @rule(count=st.integers(1, 4))
    def place(self, count: int) -> None:
        """Place new tokens, which replace the oldest ones that are not sinks."""
        free = WINDOW - len(self.kept)
        begin = self.rows.tokens
        target = self.rows.place(count)
        places = range(target, target + count) if isinstance(target, int) else target.tolist()
        assert len(set(places)) == count
        self.written |= set(places)
        for _ in range(max(count - free, 0)):
            self.kept.remove(next(token for token in self.kept if token >= SINKS))
        self.kept += range(begin, begin + count)

    @precondition(lambda self: self.rows.plain)
    @rule(count=st.integers(1, 6), padding=st.integers(0, 3))
    def append(self, count: int, padding: int) -> None:
        """Append new tokens that a program wrote itself, with padding after them."""
        begin = self.rows.tokens
        if begin + count + padding > WINDOW:
            return
        self.rows.expect(count + padding)
        self.rows.append(count)
        self.written |= set(range(begin, begin + count + padding))
        self.kept += range(begin, begin + count)

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        tokens = int(self.rows.tokens * share)
        self.rows.truncate(tokens)
        self.kept = [token for token in self.kept if token < tokens]

    @rule(rows=st.integers(0, ROWS))
    def take_forgotten(self, rows: int) -> None:
        """Return exactly the rows that were written and are unused, once."""
        used = set(self.rows.order().tolist())
        expected = {row for row in self.written - used if row < rows}
        found = self.rows.forgotten(rows)
        assert set(found.tolist()) == expected
        self.rows.clean(found)
        self.written -= expected

    @invariant()
    def holds_what_it_should(self) -> None:
        assert self.rows.stored == len(self.kept)
        mask = np.arange(1, self.rows.tokens + 1)
        columns = self.rows.columns(mask, ROWS)
        assert columns[self.rows.order()].tolist() == [token + 1 for token in self.kept]
        assert np.count_nonzero(columns) == len(self.kept)
        for token in range(-1, self.rows.tokens + 1):
            assert self.rows.holds(token) == (token in self.kept)
        if self.rows.plain:
            assert self.rows.order().tolist() == self.kept == list(range(self.rows.tokens))


RowsMachine.TestCase.settings = settings(max_examples=18, stateful_step_count=30, deadline=None)
TestRows = RowsMachine.TestCase


@given(st.data())
def test_rows_are_copied_only_to_their_targets(data) -> None:
    """Small copies and copies on several threads, of contiguous or single rows."""
    variables, width = data.draw(st.integers(1, 5)), data.draw(st.sampled_from([4, 1 << 13]))
    rows = data.draw(st.integers(1, 9))
    present = np.random.default_rng(0).standard_normal((variables, 12, 2, width))
    past = np.zeros((variables, ROWS, 2, width))
    if data.draw(st.booleans()):
        target: int | np.ndarray = data.draw(st.integers(0, ROWS - rows))
        places = list(range(target, target + rows))
    else:
        places = data.draw(st.permutations(range(ROWS)))[:rows]
        target = np.array(places)
    assert copy_kvcache([present], [past], RowCopy(rows, target)) == present[:, :rows].nbytes
    assert np.array_equal(past[:, places], present[:, :rows])
    others = [row for row in range(ROWS) if row not in places]
    assert not past[:, others].any()
