"""Usage of a request, the limit of its choices, and ids and times of replies.

The fingerprint of a reply is the version of the stack.
"""

from __future__ import annotations

import secrets
import time

from genai_layer import __version__
from genai_layer.serve.errors import BadRequest
from genai_layer.serve.limits import Limits
from genai_layer.serve.openai.answers import Answers
from genai_layer.serve.openai.schemas.tokens import (
    InputDetails,
    OutputDetails,
    PromptDetails,
    ResponseUsage,
    Usage,
)

FINGERPRINT = f"genai_layer-{__version__}"
"""Version of the software that answers; equal seeds give equal texts as long as it is the same."""


def new_id(prefix: str) -> str:
    """Return an id that no other reply has."""
    return f"{prefix}{secrets.token_hex(12)}"


def now() -> int:
    """Return the time in Unix seconds."""
    return int(time.time())


def usage_of(answers: Answers) -> Usage:
    """Return the counts of tokens so far."""
    prompt, generated = answers.choices.prompt_tokens, answers.generated_tokens
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=generated,
        total_tokens=prompt + generated,
        prompt_tokens_details=PromptDetails(cached_tokens=answers.choices.cached_tokens),
    )


def check_count(count: int, limits: Limits) -> None:
    """Check that the queue has room for a request's choices.

    Raises:
        BadRequest: there are more choices than the queue ever holds.
    """
    if count > max(limits.queue, 1):
        raise BadRequest(
            f"n: the request has {count} choices, and at most {limits.queue} may wait; lower n, or "
            "send fewer prompts",
            param="n",
        )


def response_usage_of(answers: Answers) -> ResponseUsage:
    """Return the counts of tokens of a response."""
    usage = usage_of(answers)
    cached = usage.prompt_tokens_details.cached_tokens
    return ResponseUsage(
        input_tokens=usage.prompt_tokens,
        input_tokens_details=InputDetails(cached_tokens=cached, cache_write_tokens=0),
        output_tokens=usage.completion_tokens,
        output_tokens_details=OutputDetails(reasoning_tokens=0),
        total_tokens=usage.total_tokens,
    )
