"""Checks of any runtime; no test framework is needed.

``check_runtime(make, tokens)`` raises AssertionError with a description of the failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from genai_layer.npu import OnFull, lengths_of, on_full_of, property_of
from genai_layer.runtime import CONTINUES, CompiledModel, last_logits
from genai_layer.testing import check_rows
from genai_layer.testing.inferences import assert_close, inputs_for, logits_of

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
    whole = logits_of(compiled.create_infer_request(), tokens)
    request = compiled.create_infer_request()
    last = logits_of(request, tokens[:3])
    for index in range(3, len(tokens)):
        last = logits_of(request, tokens[index : index + 1], index)
    assert_close(last, whole, tolerance, "prefill of n against prefill of 3 and n-3 decodes")


def check_reset_begins_a_new_conversation(
    compiled: CompiledModel, tokens: list[int], _tolerance: float
) -> None:
    """``reset_state`` clears the state: logits are bitwise equal to the first ones."""
    request = compiled.create_infer_request()
    first = logits_of(request, tokens)
    logits_of(request, tokens[:1], len(tokens))
    request.reset_state()
    again = logits_of(request, tokens)
    assert np.array_equal(first, again), "logits after reset_state differ from the first ones"


def check_requests_are_independent(
    compiled: CompiledModel, tokens: list[int], _tolerance: float
) -> None:
    """Two requests do not affect each other."""
    one, two = compiled.create_infer_request(), compiled.create_infer_request()
    alone = compiled.create_infer_request()
    logits_of(alone, tokens[:4])
    expected = logits_of(alone, tokens[4:5], 4)
    logits_of(one, tokens[:4])
    logits_of(two, tokens[2:])
    found = logits_of(one, tokens[4:5], 4)
    assert np.array_equal(found, expected), "a request depends on the tokens of another one"


def check_start_async_and_wait_equal_infer(
    compiled: CompiledModel, tokens: list[int], _tolerance: float
) -> None:
    """Asynchronous and synchronous inferences result in equal logits."""
    expected = logits_of(compiled.create_infer_request(), tokens)
    request = compiled.create_infer_request()
    request.start_async(inputs_for(tokens))
    request.wait()
    assert np.array_equal(last_logits(request), expected), "start_async returns other logits"


def check_variables_have_names_and_reset(
    compiled: CompiledModel, tokens: list[int], _tolerance: float
) -> None:
    """Resetting every variable resets the state."""
    request = compiled.create_infer_request()
    first = logits_of(request, tokens)
    variables = request.query_state()
    assert variables, "a stateful model has variables"
    names = [variable.name for variable in variables]
    assert len(set(names)) == len(names), f"variables share a name: {names}"
    for variable in variables:
        variable.reset()
    assert np.array_equal(logits_of(request, tokens), first), "logits after variable resets differ"


def check_wrong_inputs_raise_and_the_request_survives(
    compiled: CompiledModel, tokens: list[int], _tolerance: float
) -> None:
    """Invalid inputs raise RuntimeError, and ``reset_state`` makes the request usable again."""
    request = compiled.create_infer_request()
    expected = logits_of(request, tokens)
    request.reset_state()
    wrong = inputs_for(tokens) | {"attention_mask": np.ones((1, 99, 1), np.int64)}
    try:
        request.infer(wrong)
    except RuntimeError:
        pass
    else:
        raise AssertionError("an attention mask of three dimensions was accepted")
    request.reset_state()
    assert np.array_equal(logits_of(request, tokens), expected), "a rejected input changes logits"


def check_earlier_positions_forget_later_tokens(
    compiled: CompiledModel, tokens: list[int], tolerance: float
) -> None:
    """Tokens at an earlier position replace the ones stored from there on."""
    request = compiled.create_infer_request()
    logits_of(request, tokens[:3])
    for index in range(3, len(tokens)):
        logits_of(request, [tokens[-1]], index)
    found = logits_of(request, tokens[3:4], 3)
    expected = logits_of(compiled.create_infer_request(), tokens[:4])
    assert_close(found, expected, tolerance, "a token after a rewind to position 3")
    found = logits_of(request, tokens[4:5], 4)
    expected = logits_of(compiled.create_infer_request(), tokens[:5])
    assert_close(found, expected, tolerance, "the token after it")


def check_several_tokens_follow_stored_ones(
    compiled: CompiledModel, tokens: list[int], tolerance: float
) -> None:
    """Several tokens may follow stored ones, also after a rewind, if the property says so."""
    if not property_of(compiled, CONTINUES, False):
        return
    request = compiled.create_infer_request()
    expected = logits_of(compiled.create_infer_request(), tokens)
    logits_of(request, tokens[:3])
    found = logits_of(request, tokens[3:], 3)
    assert_close(found, expected, tolerance, "several tokens after three")
    found = logits_of(request, tokens[2:], 2)
    assert_close(found, expected, tolerance, "several tokens after a rewind to two")


def check_steps_of_several_tokens(
    compiled: CompiledModel, tokens: list[int], tolerance: float
) -> None:
    """A step of several tokens has the logits of each; a rewind may keep some of them.

    The model must be compiled with NPUW_LLM_MAX_GENERATION_TOKEN_LEN of at least 3, so this check
    is not part of ``CHECKS``.
    """
    request = compiled.create_infer_request()
    logits_of(request, tokens[:3])
    request.infer(inputs_for([tokens[3], tokens[4], tokens[0]], 3))
    logits = np.array(request.get_tensor("logits").data[0])
    assert len(logits) == 3, f"{len(logits)} logits for a step of 3 tokens"
    for row, end in ((0, 4), (1, 5)):
        expected = logits_of(compiled.create_infer_request(), tokens[:end])
        assert_close(logits[row], expected, tolerance, f"token {row} of a step")
    found = logits_of(request, tokens[5:6], 5)
    expected = logits_of(compiled.create_infer_request(), tokens[:6])
    assert_close(found, expected, tolerance, "a token after a rewind into a step")


def check_forgotten_tokens_still_count(
    compiled: CompiledModel, tokens: list[int], _tolerance: float
) -> None:
    """Unless NPUW_LLM_ON_FULL is ERROR, prompts and texts after them may have any length.

    A runtime without this option, or with ERROR, passes.
    """
    on_full, request = on_full_of(compiled), compiled.create_infer_request()
    if on_full is OnFull.ERROR:
        return
    lengths = lengths_of(compiled)
    enough = lengths.max_prompt_len + lengths.min_response_len + 128  # lengths may be rounded up
    prompt = (tokens * enough)[:enough]
    logits_of(request, prompt)
    for index in range(len(prompt), len(prompt) + enough):
        logits = logits_of(request, [tokens[index % len(tokens)]], index)
        assert np.isfinite(logits).all(), f"logits of token {index} are not finite"
    request.reset_state()
    logits_of(request, tokens)


CHECKS = (
    check_logits_are_a_row_of_the_vocabulary,
    check_tokens_at_once_equal_tokens_one_by_one,
    check_reset_begins_a_new_conversation,
    check_requests_are_independent,
    check_start_async_and_wait_equal_infer,
    check_variables_have_names_and_reset,
    check_wrong_inputs_raise_and_the_request_survives,
    *check_rows.CHECKS,
    check_earlier_positions_forget_later_tokens,
    check_several_tokens_follow_stored_ones,
    check_forgotten_tokens_still_count,
)
"""All checks; each accepts a compiled model, tokens and a tolerance."""
