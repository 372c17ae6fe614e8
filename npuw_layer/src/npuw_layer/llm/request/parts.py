"""Parts of all the model's traits in one conversation; empty for a plain Llama."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Array, Program, TensorInfo
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.trait import ConversationPart, Settings

if TYPE_CHECKING:
    from npuw_layer.llm.request.conversation import Conversation
    from npuw_layer.llm.request.variable_state import RequestState


class ConversationParts:
    """Composite of parts; each method is that of ``ConversationPart``, for all parts.

    Args:
        each: the parts, in the order of the model's traits.
    """

    def __init__(self, each: Sequence[ConversationPart] = ()) -> None:
        self.each = each

    @staticmethod
    def of(compiled: CompiledLLM, cache: KVStrategy, history: History) -> ConversationParts:
        """Make the parts of a conversation."""
        return ConversationParts(
            [one.part(compiled.device, cache, history) for one in compiled.traits]
        )

    def nbytes(self, persists: bool) -> int:
        """Return the bytes of the parts that a new conversation keeps, or of the others."""
        return sum(part.nbytes for part in self.each if part.persists is persists)

    @property
    def digest(self) -> bytes:
        """Identity of the settings in force; empty if none has an effect."""
        return b"".join(part.digest for part in self.each)

    def use(self, settings: Sequence[Settings | None]) -> None:
        """Use settings from the next inference on, one for each part."""
        for part, one in zip(self.each, settings, strict=True):
            part.use(one)

    def bind(self, program: Program, ports: Sequence[TensorInfo]) -> None:
        """Bind a program's tensors that are stored in the memory of parts."""
        for part in self.each:
            part.bind(program, ports)

    def begin(self) -> None:
        """Begin an inference."""
        for part in self.each:
            part.begin()

    def check(self, tokens: NewTokens, keep: int, prompt: bool) -> None:
        """Check new tokens before anything changes."""
        for part in self.each:
            part.check(tokens, keep, prompt)

    def fill(self, inputs: Mapping[str, Array], tokens: NewTokens, past: int) -> None:
        """Fill inputs of a program."""
        for part in self.each:
            part.fill(inputs, tokens, past)

    def advance(self, tokens: int) -> None:
        """Advance by a number of tokens that a program has run on."""
        for part in self.each:
            part.advance(tokens)

    def note(self, step: NewTokens) -> None:
        """Record a generate step."""
        for part in self.each:
            part.note(step)

    def known(self, tokens: int) -> int:
        """Return the first token to read again if the conversation keeps the first ``tokens``."""
        return min((part.known(tokens) for part in self.each), default=tokens)

    def rewind(self, tokens: int) -> None:
        """Keep the first tokens."""
        for part in self.each:
            part.rewind(tokens)

    def forget(self) -> None:
        """Begin a new conversation."""
        for part in self.each:
            part.forget()

    def hold(self, tokens: int) -> None:
        """Set the number of stored tokens; their rows are set from outside."""
        for part in self.each:
            part.hold(tokens)

    def tensors(self) -> Mapping[str, Array]:
        """Return the variables that a saved conversation contains, as writable views."""
        return {name: held for part in self.each for name, held in part.tensors().items()}

    def prefix_key(self, tokens: NewTokens) -> bytes | None:
        """Return a key of all that rows depend on besides tokens; None if on later tokens."""
        keys = [part.prefix_key(tokens) for part in self.each]
        return None if None in keys else b"".join(key for key in keys if key)

    def variable_states(
        self, talk: Conversation, check_idle: Callable[[], None], last: bool
    ) -> list[RequestState]:
        """Return the variables listed after the count of stored tokens, or the others."""
        chosen = (part for part in self.each if part.shown_last is last)
        return [state for part in chosen for state in part.variable_states(talk, check_idle)]
