"""Tokenizer: text to token ids and back, and the chat template.

Source: openvino_genai.Tokenizer, docs/reference/genai.md#tokenizer; files of Hugging Face folders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy.typing as npt
from tokenizers import AddedToken

from genai_layer.chat_history import ChatHistory
from genai_layer.chat_templates.templates import ChatTemplates
from genai_layer.checked import checked
from genai_layer.encoding import Padding, Truncation, encode_rows, padded, read_call
from genai_layer.errors import ConfigError
from genai_layer.openvino_tokenizer import CLEAN_UP, UNSETTLED
from genai_layer.results import TokenizedInputs
from genai_layer.tensor import HasData
from genai_layer.token_ids import Row, Rows, is_row, row_of, rows_of
from genai_layer.tokenizer_content import find_source, read_content
from genai_layer.vocabulary import Vocabulary

_NO_LIMIT = 1 << 24


class Tokenizer:
    """The tokenizer of a model folder, or of a tokenizer and a detokenizer model in memory.

    Args:
        tokenizer_path: a folder with tokenizer.json, else with openvino_tokenizer.xml and
            openvino_detokenizer.xml; and, optionally, with tokenizer_config.json,
            special_tokens_map.json, config.json, chat_template.json, chat_template.jinja,
            additional_chat_templates/default.jinja and additional_chat_templates/tool_use.jinja.
        properties: OpenVINO's properties as a dictionary; deprecated, as in openvino_genai.
        tokenizer_model: content of an ``openvino_tokenizer.xml``, instead of a folder.
        tokenizer_weights: content of its ``.bin``, a tensor u8 [n].
        detokenizer_model: content of an ``openvino_detokenizer.xml``.
        detokenizer_weights: content of its ``.bin``, a tensor u8 [n].
        named: OpenVINO's properties. They have no effect, because no model is compiled.

    Raises:
        TypeError: an argument is missing.
        ModelError: a file is missing or broken, or a tokenizer model has a step that is not
            supported.
        PropertyError: a name is not upper case, or a value is None.
    """

    @overload
    def __init__(
        self,
        tokenizer_path: str | Path,
        properties: Mapping[str, Any] | None = None,
        **named: Any,
    ) -> None: ...
    @overload
    def __init__(
        self,
        tokenizer_model: str,
        tokenizer_weights: HasData,
        detokenizer_model: str,
        detokenizer_weights: HasData,
        **named: Any,
    ) -> None: ...

    def __init__(self, *args: Any, **named: Any) -> None:
        content = read_content(find_source(args, named))
        self._tokenizer, self._settings = content.tokenizer, content.settings
        self._tokens, self._ids = content.tokens, content.ids
        self.vocabulary = Vocabulary(self._tokenizer)
        """Tokens of the tokenizer. Ours."""
        self._templates = ChatTemplates(
            content.chat_template, content.tool_template, content.tokens
        )

    @overload
    def encode(
        self,
        prompts: Sequence[str] | Sequence[Sequence[str]],
        add_special_tokens: bool = True,
        pad_to_max_length: bool = False,
        max_length: int | None = None,
        padding_side: str | None = None,
        truncation: bool = False,
    ) -> TokenizedInputs: ...
    @overload
    def encode(
        self,
        prompt: str,
        add_special_tokens: bool = True,
        pad_to_max_length: bool = False,
        max_length: int | None = None,
        padding_side: str | None = None,
        truncation: bool = False,
    ) -> TokenizedInputs: ...
    @overload
    def encode(
        self,
        prompts_1: Sequence[str],
        prompts_2: Sequence[str],
        add_special_tokens: bool = True,
        pad_to_max_length: bool = False,
        max_length: int | None = None,
        padding_side: str | None = None,
        truncation: bool = False,
    ) -> TokenizedInputs: ...

    def encode(self, *args: Any, **named: Any) -> TokenizedInputs:
        """Encode a text, texts, or pairs of texts.

        Args:
            args: a text; a list of texts or of pairs; or two lists, of which one may have a single
                text for all of the other. Then the options in the order of the overloads.
            named: the same by name. ``max_length`` matters with ``pad_to_max_length`` and
                ``truncation``; its default is the model's. Texts are padded to the longest.

        Returns:
            ids and mask, i64 [texts, longest].

        Raises:
            ConfigError: an option is unknown or out of range.
            PromptError: an argument is not a text, or a text has a lone surrogate, e.g. from a
                command line that is not UTF-8.
        """
        texts, options = read_call(args, named)
        length = self.model_max_length if options.max_length is None else options.max_length
        truncation = None
        if options.truncation and length is not None:
            truncation = Truncation(length, self._side("truncation"))
        rows = encode_rows(self._tokenizer, texts, options.add_special_tokens, truncation)
        width = 0
        if options.pad_to_max_length:
            if length is None:
                raise ConfigError(
                    "pad_to_max_length: the tokenizer has no model_max_length; pass max_length"
                )
            width = length
        left = (options.padding_side or self.padding_side) == "left"
        return padded(rows, Padding(width, left, max(self.get_pad_token_id(), 0)))

    @overload
    def decode(self, tokens: Row, skip_special_tokens: bool = True) -> str: ...
    @overload
    def decode(
        self, tokens: HasData | Sequence[Row], skip_special_tokens: bool = True
    ) -> list[str]: ...
    @overload
    def decode(self, tokens: npt.NDArray[Any], skip_special_tokens: bool = True) -> Any: ...

    @checked
    def decode(self, tokens: Row | Rows, skip_special_tokens: bool = True) -> str | list[str]:
        """Return the text of ids, or the texts of a batch.

        Invalid UTF-8 is replaced, unknown ids are dropped. Lists of different lengths are padded
        to the longest, as in openvino_genai; without ``skip_special_tokens``, padding has text.

        Args:
            tokens: ids of one text: a list, or an array [n]; or ids of several texts: a list of
                lists, a tensor i64 [texts, n], or an array.
            skip_special_tokens: whether special tokens have no text.

        Raises:
            PromptError: the ids are not integers, or a tensor has another type or shape.
        """
        if is_row(tokens):
            return self._text(row_of(tokens), skip_special_tokens)
        rows = rows_of(tokens)
        longest = max(map(len, rows), default=0)
        padding = [self._ids["pad"]] if self._ids["pad"] >= 0 else []
        return [
            self._text([*row, *padding * (longest - len(row))], skip_special_tokens) for row in rows
        ]

    @checked
    def apply_chat_template(
        self,
        history: ChatHistory | Sequence[Mapping[str, Any]],
        add_generation_prompt: bool,
        chat_template: str = "",
        tools: Sequence[Mapping[str, Any]] | None = None,
        extra_context: Mapping[str, Any] | None = None,
    ) -> str:
        """Render messages as a prompt, in the form that the template supports.

        Args:
            history: the messages, with tools and extra context as defaults.
            add_generation_prompt: end with the beginning of the assistant's turn.
            chat_template: a template instead of the model's.
            tools: the template's variable ``tools``.
            extra_context: further variables.

        Raises:
            TemplateError: the model has no template, or the template fails.
        """
        if not isinstance(history, ChatHistory):
            history = ChatHistory(history)
        context = history.get_extra_context() if extra_context is None else dict(extra_context)
        chosen = history.get_tools() if tools is None else list(tools)
        return self._templates.render(
            history.get_messages(), chosen, add_generation_prompt, context, chat_template
        )

    @checked
    def template_for(self, tools: bool) -> str:
        """Return the template of chats with or without tools; empty if there is none. Ours."""
        return self._templates.source(tools)

    def shows_tools(self) -> bool:
        """Return whether the template for tools shows them; else they are described. Ours."""
        return self._templates.shows_tools()

    @property
    def chat_template(self) -> str:
        """Current template, empty if there is none; a new one is also that for chats with tools."""
        return self._templates.chat

    @chat_template.setter
    @checked
    def chat_template(self, chat_template: str) -> None:
        self._templates.chat, self._templates.with_tools = chat_template, ""

    @checked
    def set_chat_template(self, chat_template: str) -> None:
        """Replace the template, also that for chats with tools."""
        self.chat_template = chat_template

    def get_original_chat_template(self) -> str:
        """Return the current template, as openvino_genai: one that was set replaces the model's."""
        return self._templates.chat

    def get_bos_token(self) -> str:
        """Return the token that begins a text; empty if the model has none."""
        return self._tokens["bos"]

    def get_eos_token(self) -> str:
        """Return the token that ends a text or a turn; empty if the model has none."""
        return self._tokens["eos"]

    def get_pad_token(self) -> str:
        """Return the padding token, else that which ends a text; empty if the model has none."""
        return self._tokens["pad"]

    def get_bos_token_id(self) -> int:
        """Return the id of the beginning-of-text token; -1 if the model has none."""
        return self._ids["bos"]

    def get_eos_token_id(self) -> int:
        """Return the id of the end-of-text token; -1 if the model has none."""
        return self._ids["eos"]

    def get_pad_token_id(self) -> int:
        """Return the id of the padding token; -1 if the model has none."""
        return self._ids["pad"]

    @property
    def padding_side(self) -> str:
        """Padding side "left" or "right", the default, for embedding and reranking pipelines."""
        return self._side("padding")

    @property
    def model_max_length(self) -> int | None:
        """Maximum number of tokens in the settings; None if it is not set."""
        length = self._settings.get("model_max_length")
        # "No limit" is written as a huge float or integer.
        return length if isinstance(length, int) and 0 < length < _NO_LIMIT else None

    @property
    def unsettled(self) -> tuple[str, ...]:
        """Strings that decoding changes, e.g. a space before a comma; see TextDecoder. Ours."""
        return UNSETTLED if self._settings.get(CLEAN_UP) is True else ()

    @property
    def special_tokens(self) -> dict[int, AddedToken]:
        """Special tokens by id."""
        added = self._tokenizer.get_added_tokens_decoder()
        return {number: token for number, token in added.items() if token.special}

    def to_json(self) -> str:
        """Return tokenizer.json's content, for a tokenizer with other settings."""
        return self._tokenizer.to_str()

    def get_vocab(self) -> dict[bytes, int]:
        """Return the ids of all tokens, by the bytes of their texts."""
        return self.vocabulary.ids

    @checked
    def bytes_of(self, token: int) -> bytes:
        """Return the bytes of a token within a text; none for an unknown id. Ours.

        Raises:
            ModelError: see ``Vocabulary.decoded_bytes``.
        """
        known = self.vocabulary.decoded_bytes
        return known[token] if 0 <= token < len(known) else b""

    def get_vocab_vector(self) -> list[str]:
        """Return the texts of all tokens, in the order of ids.

        Raises:
            PromptError: the bytes of a token are not UTF-8.
        """
        return self.vocabulary.texts

    def supports_paired_input(self) -> bool:
        """Return True: every tokenizer.json joins pairs of texts."""
        return True

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids: the largest one plus 1."""
        return self.vocabulary.size

    @property
    def text_of(self) -> Callable[..., str]:
        """Decoder of a list of ids without checks of its arguments; see TextDecoder. Ours."""
        return self._text

    def _text(self, tokens: list[int], skip_special_tokens: bool) -> str:
        return self._tokenizer.decode(tokens, skip_special_tokens=skip_special_tokens)

    def _side(self, name: str) -> str:
        """Return the side of padding or truncation in the settings; "right" by default."""
        return "left" if self._settings.get(f"{name}_side") == "left" else "right"
