"""Checks of several rows: copied, reordered and dropped by ``beam_idx``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from genai_layer.runtime import Array, CompiledModel, InferRequest
from genai_layer.testing.inferences import assert_close, inputs_for, logits_of


def rows_for(
    tokens: Sequence[Sequence[int]], past: int, sources: Sequence[int]
) -> dict[str, Array]:
    """Return the inputs of an inference of several rows.

    Args:
        tokens: new tokens of each row, equally many.
        past: number of tokens that they follow.
        sources: the row of the last inference that each row continues.
    """
    each = [inputs_for(row, past) for row in tokens]
    rows = {name: np.concatenate([one[name] for one in each]) for name in each[0]}
    return rows | {"beam_idx": np.array(sources, np.int32)}


def _rows_logits(
    request: InferRequest, tokens: Sequence[Sequence[int]], past: int, sources: Sequence[int]
) -> Array:
    """Return the last logits of each row, f32 [B, vocabulary]."""
    request.infer(rows_for(tokens, past, sources))
    logits = request.get_tensor("logits").data
    assert logits.shape[0] == len(tokens), f"logits of {len(tokens)} rows have {logits.shape}"
    return np.array(logits[:, -1])


def _assert_rows(
    compiled: CompiledModel,
    found: Array,
    histories: Sequence[Sequence[int]],
    tolerance: float,
    what: str,
) -> None:
    """Assert that each row has the logits of its tokens in a request of their own."""
    for row, (logits, history) in enumerate(zip(found, histories, strict=True)):
        alone = logits_of(compiled.create_infer_request(), history)
        assert_close(logits, alone, tolerance, f"{what}, row {row}")


def check_forked_rows_continue_independently(
    compiled: CompiledModel, tokens: list[int], tolerance: float
) -> None:
    """A prompt read as one row continues in several rows, each as if it were alone."""
    request, (one, two, three, *prompt) = compiled.create_infer_request(), tokens
    logits_of(request, prompt)
    past, histories = len(prompt), [[*prompt, one], [*prompt, two], [*prompt, three]]
    found = _rows_logits(request, [[one], [two], [three]], past, [0, 0, 0])
    _assert_rows(compiled, found, histories, tolerance, "forked")
    found = _rows_logits(request, [[two], [two], [one]], past + 1, [0, 1, 2])
    histories = [[*histories[0], two], [*histories[1], two], [*histories[2], one]]
    _assert_rows(compiled, found, histories, tolerance, "forked and continued")


def check_rows_are_reordered_copied_and_dropped(
    compiled: CompiledModel, tokens: list[int], tolerance: float
) -> None:
    """Each row continues the row that ``beam_idx`` names; a row that none names is dropped."""
    request, (one, two, three, *prompt) = compiled.create_infer_request(), tokens
    logits_of(request, prompt)
    past = len(prompt)
    _rows_logits(request, [[one], [two], [three]], past, [0, 0, 0])
    found = _rows_logits(request, [[one], [two], [three]], past + 1, [2, 0, 2])
    histories = [[*prompt, three, one], [*prompt, one, two], [*prompt, three, three]]
    _assert_rows(compiled, found, histories, tolerance, "reordered")
    found = _rows_logits(request, [[two]], past + 2, [1])
    _assert_rows(compiled, found, [[*histories[1], two]], tolerance, "the only row left")


def check_rows_of_prompts_equal_prompts_alone(
    compiled: CompiledModel, tokens: list[int], tolerance: float
) -> None:
    """A request begins with rows of several prompts, also after ``reset_state``."""
    request, prompts = compiled.create_infer_request(), [tokens[:-1], tokens[1:]]
    for _ in range(2):
        found = _rows_logits(request, prompts, 0, [0, 1])
        _assert_rows(compiled, found, prompts, tolerance, "prompts")
        request.reset_state()


def check_rows_that_do_not_exist_are_rejected(
    compiled: CompiledModel, tokens: list[int], _tolerance: float
) -> None:
    """A number in ``beam_idx`` without a row raises RuntimeError."""
    request = compiled.create_infer_request()
    logits_of(request, tokens)
    try:
        request.infer(rows_for([tokens[:1]], len(tokens), [1]))
    except RuntimeError:
        return
    raise AssertionError("beam_idx 1 was accepted after an inference of one row")


CHECKS = (
    check_forked_rows_continue_independently,
    check_rows_are_reordered_copied_and_dropped,
    check_rows_of_prompts_equal_prompts_alone,
    check_rows_that_do_not_exist_are_rejected,
)
"""All checks; each accepts a compiled model, tokens and a tolerance."""
