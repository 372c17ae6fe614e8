"""Signals whose handlers raise, like Ctrl-C's, at any moment of an inference.

Only the inference ends: the conversation continues from its state, and no thread waits for ever.
"""

from __future__ import annotations

import random
import time
from functools import partial

import numpy as np
import pytest
from tests.torn import alarm

from npuw_layer import Core
from npuw_layer.batching.slots import SlotModel
from npuw_layer.errors import RequestError
from npuw_layer.llm.kv import kv_cache
from npuw_layer.llm.kv.block_cache import cache as block_cache

COPIED = {"NPUW_LLM_KV_SWITCHOVER": "COPY"}
BLOCKS = {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES", "NPUW_LLM_PREFILL_CHUNK_SIZE": 32}
PROMPT = np.arange(70) * 7 % 97


class Stop(Exception):
    """Exception of a handler that is not a KeyboardInterrupt."""


@pytest.mark.matrix
@pytest.mark.parametrize("options", [{}, COPIED | BLOCKS], ids=["ZERO_COPY", "copied, in blocks"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, Stop, TimeoutError, SystemExit])
def test_the_conversation_continues_as_if_uninterrupted(talks, error, options) -> None:
    draw, count = random.Random(4), 0
    talk, plain = (talks(**options) for _ in range(2))
    with alarm(error) as rings:
        for _ in range(6):
            talk.reset()
            plain.reset()
            words = [*PROMPT]
            for _ in range(12):
                began, before = time.perf_counter(), talk.said
                expected = plain.tell(words)
                seconds = draw.uniform(1e-5, time.perf_counter() - began)
                count += rings.ends(partial(talk.tell, words), seconds)
                talk.said = before  # an uninterrupted inference is repeated
                assert np.array_equal(talk.tell(words), expected)
                words = [int(expected.argmax())]
    assert count > 3
    assert "failed" not in str(talk.request.execution_report())


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "module"),
    [(COPIED, kv_cache), (COPIED | BLOCKS, block_cache)],
    ids=["one", "blocks"],
)
def test_rows_whose_copy_was_interrupted_are_copied_again(
    talks, monkeypatch, options, module
) -> None:
    """Formerly they were lost, and later logits used rows that were never written."""
    talk, plain = (talks(**options) for _ in range(2))
    for each in (talk, plain):
        each.tell(PROMPT)
        each.tell([8])

    def torn(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "copy_kvcache", torn)
        with pytest.raises(KeyboardInterrupt):
            talk.tell([9])
    talk.said = plain.said
    assert np.array_equal(talk.tell([9]), plain.tell([9]))


def test_conversations_of_an_interrupted_step_get_an_error_and_continue(tiny, monkeypatch) -> None:
    config = {"NPUW_LLM_BATCH_SLOTS": "2", "INFERENCE_PRECISION_HINT": "f32"}
    engine = Core().compile_model(tiny, "NPU", config).create_batching()
    first, second = engine.open(), engine.open()

    def said(*words: list[int]) -> list[np.ndarray]:
        futures = [one.submit(ids) for one, ids in zip((first, second), words, strict=True)]
        while not all(future.done() for future in futures):
            engine.step()
        return [future.result(0) for future in futures]

    said([1, 2, 3], [4, 5])

    def torn(*_: object) -> None:
        raise KeyboardInterrupt

    futures = [first.submit([6]), second.submit([7])]
    with monkeypatch.context() as patched:
        patched.setattr(SlotModel, "run", torn)
        with pytest.raises(KeyboardInterrupt):
            engine.step()
    for future in futures:
        with pytest.raises(RequestError, match="interrupted; submit them again"):
            future.result(0)
    assert (first.stored, second.stored) == (3, 2)
    found = said([6], [7])
    first.close()
    second.close()
    first, second = engine.open(), engine.open()
    expected = said([1, 2, 3, 6], [4, 5, 7])
    assert np.allclose(found, expected, atol=1e-4)
