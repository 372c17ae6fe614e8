"""Pooling compared to sentence-transformers'; tools/make_sentence_goldens.py wrote the results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from genai_layer.texts.config import PoolingType
from genai_layer.texts.pooling import MODES, modes_of, pool

SAID = np.load(Path(__file__).resolve().parents[2] / "goldens" / "sentences" / "pooling.npz")
HIDDEN, MASK = SAID["hidden"], SAID["mask"]


def test_every_combination_of_modes_is_that_of_sentence_transformers() -> None:
    combinations = [name for name in SAID.files if name not in ("hidden", "mask")]
    assert len(combinations) == 2 ** len(MODES) - 1
    for name in combinations:
        found = pool(HIDDEN, MASK, name.split("+"))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, SAID[name], rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("mode", MODES)
def test_an_embedding_is_the_same_wherever_the_padding_is(mode: str) -> None:
    tokens = MASK.shape[1]
    left, noise = HIDDEN.copy(), np.float32(99)
    for row, count in enumerate(MASK.sum(1)):
        left[row] = np.roll(HIDDEN[row], tokens - count, axis=0)
        left[row, : tokens - count] = noise
    found = pool(left, MASK[:, ::-1], [mode])
    np.testing.assert_allclose(found, SAID[mode], rtol=1e-5, atol=1e-6)


def test_each_pooling_of_openvino_genai_is_a_mode() -> None:
    assert [modes_of(kind) for kind in PoolingType] == [("cls",), ("mean",), ("lasttoken",)]
