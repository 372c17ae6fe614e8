"""npuw's errors; all are RuntimeErrors, as those of OpenVINO are.

NpuwError (RuntimeError)
├── NpuwUsageError          you called it wrongly
│   ├── OptionError         an unknown option, or a value out of range
│   ├── TensorError         an input is missing, or has a wrong type or shape
│   └── RequestError        a conversation that cannot go on: it is over, or not done yet
├── NpuwInputError          the model is bad or not supported
│   ├── ModelError          a model that cannot be read, split or compiled
│   │   └── NotFolded       its layers cannot be compiled as one
│   ├── PromptTooLong       longer than NPUW_LLM_MAX_PROMPT_LEN
│   └── CapacityError       the KV cache is full
└── NpuwFault               a device, or the cache on disk, failed
└── DeviceError         loading or running failed on a device
"""

from __future__ import annotations


class NpuwError(RuntimeError):
    """Anything that goes wrong in npuw."""


class NpuwUsageError(NpuwError):
    """The caller broke a rule of the interface."""


class NpuwInputError(NpuwError):
    """The model or the conversation is more than it can handle."""


class NpuwFault(NpuwError):
    """Something underneath failed."""


class OptionError(NpuwUsageError):
    """An option is unknown, or its value is out of range."""


class TensorError(NpuwUsageError):
    """A tensor is missing, or of another type or shape."""


class RequestError(NpuwUsageError):
    """A conversation cannot go on: it is over, or what it said last is not read yet."""


class ModelError(NpuwInputError):
    """The model cannot be read, split or compiled."""


class NotFolded(ModelError):
    """Layers that looked equal became different: a larger graph is to be compiled."""


class PromptTooLong(NpuwInputError):
    """A prompt is longer than the prefill model takes.

    Args:
        tokens: the prompt's length.
        limit: the longest that is possible.
    """

    def __init__(self, tokens: int, limit: int) -> None:
        self.tokens = tokens
        self.limit = limit
        super().__init__(
            f"the prompt has {tokens} tokens, at most {limit} are possible; "
            "raise NPUW_LLM_MAX_PROMPT_LEN (MAX_PROMPT_LEN in genai)"
        )


class CapacityError(NpuwInputError):
    """The KV cache has no room for more tokens.

    Args:
        stored: tokens in the cache.
        new: tokens that were to be added.
        capacity: what it holds.
    """

    def __init__(self, stored: int, new: int, capacity: int) -> None:
        self.stored = stored
        self.new = new
        self.capacity = capacity
        super().__init__(
            f"KV-Cache is full: {stored} tokens are stored, {new} more do not fit {capacity}; "
            "raise NPUW_LLM_MAX_PROMPT_LEN or NPUW_LLM_MIN_RESPONSE_LEN"
        )


class DeviceError(NpuwFault):
    """A device refused a program, or failed while running it."""
