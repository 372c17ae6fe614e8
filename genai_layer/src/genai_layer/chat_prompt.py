"""Prompts of chats: special tokens of the template are tokens, those in messages are text.

How it works. The template is rendered a second time with messages in which private characters stand
for those that begin special tokens. The special tokens that remain are the template's. If both
renderings agree apart from the private characters, the template did not look for the replaced ones.
Else, e.g. if it looks for "</think>" in a message, only special tokens are changed in this way. In
the encoding of the text, only some of its special tokens are tokens; the others are text.

openvino_genai has no such encoding: it encodes special tokens in messages as tokens. A text is a
prompt too, wrapped by the chat template if there is one.

Source: docs/reference/genai.md#chat-history.
"""

from __future__ import annotations

import re
import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, cast

import tokenizers
from tokenizers import AddedToken

from genai_layer.chat_history import ChatHistory, Message
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.encoding import check_characters
from genai_layer.errors import PromptError, TemplateError
from genai_layer.long_texts import encode_texts
from genai_layer.npu import StaticLengths
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.prompt import Chat, Prompt
from genai_layer.prompt_limits import check_length
from genai_layer.tokenizer import Tokenizer

Span = tuple[int, int]
"""Begin and end in a text."""


class ControlTokens:
    """Special tokens of a tokenizer, with an encoder for the chosen ones of a text.

    How it works. A copy of the tokenizer reads special tokens as text, and knows each of them under
    an alias that nobody can guess. The chosen ones are replaced by their aliases before encoding.

    Args:
        tokens: the special tokens by id.
        to_json: returns the content of tokenizer.json; called at the first use of ``encode``.
    """

    def __init__(self, tokens: Mapping[int, AddedToken], to_json: Callable[[], str]) -> None:
        self._tokens = {token.content: token for token in tokens.values() if token.content}
        self._ids = {token.content: number for number, token in tokens.items()}
        self._to_json = to_json
        self._copy: _Copy | None = None
        longest_first = sorted(self._tokens, key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        """Pattern of a special token; of several at one place, the longest."""

    @property
    def first_characters(self) -> str:
        """Characters that begin special tokens."""
        return "".join({content[0] for content in self._tokens})

    def spans(self, text: str) -> list[Span]:
        """Return where a text has special tokens."""
        return [found.span() for found in self.pattern.finditer(text)]

    def encode(self, text: str, chosen: Sequence[Span]) -> list[int]:
        """Return a text's ids, in which only the chosen special tokens are tokens.

        Args:
            text: a text with special tokens.
            chosen: some of ``spans(text)``, in their order.

        Raises:
            PromptError: the vocabulary has another special token of the text as a word.
        """
        self._copy = self._copy or _Copy(self._to_json(), self._tokens)
        renamed: list[str] = []
        at = 0
        for begin, end in chosen:
            renamed += text[at:begin], self._copy.aliases[text[begin:end]]
            at = end
        ids = self._copy.encode("".join(renamed) + text[at:])
        known = set(ids)
        for begin, end in set(self.spans(text)) - set(chosen):
            if self._ids[text[begin:end]] in known:
                raise PromptError(
                    f"a message has {text[begin:end]!r}, a special token that is a word of this "
                    "vocabulary, too; remove it from the message"
                )
        return [self._ids.get(self._copy.names.get(one, ""), one) for one in ids]


class _Copy:
    """Copy of a tokenizer that reads special tokens as text, and their aliases as tokens."""

    def __init__(self, json: str, tokens: Mapping[str, AddedToken]) -> None:
        secret = secrets.token_hex(16)
        self.aliases = {name: f"\U0010fffd{secret}.{at}." for at, name in enumerate(tokens)}
        self._tokenizer = tokenizers.Tokenizer.from_str(json)
        self._tokenizer.encode_special_tokens = True
        add: Callable[[list[AddedToken]], int] = self._tokenizer.add_tokens  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] (its list has no element type)
        add([_renamed(tokens[name], alias) for name, alias in self.aliases.items()])
        self.names = {
            self._tokenizer.token_to_id(alias): name for name, alias in self.aliases.items()
        }
        """Special tokens by the ids of their aliases."""

    def encode(self, text: str) -> list[int]:
        (ids,) = encode_texts(self._tokenizer, [text], add_special_tokens=False)
        return ids


def _renamed(token: AddedToken, content: str) -> AddedToken:
    return AddedToken(
        content,
        single_word=token.single_word,
        lstrip=token.lstrip,
        rstrip=token.rstrip,
        normalized=token.normalized,
    )


_PRIVATE = range(0xF0000, 0xFFFFE)
"""Characters that Unicode assigns to nothing."""


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A rendered prompt."""

    text: str
    tokens: list[Span] | None
    """The template's special tokens; None if there are no others in the text."""


