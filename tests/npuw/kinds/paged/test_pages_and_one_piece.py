"""Logits equal those of one unpaged run, for any order of sequences and any placement of rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import GOLDENS

from compiler_layer.frontends.openvino_ir.read import read_ir
from compiler_layer.reference.interpreter import Interpreter

BLOCKS_EACH = 3
SEQUENCES = 3


@pytest.fixture(scope="module")
def unpaged(
    load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> Interpreter:
    """Return the model before its transformation: stateful, with attention over all rows."""
    restore = load_module(GOLDENS / "exported" / "restore.py").restore
    return Interpreter(
        read_ir(restore(GOLDENS / "exported", "gemma2_fp16", tmp_path_factory.mktemp("plain")))
    )


def in_one_piece(model: Interpreter, ids: list[int]) -> np.ndarray:
    """Return the logits of all tokens of a sequence."""
    model.reset()
    count = len(ids)
    return model.run(
        {
            "input_ids": np.array([ids], np.int64),
            "attention_mask": np.ones((1, count), np.int64),
            "position_ids": np.arange(count)[None],
            "beam_idx": np.zeros(1, np.int32),
        }
    )["logits"][0]


@pytest.fixture(scope="module")
def pages(paged: Callable[[str], Any]) -> tuple[Any, Any]:
    """Return the model, and the compiled model."""
    model = paged("gemma2_fp16")
    return model, model.compile()


steps = st.lists(
    st.lists(
        st.tuples(st.integers(0, SEQUENCES - 1), st.sampled_from([0, 1, 1, 2, 7, 30])),
        min_size=1,
        max_size=SEQUENCES,
        unique_by=lambda one: one[0],
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=steps, places=st.permutations(range(SEQUENCES * BLOCKS_EACH)), seed=st.integers(0, 9))
def test_paged_logits_equal_those_of_one_unpaged_run(
    pages: tuple[Any, Any],
    unpaged: Interpreter,
    steps: list[list[tuple[int, int]]],
    places: list[int],
    seed: int,
) -> None:
    model, compiled = pages
    tables = {each: places[each::SEQUENCES] for each in range(SEQUENCES)}
    asked = model.sequences.Sequences(tables, seed)
    request, caches = compiled.create_infer_request(), model.caches(compiled)
    said: dict[int, list[np.ndarray]] = {each: [] for each in range(SEQUENCES)}
    for step in steps:
        kept = [
            (number, count)
            for number, count in step
            if len(asked.ids.get(number, ())) + count <= BLOCKS_EACH * model.sequences.BLOCK
        ]
        if not kept:
            continue
        logits = request.infer({**asked.inputs(kept), **caches})["logits"][:, 0]
        ends = np.cumsum([count for _, count in kept])[:-1]
        for (number, _), own in zip(kept, np.split(logits, ends), strict=True):
            said[number] += [*own]
    for number, ids in asked.ids.items():
        if ids:
            wanted = in_one_piece(unpaged, ids)
            np.testing.assert_allclose(np.stack(said[number]), wanted, atol=1e-5)
