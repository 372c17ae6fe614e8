"""Rows of a batch with models that have traits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.npuw.traits.linear_states.conftest import CHUNKED, LINEAR, distance
from tests.npuw.traits.lora.conftest import wear
from tests.npuw.traits.trees.conftest import EAGLE, NOTHING, OPTIONS

from npuw_layer import Core
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.errors import TensorError

PROMPT = [5, 9, 13, 7, 21]


def tell(request: Any, rows: Sequence[Sequence[int]], past: int, sources: Sequence[int]) -> Any:
    """Infer rows; return the last logits of each."""
    count = len(rows[0])
    logits = request.infer(
        {
            "input_ids": np.array(rows, np.int64),
            "attention_mask": np.ones((len(rows), past + count), np.int64),
            "position_ids": np.tile(np.arange(past, past + count), (len(rows), 1)),
            "beam_idx": np.array(sources, np.int32),
        }
    )["logits"]
    return logits[:, -1]


def test_all_rows_have_the_adapters_that_were_set(talks, adapt) -> None:
    llama = adapt("llama_fp16")
    first, second = llama.draw(8, seed=1), llama.draw(3, seed=2)
    talk, alone = (wear(talks(llama.path), first) for _ in range(2))
    tell(talk.request, [PROMPT], 0, [0])
    found = tell(talk.request, [[1], [2]], 5, [0, 0])
    alone.tell(PROMPT)
    assert np.array_equal(found[1], alone.tell([2]))
    found = tell(wear(talk, second).request, [[3], [4]], 6, [0, 1])
    assert np.array_equal(found[1], wear(alone, second).tell([4]))


def test_states_of_fixed_size_are_copied_and_rewound(restored) -> None:
    path = restored(LINEAR, "lfm2_fp16")
    compiled = Core(device=InterpreterDevice()).compile_model(path, "NPU", CHUNKED)
    request, one, other = (compiled.create_infer_request() for _ in range(3))
    tell(request, [PROMPT], 0, [0])
    tell(request, [[1], [2]], 5, [0, 0])
    for talk, token in ((one, 1), (other, 2)):
        tell(talk, [PROMPT], 0, [0])
        tell(talk, [[token]], 5, [0])
    found = tell(request, [[3], [4], [5]], 6, [1, 0, 1])
    assert distance(found[0], tell(other, [[3]], 6, [0])[0]) <= 1e-5
    assert distance(found[1], tell(one, [[4]], 6, [0])[0]) <= 1e-5
    found = tell(request, [[6], [7]], 6, [2, 0])  # both forget the last token
    assert distance(found[0], tell(other, [[6]], 6, [0])[0]) <= 1e-5
    assert distance(found[1], tell(other, [[7]], 6, [0])[0]) <= 1e-5


def test_a_model_of_token_trees_runs_one_row(restored) -> None:
    path = restored(EAGLE, "tree_target")
    request = Core().compile_model(path, "NPU", OPTIONS).create_infer_request()
    request.set_tensor("eagle_tree_mask", NOTHING)
    tell(request, [PROMPT], 0, [0])
    with pytest.raises(TensorError, match="2 rows: a model with token trees runs one row"):
        tell(request, [[1], [2]], 5, [0, 0])
    tell(request, [[1]], 5, [0])
