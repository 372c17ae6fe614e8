"""Text to token ids and back, and the chat template.

Source: openvino_genai.Tokenizer, fact sheet genai §a.6; files of Hugging Face folders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from tokenizers import AddedToken

from genai_layer.chat_history import ChatHistory
from genai_layer.chat_template import render
from genai_layer.errors import ModelError, PromptError, TemplateError
from genai_layer.files import is_file
from genai_layer.json_file import read_object
from genai_layer.results import TokenizedInputs

_SPECIAL: tuple[str, ...] = ("bos", "eos", "pad")
MAX_FILE_BYTES = 256 << 20
_NO_LIMIT = 1 << 24


class Tokenizer:
    """The tokenizer of a model folder.

    Args:
        models_path: a folder with tokenizer.json and, if it has them, tokenizer_config.json,
            special_tokens_map.json, config.json, chat_template.json and chat_template.jinja.

    Raises:
        ModelError: a file is missing or broken.
    """

    def __init__(self, models_path: str | Path) -> None:
        folder = Path(models_path)
        path = folder / "tokenizer.json"
        if not is_file(path):
            raise ModelError(f"{folder}: no tokenizer.json there")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ModelError(f"{path}: larger than any tokenizer")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception
            raise ModelError(f"{path}: not a tokenizer: {error}") from error
        self._settings = read_object(folder / "tokenizer_config.json")
        self._add_tokens(folder)
        self._tokens = _special_tokens(folder)
        self._ids = self._special_ids(folder)
        self._chat_template = _find_template(folder)
        self._original_template = self._chat_template

    def encode(
        self, prompts: str | Sequence[str], add_special_tokens: bool = True
    ) -> TokenizedInputs:
        """Encode texts; several are padded on the left to the longest.

        Returns:
            ids and mask, i64 [texts, longest].

        Raises:
            PromptError: a text has half a character, as bytes of a command line that are no UTF-8.
        """
        texts = [prompts] if isinstance(prompts, str) else list(prompts)
        for text in texts:
            _check_characters(text)
        encoded = self._tokenizer.encode_batch(texts, add_special_tokens=add_special_tokens)
        rows = [encoding.ids for encoding in encoded]
        longest = max(map(len, rows), default=0)
        ids = np.full((len(rows), longest), max(self.get_pad_token_id(), 0), np.int64)
        mask = np.zeros_like(ids)
        for index, row in enumerate(rows):
            ids[index, longest - len(row) :] = row
            mask[index, longest - len(row) :] = 1
        return TokenizedInputs(ids, mask)

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Give the text of ids; what is no UTF-8 is replaced, unknown ids give nothing."""
        return self._tokenizer.decode(list(tokens), skip_special_tokens=skip_special_tokens)

    def apply_chat_template(
        self,
        history: ChatHistory | Sequence[Mapping[str, Any]],
        add_generation_prompt: bool,
        chat_template: str = "",
        tools: Sequence[Any] | None = None,
        extra_context: Mapping[str, Any] | None = None,
    ) -> str:
        """Write messages as a prompt.

        Args:
            history: the messages; its tools and extra context count unless given here.
            add_generation_prompt: end with the beginning of the assistant's turn.
            chat_template: used instead of the model's.
            tools: what the template gets as ``tools``.
            extra_context: further variables.

        Raises:
            TemplateError: there is no template, or it fails.
        """
        source = chat_template or self._chat_template
        if not source:
            raise TemplateError(
                "the model has no chat template; use set_chat_template, or "
                "apply_chat_template=False"
            )
        if not isinstance(history, ChatHistory):
            history = ChatHistory(history)
        context = history.get_extra_context() if extra_context is None else dict(extra_context)
        chosen = history.get_tools() if tools is None else list(tools)
        variables = {f"{name}_token": token for name, token in self._tokens.items()}
        variables |= {"tools": chosen or None, **context}
        return render(source, history.get_messages(), add_generation_prompt, variables)

    @property
    def chat_template(self) -> str:
        """The template in use; empty if there is none."""
        return self._chat_template

    def set_chat_template(self, chat_template: str) -> None:
        """Use another template."""
        self._chat_template = chat_template

    def get_original_chat_template(self) -> str:
        """Give the model's own template."""
        return self._original_template

    def get_bos_token(self) -> str:
        """Give the token that begins a text; empty if there is none."""
        return self._tokens["bos"]

    def get_eos_token(self) -> str:
        """Give the token that ends a text or a turn; empty if there is none."""
        return self._tokens["eos"]

    def get_pad_token(self) -> str:
        """Give the padding token, or the one that ends a text."""
        return self._tokens["pad"] or self._tokens["eos"]

    def get_bos_token_id(self) -> int:
        """Give its id; -1 if there is none."""
        return self._ids["bos"]

    def get_eos_token_id(self) -> int:
        """Give its id; -1 if there is none."""
        return self._ids["eos"]

    def get_pad_token_id(self) -> int:
        """Give its id, or that of the token that ends a text."""
        return self._ids["pad"] if self._ids["pad"] >= 0 else self._ids["eos"]

    @property
    def padding_side(self) -> str:
        """Where texts that are read alone are padded: "left" or, if nothing else is said, right."""
        return "left" if self._settings.get("padding_side") == "left" else "right"

    @property
    def model_max_length(self) -> int | None:
        """Tokens that the model has positions for; None if nothing is said."""
        length = self._settings.get("model_max_length")
        # "No limit" is written as a huge float or integer.
        return length if isinstance(length, int) and 0 < length < _NO_LIMIT else None

    def to_json(self) -> str:
        """Give what tokenizer.json has, for a tokenizer with settings of its own."""
        return self._tokenizer.to_str()

    def get_vocab(self) -> dict[str, int]:
        """Give all tokens with their ids."""
        return self._tokenizer.get_vocab(with_added_tokens=True)

    def _add_tokens(self, folder: Path) -> None:
        """Add the tokens that tokenizer_config.json alone lists, as transformers does.

        Raises:
            ModelError: the list is broken, or a token's id is not the next free one.
        """
        path = folder / "tokenizer_config.json"
        listed: dict[str, dict[str, Any]] = self._settings.get("added_tokens_decoder") or {}
        try:
            tokens = {int(number): AddedToken(**given) for number, given in listed.items()}
        except (AttributeError, TypeError, ValueError) as error:
            raise ModelError(f"{path}: added_tokens_decoder is broken: {error}") from None
        add: Callable[[list[AddedToken]], int] = self._tokenizer.add_tokens  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] (its list has no element type)
        for number, token in sorted(tokens.items(), key=lambda each: each[0]):
            if add([token]) and self._tokenizer.token_to_id(token.content) != number:
                raise ModelError(
                    f"{path}: added token {token.content!r} has id {number}, but tokenizer.json "
                    "leaves another id for it; save the tokenizer anew with save_pretrained"
                )

    def _special_ids(self, folder: Path) -> dict[str, int]:
        """Ids of the special tokens: config.json's, else those of their texts."""
        config = read_object(folder / "config.json")
        ids: dict[str, int] = {}
        for name in _SPECIAL:
            given = config.get(f"{name}_token_id")
            if isinstance(given, list) and given:
                given = given[0]  # pyright: ignore[reportUnknownVariableType] (JSON)
            if not isinstance(given, int):
                token = self._tokens[name]
                given = self._tokenizer.token_to_id(token) if token else None
            ids[name] = -1 if given is None else given
            if not self._tokens[name] and ids[name] >= 0:
                self._tokens[name] = self._tokenizer.id_to_token(ids[name]) or ""
        return ids


