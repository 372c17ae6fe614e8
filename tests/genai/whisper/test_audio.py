"""Audio of a call: finite numbers, in any type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from genai_layer import PromptError
from genai_layer.whisper.pipeline import read_audio


@pytest.mark.parametrize("type_", ["f2", "f4", "f8", "i2"])
def test_numbers_of_any_type_are_samples(type_: str) -> None:
    found = read_audio(np.array([0, 1, -1], type_))
    assert found.dtype == np.float32
    assert found.tolist() == [0, 1, -1]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e39])
@pytest.mark.parametrize("form", [list, np.array, lambda given: np.array([given] * 2).T])
def test_a_sample_that_is_not_finite_is_named(wrong: float, form: Any) -> None:
    with pytest.raises(PromptError, match=r"the audio: sample 2 is .*; pass samples from -1 to 1"):
        read_audio(form([0.0, 1.0, wrong]))


@pytest.mark.parametrize("given", [np.array(["1.5"]), np.array([1j]), np.array([True])])
def test_other_elements_are_no_samples(given: Any) -> None:
    with pytest.raises(PromptError, match=r"the audio, .* is no sequence of numbers; pass"):
        read_audio(given)
