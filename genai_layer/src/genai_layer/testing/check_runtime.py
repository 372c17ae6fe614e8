"""Checks of any runtime; no test framework is needed.

``check_runtime(make, tokens)`` raises AssertionError with a description of the failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from genai_layer.npu import OnFull, lengths_of, on_full_of
from genai_layer.runtime import Array, CompiledModel, InferRequest, last_logits

TOLERANCE = 1e-3
"""Largest relative difference of logits when the same tokens are run in other chunks."""


def check_runtime(
    make: Callable[[], CompiledModel], tokens: Sequence[int], tolerance: float = TOLERANCE
) -> None:
    """Run all checks.

    Args:
        make: returns a compiled model.
        tokens: at least six token ids of the model.
        tolerance: relative tolerance of logits.

    Raises:
        AssertionError: the runtime violates ``genai_layer.runtime``.
    """
    assert len(tokens) >= 6, "at least six tokens are needed"
    compiled = make()
    for check in CHECKS:
        check(compiled, list(tokens), tolerance)


def inputs_for(tokens: Sequence[int], past: int = 0) -> dict[str, Array]:
    """Return the inputs of an inference on ``tokens`` after ``past`` other tokens."""
    count = len(tokens)
    return {
        "input_ids": np.array([tokens], np.int64),
        "attention_mask": np.ones((1, past + count), np.int64),
        "position_ids": np.arange(past, past + count, dtype=np.int64)[None],
        "beam_idx": np.zeros(1, np.int32),
    }


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
        alone = _logits(compiled.create_infer_request(), history)
        _assert_close(logits, alone, tolerance, f"{what}, row {row}")


def _logits(request: InferRequest, tokens: Sequence[int], past: int = 0) -> Array:
    request.infer(inputs_for(tokens, past))
    return last_logits(request)


def _assert_close(found: Array, expected: Array, tolerance: float, what: str) -> None:
    error = float(np.abs(found - expected).max() / max(float(np.abs(expected).max()), 1e-9))
    assert error <= tolerance, f"{what}: logits differ by {error:.2e}, relative to the largest"


def check_logits_are_a_row_of_the_vocabulary(
    compiled: CompiledModel, tokens: list[int], _tolerance: float
) -> None:
    """Logits have the documented shape, and are finite."""
    request = compiled.create_infer_request()
    request.infer(inputs_for(tokens))
    logits = request.get_tensor("logits").data
    assert logits.ndim == 3, f"logits have shape {logits.shape}, not [1, rows, vocabulary]"
    assert logits.shape[0] == 1, f"logits have shape {logits.shape}, not [1, rows, vocabulary]"
    assert logits.shape[1] in (1, len(tokens)), f"{logits.shape[1]} rows for {len(tokens)} tokens"
    assert np.isfinite(logits).all(), "logits are not finite"
    assert logits.shape[2] > max(tokens), "the vocabulary is smaller than a token id"


def check_tokens_at_once_equal_tokens_one_by_one(
    compiled: CompiledModel, tokens: list[int], tolerance: float
) -> None:
    """Logits do not depend on the chunks in which tokens are run."""
    whole = _logits(compiled.create_infer_request(), tokens)
    request = compiled.create_infer_request()
    last = _logits(request, tokens[:3])
    for index in range(3, len(tokens)):
        last = _logits(request, tokens[index : index + 1], index)
    _assert_close(last, whole, tolerance, "prefill of n against prefill of 3 and n-3 decodes")


def check_reset_begins_a_new_conversation(
    compiled: CompiledModel, tokens: list[int], _tolerance: float
) -> None:
    """``reset_state`` clears the state: logits are bitwise equal to the first ones."""
    request = compiled.create_infer_request()
    first = _logits(request, tokens)
    _logits(request, tokens[:1], len(tokens))
    request.reset_state()
    again = _logits(request, tokens)
    assert np.array_equal(first, again), "logits after reset_state differ from the first ones"


def check_requests_are_independent(
    compiled: CompiledModel, tokens: list[int], _tolerance: float
) -> None:
    """Two requests do not affect each other."""
    one, two = compiled.create_infer_request(), compiled.create_infer_request()
    alone = compiled.create_infer_request()
    _logits(alone, tokens[:4])
    expected = _logits(alone, tokens[4:5], 4)
    _logits(one, tokens[:4])
    _logits(two, tokens[2:])
    found = _logits(one, tokens[4:5], 4)
    assert np.array_equal(found, expected), "a request depends on the tokens of another one"


def check_start_async_and_wait_equal_infer(
    compiled: CompiledModel, tokens: list[int], _tolerance: float
) -> None:
    """Asynchronous and synchronous inferences result in equal logits."""
    expected = _logits(compiled.create_infer_request(), tokens)
    request = compiled.create_infer_request()
    request.start_async(inputs_for(tokens))
    request.wait()
    assert np.array_equal(last_logits(request), expected), "start_async returns other logits"


def check_variables_have_names_and_reset(
    compiled: CompiledModel, tokens: list[int], _tolerance: float
) -> None:
    """Resetting every variable resets the state."""
    request = compiled.create_infer_request()
    first = _logits(request, tokens)
    variables = request.query_state()
    assert variables, "a stateful model has variables"
    names = [variable.name for variable in variables]
    assert len(set(names)) == len(names), f"variables share a name: {names}"
    for variable in variables:
        variable.reset()
    assert np.array_equal(_logits(request, tokens), first), "logits after variable resets differ"


def check_wrong_inputs_raise_and_the_request_survives(
    compiled: CompiledModel, tokens: list[int], _tolerance: float
) -> None:
    """Invalid inputs raise RuntimeError, and ``reset_state`` makes the request usable again."""
    request = compiled.create_infer_request()
    expected = _logits(request, tokens)
    request.reset_state()
    wrong = inputs_for(tokens) | {"attention_mask": np.ones((1, 99, 1), np.int64)}
    try:
        request.infer(wrong)
    except RuntimeError:
        pass
    else:
        raise AssertionError("an attention mask of three dimensions was accepted")
    request.reset_state()
    assert np.array_equal(_logits(request, tokens), expected), "a rejected input changes logits"


def check_forked_rows_continue_independently(
    compiled: CompiledModel, tokens: list[int], tolerance: float
) -> None:
    """A prompt read as one row continues in several rows, each as if it were alone."""
    request, (one, two, three, *prompt) = compiled.create_infer_request(), tokens
    _logits(request, prompt)
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
    _logits(request, prompt)
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
    _logits(request, tokens)
    try:
        request.infer(rows_for([tokens[:1]], len(tokens), [1]))
    except RuntimeError:
        return
    raise AssertionError("beam_idx 1 was accepted after an inference of one row")


def check_earlier_positions_forget_later_tokens(
    compiled: CompiledModel, tokens: list[int], tolerance: float
) -> None:
    """Tokens at an earlier position replace the ones stored from there on."""
    request = compiled.create_infer_request()
    _logits(request, tokens[:3])
    for index in range(3, len(tokens)):
        _logits(request, [tokens[-1]], index)
    found = _logits(request, tokens[3:4], 3)
    expected = _logits(compiled.create_infer_request(), tokens[:4])
    _assert_close(found, expected, tolerance, "a token after a rewind to position 3")
    found = _logits(request, tokens[4:5], 4)
    expected = _logits(compiled.create_infer_request(), tokens[:5])
    _assert_close(found, expected, tolerance, "the token after it")


def check_steps_of_several_tokens(
    compiled: CompiledModel, tokens: list[int], tolerance: float
) -> None:
    """A step of several tokens has the logits of each; a rewind may keep some of them.

    The model must be compiled with NPUW_LLM_MAX_GENERATION_TOKEN_LEN of at least 3, so this check
    is not part of ``CHECKS``.
    """
    request = compiled.create_infer_request()
    _logits(request, tokens[:3])
    request.infer(inputs_for([tokens[3], tokens[4], tokens[0]], 3))
    logits = np.array(request.get_tensor("logits").data[0])
    assert len(logits) == 3, f"{len(logits)} logits for a step of 3 tokens"
    for row, end in ((0, 4), (1, 5)):
        expected = _logits(compiled.create_infer_request(), tokens[:end])
        _assert_close(logits[row], expected, tolerance, f"token {row} of a step")
    found = _logits(request, tokens[5:6], 5)
    expected = _logits(compiled.create_infer_request(), tokens[:6])
    _assert_close(found, expected, tolerance, "a token after a rewind into a step")


def check_forgotten_tokens_still_count(
    compiled: CompiledModel, tokens: list[int], _tolerance: float
) -> None:
    """Unless NPUW_LLM_ON_FULL is ERROR, a full cache accepts tokens at increasing positions.

    A runtime without this option, or with ERROR, passes.
    """
    on_full, request = on_full_of(compiled), compiled.create_infer_request()
    if on_full is OnFull.ERROR:
        return
    lengths = lengths_of(compiled)
    enough = lengths.max_prompt_len + lengths.min_response_len + 128  # lengths may be rounded up
    prompt = (tokens * enough)[:enough] if on_full is OnFull.TRUNCATE else tokens
    _logits(request, prompt)
    for index in range(len(prompt), len(prompt) + enough):
        logits = _logits(request, [tokens[index % len(tokens)]], index)
        assert np.isfinite(logits).all(), f"logits of token {index} are not finite"
    request.reset_state()
    _logits(request, tokens)


CHECKS = (
    check_logits_are_a_row_of_the_vocabulary,
    check_tokens_at_once_equal_tokens_one_by_one,
    check_reset_begins_a_new_conversation,
    check_requests_are_independent,
    check_start_async_and_wait_equal_infer,
    check_variables_have_names_and_reset,
    check_wrong_inputs_raise_and_the_request_survives,
    check_forked_rows_continue_independently,
    check_rows_are_reordered_copied_and_dropped,
    check_rows_of_prompts_equal_prompts_alone,
    check_rows_that_do_not_exist_are_rejected,
    check_earlier_positions_forget_later_tokens,
    check_forgotten_tokens_still_count,
)
"""All checks; each accepts a compiled model, tokens and a tolerance."""