def _special_tokens(folder: Path) -> dict[str, str]:
    """Texts of the special tokens: special_tokens_map.json's, else tokenizer_config.json's."""
    tokens: dict[str, str] = dict.fromkeys(_SPECIAL, "")
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        found = read_object(folder / name)
        for special in _SPECIAL:
            given = found.get(f"{special}_token")
            if isinstance(given, dict):
                given = given.get("content")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] (JSON)
            if isinstance(given, str):
                tokens[special] = given
    return tokens


def _find_template(folder: Path) -> str:
    """The chat template: the .jinja file wins over the .json, and that over the settings."""
    plain = folder / "chat_template.jinja"
    if is_file(plain):
        try:
            return plain.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ModelError(f"{plain}: cannot be read: {error}") from error
    for name in ("chat_template.json", "tokenizer_config.json"):
        found = read_object(folder / name).get("chat_template")
        if isinstance(found, str):
            return found
        if isinstance(found, list):
            return _named_template(found)  # pyright: ignore[reportUnknownArgumentType] (JSON)
    return ""


def _named_template(templates: Sequence[Any]) -> str:
    """Of several templates the one called default, else the first."""
    entries: list[dict[str, Any]] = [entry for entry in templates if isinstance(entry, dict)]
    named = {
        str(e["name"]): str(e["template"]) for e in entries if {"name", "template"} <= e.keys()
    }
    return named.get("default", next(iter(named.values()), ""))


def _check_characters(text: str) -> None:
    """See that a text can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PromptError(
            f"character {error.start} of a text is {text[error.start]!r}, which is none: "
            "give text in UTF-8"
        ) from None
