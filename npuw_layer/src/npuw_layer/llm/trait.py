"""Traits: extensions of some language models in addition to K and V.

A trait is one folder of ``npuw_layer.traits`` that overrides three classes as far as it needs.
The base classes do nothing.

        Trait     without a model: names of tensors, checks of options and of programs
        Instance  the trait in one compiled model: inputs of the caller, states that are set
        Part      the trait in one conversation: device memory, and its rewind

``llm`` iterates over traits and names none; a plain Llama has no instances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from npuw_layer.backends.protocols import Array, Device, LoadedModel, Program, TensorInfo

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from npuw_layer.llm.graph.graph_pass import Placed
    from npuw_layer.llm.kv.kv_strategy import KVStrategy
    from npuw_layer.llm.plan.stages import Stage
    from npuw_layer.llm.request.conversation import Conversation
    from npuw_layer.llm.request.history import History
    from npuw_layer.llm.request.new_tokens import NewTokens
    from npuw_layer.llm.request.variable_state import RequestState
    from npuw_layer.options import Options
    from npuw_layer.tensors.token_inputs import TokenInput, TokenKind

OpenInput = tuple[str, str, tuple[int, ...]]
"""Name, element type and dimensions of an input of the model before the split."""


@dataclass(frozen=True, slots=True)
class ModelNames:
    """Names of a model's tensors, from which checks derive the supported options."""

    inputs: Sequence[str]
    variables: Sequence[str]
    outputs: Sequence[str]


class Settings(Protocol):
    """States that stay as the caller set them, until set again; e.g. adapters."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the variables."""
        ...

    def set(self, name: str, values: Array) -> None:
        """Set a variable.

        Raises:
            StateError: the values do not fit.
        """
        ...

    def check(self) -> None:
        """Check that the variables fit one another.

        Raises:
            StateError: they do not fit.
        """
        ...


class CallerInput(Protocol):
    """An input in the form in which the caller sets it."""

    @property
    def name(self) -> str:
        """Name of the input."""
        ...

    @property
    def element(self) -> str:
        """Element type by OpenVINO's name."""
        ...

    @property
    def described(self) -> str:
        """Type and shape, for messages."""
        ...

    @property
    def per_token(self) -> bool:
        """True if the input has a row for each new token."""
        ...

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether values of a shape are those of one sequence."""
        ...

    def rows(self, values: Array) -> Array:
        """Return the values of one sequence by rows; a view."""
        ...


class PairInput(CallerInput, Protocol):
    """An input with a value for each pair of a new token and a visible position."""

    def whole(self, values: Array, new: int, positions: int) -> Array | None:
        """Return values [new, positions], stored positions first; None if they have no effect.

        Raises:
            TensorError: there are too many values, or one is NaN.
        """
        ...


class ConversationPart:
    """A trait's part of one conversation; each method does nothing by default."""

    persists: ClassVar[bool] = False
    """True if a new conversation keeps the part's state, as it keeps adapters."""
    shown_last: ClassVar[bool] = False
    """True if its variables are listed after the count of stored tokens."""

    @property
    def nbytes(self) -> int:
        """Bytes of device memory of the part."""
        return 0

    @property
    def digest(self) -> bytes:
        """Identity of the settings in force; empty if none has an effect."""
        return b""

    def use(self, settings: Settings | None) -> None:
        """Use settings from the next inference on."""

    def bind(self, program: Program, ports: Sequence[TensorInfo]) -> None:
        """Bind the inputs and outputs of a program that are stored in this part's memory.

        Args:
            program: program whose other tensors are bound.
            ports: all its inputs and outputs.
        """

    def begin(self) -> None:
        """Begin an inference: copy settings to where programs read them.

        Raises:
            StateError: settings contradict one another; nothing has changed.
        """

    def check(self, tokens: NewTokens, keep: int, prompt: bool) -> None:
        """Check new tokens before anything changes.

        Args:
            tokens: the new tokens.
            keep: number of stored tokens before them.
            prompt: whether prefill reads them.

        Raises:
            TensorError: the trait forbids these tokens there.
        """

    def fill(self, inputs: Mapping[str, Array], tokens: NewTokens, past: int) -> None:
        """Fill the trait's inputs of a program.

        Args:
            inputs: all inputs of the program by name, for one conversation.
            tokens: tokens that the program is about to read.
            past: rows of the cache that the program reads.
        """

    def advance(self, tokens: int) -> None:
        """Advance by a number of tokens that a program has run on."""

    def note(self, step: NewTokens) -> None:
        """Record a generate step; its tokens are the last stored ones."""

    def known(self, tokens: int) -> int:
        """Return the first token to read again if the conversation keeps the first ``tokens``."""
        return tokens

    def rewind(self, tokens: int) -> None:
        """Keep the first tokens, or as many as ``known`` returns."""

    def forget(self) -> None:
        """Begin a new conversation."""

    def hold(self, tokens: int) -> None:
        """Set the number of stored tokens; their rows are set from outside."""

    def tensors(self) -> Mapping[str, Array]:
        """Return the variables that a saved conversation contains, as writable views."""
        return {}

    def prefix_key(self, tokens: NewTokens) -> bytes | None:
        """Return a key of all that rows depend on besides the tokens before them.

        None if rows depend on later tokens, so that prefixes are not cached.
        """
        return b""

    def variable_states(
        self, talk: Conversation, check_idle: Callable[[], None]
    ) -> Sequence[RequestState]:
        """Return the trait's variables as a request exposes them."""
        return ()


