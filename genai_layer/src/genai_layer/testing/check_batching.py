"""Checks of a runtime that batches; no test framework is needed.

``check_batching(compiled, tokens)`` raises AssertionError with a description of the failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from genai_layer.abilities import Batching, SupportsBatching
from genai_layer.npu import property_of
from genai_layer.runtime import CONTINUES, Array, CompiledModel
from genai_layer.testing.check_runtime import TOLERANCE
from genai_layer.testing.inferences import assert_close, logits_of

_STEPS = 100
"""Steps after which tokens must have been read."""


def check_batching(
    compiled: CompiledModel, tokens: Sequence[int], tolerance: float = TOLERANCE
) -> None:
    """Run all checks.

    Args:
        compiled: the model.
        tokens: at least six token ids of the model.
        tolerance: relative tolerance of logits.

    Raises:
        AssertionError: the model violates ``abilities.SupportsBatching``.
    """
    assert len(tokens) >= 6, "at least six tokens are needed"
    assert isinstance(compiled, SupportsBatching), "the model has no create_batching"
    for check in CHECKS:
        check(compiled, compiled.create_batching(2), tokens, tolerance)


def _read(batching: Batching, logits: Future[Array]) -> Array:
    """Run steps until tokens are read; return their logits f32 [vocabulary]."""
    for _ in range(_STEPS):
        if logits.done():
            return logits.result()
        batching.step()
    raise AssertionError(f"tokens were not read in {_STEPS} steps")


def _assert_alone(
    compiled: CompiledModel, found: Array, tokens: Sequence[int], tolerance: float, what: str
) -> None:
    """Assert that logits are those of tokens in a request of their own."""
    alone = logits_of(compiled.create_infer_request(), tokens)
    assert found.shape == alone.shape, f"{what}: logits have shape {found.shape}"
    assert_close(found, alone, tolerance, what)


def check_conversations_equal_requests_alone(
    compiled: CompiledModel, batching: Batching, tokens: Sequence[int], tolerance: float
) -> None:
    """Logits do not depend on the other conversations."""
    prompts = [list(tokens[:3]), list(tokens[2:])]
    opened = [batching.open() for _ in prompts]
    for step in range(3):
        new = [prompt if not step else prompt[-1:] for prompt in prompts]
        futures = [one.submit(ids) for one, ids in zip(opened, new, strict=True)]
        for future, prompt in zip(futures, prompts, strict=True):
            what = f"token {step} of a conversation beside another"
            _assert_alone(compiled, _read(batching, future), prompt, tolerance, what)
            prompt.append(tokens[step])
    for one in opened:
        one.close()


def check_a_closed_conversation_leaves_its_place(
    compiled: CompiledModel, batching: Batching, tokens: Sequence[int], tolerance: float
) -> None:
    """A conversation without a place waits until another one is closed."""
    opened = [batching.open() for _ in range(3)]
    futures = [one.submit(tokens[: number + 1]) for number, one in enumerate(opened)]
    for future in futures[:2]:
        _read(batching, future)
    for _ in opened:
        batching.step()
    assert not futures[2].done(), "three conversations ran in two places"
    opened[0].close()
    found = _read(batching, futures[2])
    _assert_alone(compiled, found, tokens[:3], tolerance, "after another one was closed")
    for one in opened:
        one.close()


def check_a_rejected_conversation_affects_no_other(
    compiled: CompiledModel, batching: Batching, tokens: Sequence[int], tolerance: float
) -> None:
    """Tokens that cannot be read raise RuntimeError, for their conversation alone."""
    wrong, other = batching.open(), batching.open()
    future = other.submit(tokens[:4])
    try:
        _read(batching, wrong.submit([]))
    except RuntimeError:
        pass
    else:
        raise AssertionError("no tokens were accepted")
    _assert_alone(compiled, _read(batching, future), tokens[:4], tolerance, "beside a failing one")


def check_a_conversation_rewinds(
    compiled: CompiledModel, batching: Batching, tokens: Sequence[int], tolerance: float
) -> None:
    """Tokens after earlier ones replace the later ones, also after a rest."""
    conversation = batching.open()
    _read(batching, conversation.submit(tokens[:4]))
    _read(batching, conversation.submit(tokens[:1]))
    conversation.rest()
    found = _read(batching, conversation.submit(tokens[3:4], 3))
    _assert_alone(compiled, found, tokens[:4], tolerance, "after a rewind to three tokens")
    if property_of(compiled, CONTINUES, False):
        found = _read(batching, conversation.submit(tokens[2:], 2))
        _assert_alone(compiled, found, tokens, tolerance, "several tokens after stored ones")
    conversation.close()


def check_copies_continue_independently(
    compiled: CompiledModel, batching: Batching, tokens: Sequence[int], tolerance: float
) -> None:
    """A copy has the tokens read before; it takes a place, if need be one beyond the limit."""
    first, *copies = opened = [batching.open() for _ in range(4)]
    _read(batching, first.submit(tokens[:3]))
    begun = first.submit([tokens[3]])
    for one in copies:
        one.copy_from(first)
    futures = [begun, *(one.submit([token]) for one, token in zip(copies, tokens, strict=False))]
    for future, token in zip(futures, [tokens[3], *tokens], strict=False):
        found = _read(batching, future)
        _assert_alone(compiled, found, [*tokens[:3], token], tolerance, "of a copied conversation")
    copies[0].copy_from(copies[1])
    found = _read(batching, copies[0].submit([tokens[4]]))
    expected = [*tokens[:3], tokens[1], tokens[4]]
    _assert_alone(compiled, found, expected, tolerance, "of a replaced conversation")
    for one in opened:
        one.close()


CHECKS: tuple[Callable[[CompiledModel, Batching, Sequence[int], float], None], ...] = (
    check_conversations_equal_requests_alone,
    check_a_closed_conversation_leaves_its_place,
    check_a_rejected_conversation_affects_no_other,
    check_a_conversation_rewinds,
    check_copies_continue_independently,
)
"""All checks; each accepts a compiled model, a batching with two places, tokens and a tolerance."""
