"""The checks of a runtime that batches: the toy passes, and wrong ones do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future

import pytest
from tests.genai.batching.conftest import TABLE

from genai_layer.runtime import Array
from genai_layer.testing.check_batching import check_batching
from genai_layer.testing.memory_batching import (
    BatchingCompiledModel,
    MemoryBatching,
    MemoryConversation,
)
from genai_layer.testing.memory_runtime import MemoryCompiledModel, MemoryRequest

TOKENS = [7, 9, 11, 8, 30, 21]


def batching_with(kind: type[MemoryBatching]) -> BatchingCompiledModel:
    """Return a model that creates batchings of a kind."""

    class Model(BatchingCompiledModel):
        def create_batching(self, places: int, /) -> MemoryBatching:
            return kind(self, places)

    return Model(TABLE, 1 << 16)


def test_the_toy_passes() -> None:
    check_batching(BatchingCompiledModel(TABLE, 1 << 16), TOKENS)


def test_a_model_without_batching_fails() -> None:
    with pytest.raises(AssertionError, match="create_batching"):
        check_batching(MemoryCompiledModel(TABLE, 1 << 16), TOKENS)


def test_logits_are_compared() -> None:
    class Other(MemoryBatching):
        def open(self) -> MemoryConversation:
            conversation = MemoryConversation(MemoryRequest(-TABLE, 1 << 16))
            self._conversations.append(conversation)
            return conversation

    with pytest.raises(AssertionError, match="beside another: logits differ"):
        check_batching(batching_with(Other), TOKENS)


def test_no_tokens_have_to_be_rejected() -> None:
    class Accepts(MemoryConversation):
        def submit(self, ids: Sequence[int], keep: int | None = None, /) -> Future[Array]:
            return super().submit(ids or TOKENS, keep)

    class Accepting(MemoryBatching):
        def open(self) -> MemoryConversation:
            conversation = Accepts(self._compiled.create_infer_request())
            self._conversations.append(conversation)
            return conversation

    with pytest.raises(AssertionError, match="no tokens were accepted"):
        check_batching(batching_with(Accepting), TOKENS)


def test_places_are_counted() -> None:
    class Roomy(BatchingCompiledModel):
        def create_batching(self, places: int, /) -> MemoryBatching:
            return super().create_batching(places + 1)

    with pytest.raises(AssertionError, match="three conversations ran in two places"):
        check_batching(Roomy(TABLE, 1 << 16), TOKENS)


def test_copies_have_places() -> None:
    class Waits(MemoryConversation):
        def copy_from(self, other: MemoryConversation, /) -> None:
            super().copy_from(other)
            self.is_copy = False

    class Waiting(MemoryBatching):
        def open(self, adapter: Mapping[str, Array] = {}, /) -> MemoryConversation:
            del adapter
            conversation = Waits(self._compiled.create_infer_request())
            self._conversations.append(conversation)
            return conversation

    with pytest.raises(AssertionError, match="tokens were not read in 100 steps"):
        check_batching(batching_with(Waiting), TOKENS)
