"""Traits: what some language models have beside K and V.

A trait is one folder of ``npuw_layer.traits``, and three records that it overrides as far as it
needs to; each does nothing by itself.

    Trait     before there is a model: names of tensors, checks of options and of programs
    Instance  the trait as one compiled model has it: inputs of the caller, states that are set
    Part      the trait's part of one conversation: device memory, and what a rewind means for it

``llm`` iterates over traits and knows none by name; a plain Llama has no instances.
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
"""Name, element type and dimensions of an input of the model before it was split."""


@dataclass(frozen=True, slots=True)
class ModelNames:
    """Names of a model's tensors, as far as they decide what it can do."""

    inputs: Sequence[str]
    variables: Sequence[str]
    outputs: Sequence[str]


class Settings(Protocol):
    """States that a caller sets and that stay until they are set anew, e.g. adapters."""

    @property
    def names(self) -> Sequence[str]:
        """The variables."""
        ...

    def set(self, name: str, values: Array) -> None:
        """Set one of the variables.

        Raises:
            StateError: the values do not fit.
        """
        ...

    def check(self) -> None:
        """Check that the variables fit one another.

        Raises:
            StateError: they do not.
        """
        ...


class CallerInput(Protocol):
    """An input as the caller sets it."""

    @property
    def name(self) -> str:
        """The input's name."""
        ...

    @property
    def element(self) -> str:
        """The element type by OpenVINO's name."""
        ...

    @property
    def described(self) -> str:
        """Type and shape, for people."""
        ...

    @property
    def per_token(self) -> bool:
        """Whether the caller gives a row for each new token."""
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
        """Return values [new, positions], stored ones first; None if they change nothing.

        Raises:
            TensorError: there are too many, or one is not a number.
        """
        ...


class Part:
    """A trait's part of one conversation; satisfied by doing nothing."""

    persists: ClassVar[bool] = False
    """Whether a new conversation keeps it, as it keeps adapters."""
    shown_last: ClassVar[bool] = False
    """Whether its variables stand behind the count of stored tokens."""

    @property
    def nbytes(self) -> int:
        """Device memory that it takes."""
        return 0

    @property
    def digest(self) -> bytes:
        """Identity of the settings in force; empty if none has an effect."""
        return b""

    def use(self, settings: Settings | None) -> None:
        """Take over settings from the next inference on."""

    def bind(self, program: Program, ports: Sequence[TensorInfo]) -> None:
        """Bind the inputs and outputs of a program that lie in this part's memory.

        Args:
            program: bound to all else.
            ports: its inputs and outputs, others among them.
        """

    def begin(self) -> None:
        """Begin an inference: bring settings to where programs read them.

        Raises:
            StateError: they contradict one another; nothing has changed.
        """

    def check(self, tokens: NewTokens, keep: int, prompt: bool) -> None:
        """Check new tokens before anything is changed for them.

        Args:
            tokens: the new ones.
            keep: stored tokens that they follow.
            prompt: whether they are read by prefill.

        Raises:
            TensorError: the trait forbids them there.
        """

    def fill(self, inputs: Mapping[str, Array], tokens: NewTokens, past: int) -> None:
        """Fill the trait's inputs of a program.

        Args:
            inputs: of the program by name, for one conversation; others among them.
            tokens: what the program is about to read.
            past: rows of the cache that it reads.
        """

    def advance(self, tokens: int) -> None:
        """Go on behind so many more tokens: a program has run on them."""

    def note(self, step: NewTokens) -> None:
        """Note a generate step, whose tokens are the last ones that are stored."""

    def known(self, tokens: int) -> int:
        """Return from which token on the conversation is read anew if it keeps the first ones."""
        return tokens

    def rewind(self, tokens: int) -> None:
        """Keep the first tokens, or as many as ``known`` says."""

    def forget(self) -> None:
        """Begin a new conversation."""

    def hold(self, tokens: int) -> None:
        """Hold so many tokens whose rows are set from outside."""

    def tensors(self) -> Mapping[str, Array]:
        """Return the variables that a saved conversation contains; views that may be written."""
        return {}

    def prefix_key(self, tokens: NewTokens) -> bytes | None:
        """Return what rows depend on beside the tokens before them.

        None if rows depend on tokens behind them, so that prefixes are not cached.
        """
        return b""

    def variable_states(
        self, talk: Conversation, check_idle: Callable[[], None]
    ) -> Sequence[RequestState]:
        """Return the trait's variables as a request shows them."""
        return ()