class Instance:
    """A trait in one compiled model; subclasses override at least ``part``."""

    rereads: ClassVar[bool] = False
    """True if a rewind may read tokens again, be they ids or embeddings."""
    one_row_for: ClassVar[str] = "states that cannot be copied"
    """Part of the model that limits a request to one row, for messages. Empty if each row has its
    own inputs, and ``ConversationPart.tensors`` are all of a part's state apart from settings."""

    def part(self, device: Device, cache: KVStrategy, history: History) -> ConversationPart:
        """Make the trait's part of a conversation."""
        return ConversationPart()

    def settings(self) -> Settings | None:
        """Return new settings, without effect until set; None if the trait has no settings."""
        return None

    def caller_inputs(self, inputs: Sequence[TokenInput]) -> Sequence[CallerInput]:
        """Return inputs that the caller sets besides, or in place of, inputs that follow tokens."""
        return ()

    def pair_inputs(self) -> Sequence[PairInput]:
        """Return inputs for pairs of a new token and a position."""
        return ()

    def join(self, rows: dict[str, Array]) -> None:
        """Make rows of all tokens from the caller's values.

        Args:
            rows: values by input, changed in place.

        Raises:
            TensorError: inputs do not fit one another.
        """


class Trait:
    """Properties and checks of a trait without a model.

    Args:
        name: name of the trait's folder.
    """

    token_kinds: ClassVar[Mapping[str, TokenKind]] = {}
    """Inputs with a row for each token, by name."""
    ignored_inputs: ClassVar[Sequence[str]] = ()
    """Inputs that a caller may set though the model does not read them."""
    pair_names: ClassVar[Sequence[str]] = ()
    """Inputs for pairs of a new token and a position."""
    last_inputs: ClassVar[Sequence[str]] = ()
    """Inputs that exporters write after beam_idx."""
    bound_inputs: ClassVar[Sequence[str]] = ()
    """Inputs, other than variables, that are stored in a part's memory."""
    other_outputs: ClassVar[Sequence[str]] = ()
    """Name prefixes of outputs that do not follow tokens."""
    forgets_tokens: ClassVar[bool] = True
    """True if its variables can drop just the last tokens, as K and V can."""

    def __init__(self, name: str) -> None:
        self.name = name

    def owns(self, variable: str) -> bool:
        """Return whether a variable belongs to the trait, and so is neither K nor V."""
        return False

    def recognise(self, inputs: Sequence[TensorInfo]) -> Instance | None:
        """Return the trait's instance for a model; None for a model without the trait.

        Args:
            inputs: inputs of the static models of one conversation, each name once.
        """
        return None

    def open_inputs(self, info: TensorInfo) -> Sequence[OpenInput] | None:
        """Return the exported model's inputs that a static model's input represents.

        None if the input is not the trait's.
        """
        return None

    def passes(self, model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
        """Return the trait's passes of graph preparation; none for a model without it.

        Args:
            model: the stateful graph, not changed.
            stage: the static model to make.
            options: options that the model is compiled with.

        Raises:
            ModelError: the trait does not support the graph.
        """
        return ()

    def check_options(self, names: ModelNames, options: Options) -> None:
        """Check that a model with the trait supports the options.

        Raises:
            ModelError: the model does not; the error names the option and the remedy.
        """

    def check_head(self, variables: Sequence[str], options: Options) -> None:
        """Check that a model with a separate LM head supports the options.

        Raises:
            ModelError: the head does not support an option.
        """

    def check_ports(
        self, stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options
    ) -> None:
        """Compare the trait's tensors in imported programs.

        Args:
            stages: expected stages of the programs; all of a model's, or some.
            loaded: the programs.
            options: options that the model was compiled with.

        Raises:
            BlobError: the tensors are not those of the stages.
        """
