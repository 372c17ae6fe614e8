"""npuw's errors; all are RuntimeErrors, like those of OpenVINO.

NpuwError (RuntimeError)
├── NpuwUsageError          a wrong call
│   ├── OptionError         an unknown option, or a value out of range
│   ├── TensorError         an input is missing, or has a wrong type or shape
│   │   ├── NoResult        an output that an inference did not return; also a KeyError
│   │   └── TooManyTokens   more tokens than a generate step accepts
│   ├── RemoteError         memory cannot be, or no longer is, a remote tensor
│   ├── RequestBusy         the request is running
│   └── RequestError        a conversation that has ended, or has unread output
├── InferenceCancelled      an inference ended by cancel()
├── NpuwInputError          an invalid or unsupported model or conversation
│   ├── ModelError          a model that cannot be read, split or compiled
│   │   ├── NotFolded       layers that cannot be folded into one
│   │   ├── NoHead          an LM head that cannot be separated
│   │   ├── OtherAxes       caches whose axes differ from NPUW_LLM_SEQ_LEN_DIM
│   │   └── NotCausal       a prompt or text that cannot be read in chunks
│   ├── BlobError           a damaged or invalid file of programs
│   │   ├── DamagedBlob       a file with other content than was written
│   │   └── BlobVersionError  a file made by other versions
│   ├── StateError          a saved conversation is damaged, or another model's
│   ├── PromptTooLong       a prompt above NPUW_LLM_MAX_PROMPT_LEN
│   ├── CapacityError       a full KV cache
│   └── PoolExhausted       a KV cache whose blocks are all in use
└── NpuwFault               a device, or the cache on disk, failed
    ├── DeviceError         loading or running failed on a device
    └── SharingError        weights cannot be shared with other processes
"""

from __future__ import annotations


class NpuwError(RuntimeError):
    """Base of all errors of npuw."""


class NpuwUsageError(NpuwError):
    """Violation of the interface's rules by the caller."""


class NpuwInputError(NpuwError):
    """Unsupported or invalid model or conversation."""


class NpuwFault(NpuwError):
    """Failure of a device, the system or storage."""


class OptionError(NpuwUsageError):
    """An option is unknown, or its value is out of range."""


class TensorError(NpuwUsageError):
    """A tensor is missing, or has another type or shape."""


class NoResult(TensorError, KeyError):
    """An inference returned no such output."""

    def __str__(self) -> str:
        """Return the message; a KeyError would quote it."""
        return str(self.args[0])


class RequestError(NpuwUsageError):
    """A conversation cannot continue: it has ended, or its last output is unread."""


class TooManyTokens(TensorError):
    """A continuation has more tokens than one generate step accepts.

    Args:
        tokens: number of tokens.
        limit: NPUW_LLM_MAX_GENERATION_TOKEN_LEN, rounded.
    """

    def __init__(self, tokens: int, limit: int) -> None:
        self.tokens = tokens
        self.limit = limit
        super().__init__(
            f"{tokens} tokens continue a conversation: a generate step accepts at most {limit}; "
            "raise NPUW_LLM_MAX_GENERATION_TOKEN_LEN, or set "
            "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL to YES to read them as a prompt"
        )


class RemoteError(NpuwUsageError):
    """Memory cannot become, or no longer is, a remote tensor."""


class RequestBusy(NpuwUsageError):
    """A call that a running request does not allow; ``wait`` for it first."""


class InferenceCancelled(NpuwError):
    """An inference was cancelled before it returned results."""


class ModelError(NpuwInputError):
    """The model cannot be read, split or compiled."""


class NotFolded(ModelError):
    """Layers that looked equal became different; a larger graph must be compiled."""


class NoHead(ModelError):
    """A model's logits are not a matmul of hidden states: no LM head can be separated."""


class OtherAxes(ModelError):
    """The axes of a model's caches differ from the options.

    Args:
        name: id of such a cache.
        sequences: its axis of sequences.
        tokens: its axis of tokens.
    """

    def __init__(self, name: str, sequences: int, tokens: int) -> None:
        super().__init__(
            f"cache {name!r} counts tokens along axis {tokens} and sequences along axis "
            f"{sequences}: set NPUW_LLM_SEQ_LEN_DIM = {tokens} and NPUW_LLM_BATCH_DIM = "
            f"{sequences}, or leave them out"
        )
        self.sequences, self.tokens = sequences, tokens


class NotCausal(ModelError):
    """Tokens do not attend to exactly all earlier tokens; the text cannot be read in chunks."""


class BlobError(NpuwInputError):
    """A file of compiled programs is damaged or invalid."""


class DamagedBlob(BlobError):
    """A file of compiled programs has other content than was written."""

    def named(self, name: str) -> DamagedBlob:
        """Return the error of an exported model with its name."""
        return DamagedBlob(f"{name}: {self}; export the model again")


class BlobVersionError(BlobError):
    """A file of compiled programs was made by other versions, or for another device.

    Args:
        what: component whose version differs.
        found: version in the file.
        needed: version of this installation.
        name: name of the file, if known.
        advice: remedy.
    """

    def __init__(
        self,
        what: str,
        found: str,
        needed: str,
        name: str = "it",
        advice: str = "export it again",
    ) -> None:
        self.what = what
        self.found = found
        self.needed = needed
        self.advice = advice
        super().__init__(f"{name} was made by {what} {found}, installed is {needed}; {advice}")

    def named(self, name: str) -> BlobVersionError:
        """Return the error with the name of the file."""
        return BlobVersionError(self.what, self.found, self.needed, name, self.advice)


class StateError(NpuwInputError):
    """A saved conversation, or a variable's state, is damaged or does not fit the model."""


class PromptTooLong(NpuwInputError):
    """A prompt is longer than the prefill model accepts.

    Args:
        tokens: length of the prompt.
        limit: longest possible prompt.
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
        new: tokens to add.
        capacity: most tokens of the cache.
        advice: remedy.
    """

    def __init__(
        self,
        stored: int,
        new: int,
        capacity: int,
        advice: str = "raise NPUW_LLM_MAX_PROMPT_LEN or NPUW_LLM_MIN_RESPONSE_LEN",
    ) -> None:
        self.stored = stored
        self.new = new
        self.capacity = capacity
        super().__init__(
            f"KV-Cache is full: {stored} tokens are stored, {new} more exceed its capacity of "
            f"{capacity}; {advice}"
        )


class PoolExhausted(NpuwInputError):
    """A conversation needs more blocks of the KV cache than the pool can have.

    Args:
        needed: number of blocks.
        capacity: most blocks of the pool.
    """

    def __init__(self, needed: int, capacity: int) -> None:
        self.needed = needed
        self.capacity = capacity
        super().__init__(
            f"the conversation needs {needed} blocks of the KV cache, the pool has {capacity}; "
            "raise NPUW_LLM_MAX_PROMPT_LEN or NPUW_LLM_MIN_RESPONSE_LEN"
        )


class DeviceError(NpuwFault):
    """A device rejected a program, or failed while running it."""


class SharingError(NpuwFault):
    """Weights cannot be shared, or another process violates the protocol of sharing."""