class Instance:
    """A trait as one compiled model has it; ``part`` is all that each must bring."""

    rereads: ClassVar[bool] = False
    """Whether a rewind may read tokens anew, whatever they were given as."""

    def part(self, device: Device, cache: KVStrategy, history: History) -> Part:
        """Make the trait's part of a conversation."""
        return Part()

    def settings(self) -> Settings | None:
        """Make settings that have no effect yet; None if the trait has none."""
        return None

    def caller_inputs(self, inputs: Sequence[TokenInput]) -> Sequence[CallerInput]:
        """Return inputs that the caller sets beside, or in place of, inputs that follow tokens."""
        return ()

    def pair_inputs(self) -> Sequence[PairInput]:
        """Return inputs for pairs of a new token and a position."""
        return ()

    def join(self, rows: dict[str, Array]) -> None:
        """Make rows of all tokens from what the caller gave.

        Args:
            rows: by input, changed in place.

        Raises:
            TensorError: inputs do not fit one another.
        """


class Trait:
    """What is known of a trait without a model.

    Args:
        name: of its folder.
    """

    token_kinds: ClassVar[Mapping[str, TokenKind]] = {}
    """Inputs with a row for each token, by name."""
    ignored_inputs: ClassVar[Sequence[str]] = ()
    """Inputs that a caller may give to models that do not read them."""
    pair_names: ClassVar[Sequence[str]] = ()
    """Inputs for pairs of a new token and a position."""
    last_inputs: ClassVar[Sequence[str]] = ()
    """Inputs that exporters write behind beam_idx."""
    bound_inputs: ClassVar[Sequence[str]] = ()
    """Inputs, other than variables, that lie in a part's memory."""
    other_outputs: ClassVar[Sequence[str]] = ()
    """How names of outputs begin that do not follow tokens."""
    forgets_tokens: ClassVar[bool] = True
    """Whether its variables can forget the last tokens alone, as K and V can."""

    def __init__(self, name: str) -> None:
        self.name = name

    def owns(self, variable: str) -> bool:
        """Return whether a variable is the trait's, and so neither K nor V."""
        return False

    def recognise(self, inputs: Sequence[TensorInfo]) -> Instance | None:
        """Return the trait as a model has it; None for a model without it.

        Args:
            inputs: of the static models that one conversation uses, each name once.
        """
        return None

    def open_inputs(self, info: TensorInfo) -> Sequence[OpenInput] | None:
        """Return the model's inputs that an input of a static model stands for.

        None leaves the input to others.
        """
        return None

    def passes(self, model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
        """Return the trait's passes of graph preparation; none for a model without it.

        Args:
            model: the stateful graph; it is not changed.
            stage: the static model to make.
            options: what the model is compiled with.

        Raises:
            ModelError: the graph is not what the trait knows.
        """
        return ()

    def check_options(self, names: ModelNames, options: Options) -> None:
        """Check that a model with the trait can do what options ask for.

        Raises:
            ModelError: it cannot; names the option and the remedy.
        """

    def check_head(self, variables: Sequence[str], options: Options) -> None:
        """Check the same of an LM head that is a program of its own.

        Raises:
            ModelError: it cannot.
        """

    def check_ports(
        self, stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options
    ) -> None:
        """Compare the trait's tensors in programs from elsewhere.

        Args:
            stages: what the programs should be; all of a model's, or some.
            loaded: the programs.
            options: what the model was compiled with.

        Raises:
            BlobError: they are not what they should be.
        """
