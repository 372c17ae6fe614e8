"""npuw's errors; all are RuntimeErrors, as those of OpenVINO are.

NpuwError (RuntimeError)
├── NpuwUsageError          you called it wrongly
│   ├── OptionError         an unknown option, or a value out of range
│   ├── TensorError         an input is missing, or has a wrong type or shape
│   │   ├── NoResult        an output that an inference did not give; also a KeyError
│   │   └── TooManyTokens   more than a generate step takes
│   ├── RemoteError         memory cannot be, or no longer is, a remote tensor
│   ├── RequestBusy         the request is running
│   └── RequestError        a conversation that cannot go on: it is over, or not done yet
├── InferenceCancelled      someone called cancel()
├── NpuwInputError          the model is bad or not supported
│   ├── ModelError          a model that cannot be read, split or compiled
│   │   ├── NotFolded       its layers cannot be compiled as one
│   │   ├── NoHead          its LM head cannot be told from the rest
│   │   ├── OtherAxes       its caches have other axes than NPUW_LLM_SEQ_LEN_DIM says
│   │   └── NotCausal       a text cannot be read in chunks
│   ├── BlobError           a file of programs is damaged, or not what it should be
│   │   ├── DamagedBlob       it is not as it was written
│   │   └── BlobVersionError  it was made by other versions
│   ├── StateError          a saved conversation is damaged, or another model's
│   ├── PromptTooLong       longer than NPUW_LLM_MAX_PROMPT_LEN
│   ├── CapacityError       the KV cache is full
│   └── PoolExhausted       all of its blocks are in use
└── NpuwFault               a device, or the cache on disk, failed
    ├── DeviceError         loading or running failed on a device
    └── SharingError        weights cannot be shared with other processes
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


class NoResult(TensorError, KeyError):
    """An inference gave no such output."""

    def __str__(self) -> str:
        """Say which; a KeyError would quote it."""
        return str(self.args[0])


class RequestError(NpuwUsageError):
    """A conversation cannot go on: it is over, or what it said last is not read yet."""


class TooManyTokens(TensorError):
    """More tokens go on with a conversation than one generate step takes.

    Args:
        tokens: how many there are.
        limit: NPUW_LLM_MAX_GENERATION_TOKEN_LEN, rounded.
    """

    def __init__(self, tokens: int, limit: int) -> None:
        self.tokens = tokens
        self.limit = limit
        super().__init__(
            f"{tokens} tokens go on with what is stored, a generate step takes at most {limit}; "
            "raise NPUW_LLM_MAX_GENERATION_TOKEN_LEN, or set "
            "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL to YES to read them as a prompt"
        )


class RemoteError(NpuwUsageError):
    """Memory cannot become a remote tensor, or is none any more."""


class RequestBusy(NpuwUsageError):
    """A request that is running was asked for something else; ``wait`` for it first."""


class InferenceCancelled(NpuwError):
    """An inference was cancelled before its results were given out."""


class ModelError(NpuwInputError):
    """The model cannot be read, split or compiled."""


class NotFolded(ModelError):
    """Layers that looked equal became different: a larger graph is to be compiled."""


class NoHead(ModelError):
    """A model's logits are not the product of hidden states: no LM head can be cut off."""


class OtherAxes(ModelError):
    """A model's caches have other axes than options say.

    Args:
        name: the id of one of them.
        sequences: the axis along which it counts sequences.
        tokens: that along which it counts tokens.
    """

    def __init__(self, name: str, sequences: int, tokens: int) -> None:
        super().__init__(
            f"cache {name!r} counts tokens along axis {tokens} and sequences along axis "
            f"{sequences}: set NPUW_LLM_SEQ_LEN_DIM = {tokens} and NPUW_LLM_BATCH_DIM = "
            f"{sequences}, or leave them out"
        )
        self.sequences, self.tokens = sequences, tokens


class NotCausal(ModelError):
    """Tokens of a text attend to others than all before: it cannot be read in chunks."""


class BlobError(NpuwInputError):
    """A file of compiled programs is damaged, or not what it should be."""


class DamagedBlob(BlobError):
    """A file of compiled programs is not as it was written."""

    def named(self, name: str) -> DamagedBlob:
        """The same of an exported model whose name is known."""
        return DamagedBlob(f"{name}: {self}; export the model anew")


class BlobVersionError(BlobError):
    """A file of compiled programs was made by other versions, or for another device.

    Args:
        what: whose version.
        found: the file's.
        needed: ours.
        name: the file's, if it is known.
        advice: what to do.
    """

    def __init__(
        self,
        what: str,
        found: str,
        needed: str,
        name: str = "it",
        advice: str = "export it anew",
    ) -> None:
        self.what = what
        self.found = found
        self.needed = needed
        self.advice = advice
        super().__init__(f"{name} was made by {what} {found}, this is {needed}; {advice}")

    def named(self, name: str) -> BlobVersionError:
        """The same of a file whose name is known."""
        return BlobVersionError(self.what, self.found, self.needed, name, self.advice)


class StateError(NpuwInputError):
    """A saved conversation, or a variable's state, is damaged or does not fit the model."""


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
        advice: what to do.
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
            f"KV-Cache is full: {stored} tokens are stored, {new} more do not fit {capacity}; "
            f"{advice}"
        )


class PoolExhausted(NpuwInputError):
    """More blocks of the KV cache are needed than there may be.

    Args:
        needed: blocks.
        capacity: the most that there may be.
    """

    def __init__(self, needed: int, capacity: int) -> None:
        self.needed = needed
        self.capacity = capacity
        super().__init__(
            f"{needed} blocks of the KV cache are needed, there are {capacity} at most; "
            "raise NPUW_LLM_MAX_PROMPT_LEN or NPUW_LLM_MIN_RESPONSE_LEN"
        )


class DeviceError(NpuwFault):
    """A device refused a program, or failed while running it."""


class SharingError(NpuwFault):
    """Weights cannot be shared, or another process does not keep to the rules of it."""