class ChatPrompts:
    """Renderer and encoder of prompts.

    Args:
        tokenizer: has the chat template.
        lengths: those of an NPU's programs; None if the runtime has no such limits.
    """

    def __init__(self, tokenizer: Tokenizer, lengths: StaticLengths | None = None) -> None:
        self._tokenizer, self._lengths = tokenizer, lengths
        self._control = ControlTokens(tokenizer.special_tokens, tokenizer.to_json)

    def render(self, history: ChatHistory, add_generation_prompt: bool = True) -> ChatPrompt:
        """Render messages.

        Args:
            history: the messages.
            add_generation_prompt: end with the beginning of the assistant's turn.

        Raises:
            TemplateError: the model has no template, or the template fails.
            PromptTooLong: the prompt has too many characters.
        """
        text = self._tokenizer.apply_chat_template(history, add_generation_prompt)
        check_length(text, self._tokenizer, self._lengths)
        begins = self._control.first_characters
        private = (chr(code) for code in _PRIVATE if chr(code) not in text)
        hidden = dict(zip(map(ord, begins), private, strict=False))
        shown = {ord(mark): chr(code) for code, mark in hidden.items()}

        def hide_all(part: str) -> str:
            return part.translate(hidden)

        def hide_special_tokens(part: str) -> str:
            return self._control.pattern.sub(
                lambda found: found[0][0].translate(hidden) + found[0][1:], part
            )

        messages = history.get_messages()
        for hide in (hide_all, hide_special_tokens):
            changed = [_changed(message, hide) for message in messages]
            if changed == messages:
                return ChatPrompt(text, None)
            rendered = self._rendered(history, changed, add_generation_prompt)
            if rendered.translate(shown) == text:
                tokens = self._control.spans(rendered)
                others = tokens != self._control.spans(text)
                return ChatPrompt(text, tokens if others else None)
        warnings.warn(
            "the chat template looks for special tokens in messages, so they are tokens of the "
            "prompt; remove them from the messages, or set another template",
            stacklevel=2,
        )
        return ChatPrompt(text, None)

    def encode(self, prompt: ChatPrompt) -> list[int]:
        """Return a prompt's ids.

        Raises:
            PromptError: the vocabulary has a message's special token as a word, or the text has a
                lone surrogate.
        """
        if prompt.tokens is None:
            return self._tokenizer.encode(prompt.text, False).input_ids.data[0].tolist()
        check_characters(prompt.text)
        return self._control.encode(prompt.text, prompt.tokens)

    def _rendered(
        self, history: ChatHistory, messages: list[Message], add_generation_prompt: bool
    ) -> str:
        """Render other messages; return "" if the template fails."""
        other = ChatHistory(messages)
        other.set_tools(history.get_tools())
        other.set_extra_context(history.get_extra_context())
        try:
            return self._tokenizer.apply_chat_template(other, add_generation_prompt)
        except TemplateError:
            return ""


def _changed(message: Message, change: Callable[[str], str]) -> Message:
    """Return a message with all its texts changed, but not its role."""

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, list):
            return [walk(item) for item in cast(list[Any], value)]
        if isinstance(value, dict):
            return {name: walk(item) for name, item in cast(dict[str, Any], value).items()}
        return value

    return {name: value if name == "role" else walk(value) for name, value in message.items()}


class PromptEncoder:
    """Encoder of a pipeline's prompts; each call adds its durations to metrics.

    Args:
        tokenizer: the model's.
        lengths: those of an NPU's programs; None if the runtime has no such limits.
    """

    def __init__(self, tokenizer: Tokenizer, lengths: StaticLengths | None) -> None:
        self._tokenizer, self._lengths = tokenizer, lengths
        self._chats = ChatPrompts(tokenizer, lengths)

    @cached_property
    def unlimited(self) -> PromptEncoder:
        """Encoder of prompts of any length, e.g. to count their tokens."""
        return PromptEncoder(self._tokenizer, None)

    def text(self, text: str, template: bool, raw: RawPerfMetrics) -> Prompt:
        """Return the prompt of a text, the only turn of a chat if the template has to wrap it.

        Raises:
            TemplateError: the chat template fails.
            PromptTooLong: the text has too many characters.
        """
        if template and self._tokenizer.chat_template:
            return self.chat(ChatHistory([{"role": "user", "content": text}]), raw)
        check_length(text, self._tokenizer, self._lengths)
        watch = Stopwatch()
        ids = self._tokenizer.encode(text).input_ids.data[0].tolist()
        raw.tokenization_durations.append(watch.microseconds())
        return Prompt(ids)

    def chat(self, history: ChatHistory, raw: RawPerfMetrics) -> Prompt:
        """Return the prompt of a chat, up to the beginning of the answer; errors as ``text``."""
        return Chat(history, partial(self._encode, raw=raw))

    def _encode(self, history: ChatHistory, raw: RawPerfMetrics) -> list[int]:
        watch = Stopwatch()
        prompt = self._chats.render(history)
        raw.chat_template_durations.append(watch.microseconds())
        watch = Stopwatch()
        ids = self._chats.encode(prompt)
        raw.tokenization_durations.append(watch.microseconds())
        return ids
