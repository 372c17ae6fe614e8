"""The checks of a runtime that batches: the toy passes, and wrong ones do not."""

from __future__ import annotations

import pytest
from tests.genai.batching.conftest import TABLE

from genai_layer.testing.check_batching import check_batching
from genai_layer.testing.memory_batching import BatchingCompiledModel, MemoryBatching
from genai_layer.testing.memory_runtime import MemoryCompiledModel

TOKENS = [7, 9, 11, 8, 30, 21]


def test_the_toy_passes() -> None:
    check_batching(BatchingCompiledModel(TABLE, 1 << 16), TOKENS)


def test_a_model_without_batching_fails() -> None:
    with pytest.raises(AssertionError, match="create_batching"):
        check_batching(MemoryCompiledModel(TABLE, 1 << 16), TOKENS)


def test_places_are_counted() -> None:
    class Roomy(BatchingCompiledModel):
        def create_batching(self, places: int, /) -> MemoryBatching:
            return super().create_batching(places + 1)

    with pytest.raises(AssertionError, match="three conversations ran in two places"):
        check_batching(Roomy(TABLE, 1 << 16), TOKENS)
