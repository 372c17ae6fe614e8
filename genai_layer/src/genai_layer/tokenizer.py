"""Tokenizer: text to token ids and back, and the chat template.

Source: openvino_genai.Tokenizer, docs/reference/genai.md#tokenizer; files of Hugging Face folders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from tokenizers import AddedToken

from genai_layer import openvino_tokenizer
from genai_layer.chat_history import ChatHistory
from genai_layer.chat_template import render
from genai_layer.errors import ModelError, PromptError, TemplateError
from genai_layer.files import is_file
from genai_layer.json_file import read_object
from genai_layer.openvino_tokenizer import OpenVINOTokenizer
from genai_layer.results import TokenizedInputs

_SPECIAL: tuple[str, ...] = ("bos", "eos", "pad")
MAX_FILE_BYTES = 256 << 20
_NO_LIMIT = 1 << 24


class Tokenizer:
    """The tokenizer of a model folder.

    Args:
        models_path: a folder with tokenizer.json, else with openvino_tokenizer.xml and
            openvino_detokenizer.xml; and, optionally, with tokenizer_config.json,
            special_tokens_map.json, config.json, chat_template.json and chat_template.jinja.

    Raises:
        ModelError: a file is missing or broken, or openvino_tokenizer.xml has a step that is not
            supported.
    """

    def __init__(self, models_path: str | Path) -> None:
        folder = Path(models_path)
        self._settings = read_object(folder / "tokenizer_config.json")
        self._tokens = _special_tokens(folder)
        converted = _read_converted(folder)
        if converted is None:
            self._tokenizer = _load(folder / "tokenizer.json")
            self._add_tokens(folder)
        else:
            self._tokenizer = converted.tokenizer
        self._ids = self._special_ids(folder)
        self._chat_template = _find_template(folder)
        if converted is not None:
            self._override(converted)
        self._original_template = self._chat_template

    def encode(
        self, prompts: str | Sequence[str], add_special_tokens: bool = True
    ) -> TokenizedInputs:
        """Encode texts; shorter texts are padded on the left to the longest.

        Returns:
            ids and mask, i64 [texts, longest].

        Raises:
            PromptError: a text has a lone surrogate, e.g. from a command line that is not UTF-8.
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
        """Return the text of ids; invalid UTF-8 is replaced, unknown ids are dropped."""
        return self._tokenizer.decode(list(tokens), skip_special_tokens=skip_special_tokens)

    def apply_chat_template(
        self,
        history: ChatHistory | Sequence[Mapping[str, Any]],
        add_generation_prompt: bool,
        chat_template: str = "",
        tools: Sequence[Any] | None = None,
        extra_context: Mapping[str, Any] | None = None,
    ) -> str:
        """Render messages as a prompt.

        Args:
            history: the messages, with tools and extra context as defaults.
            add_generation_prompt: end with the beginning of the assistant's turn.
            chat_template: a template instead of the model's.
            tools: the template's variable ``tools``.
            extra_context: further variables.

        Raises:
            TemplateError: the model has no template, or the template fails.
        """
        source = chat_template or self._chat_template
        if not source:
            raise TemplateError(
                "the model has no chat template; pass one with set_chat_template, or set "
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
        """Current template; empty if the model has none."""
        return self._chat_template

    def set_chat_template(self, chat_template: str) -> None:
        """Replace the template."""
        self._chat_template = chat_template

    def get_original_chat_template(self) -> str:
        """Return the model's own template."""
        return self._original_template

    def get_bos_token(self) -> str:
        """Return the token that begins a text; empty if the model has none."""
        return self._tokens["bos"]

    def get_eos_token(self) -> str:
        """Return the token that ends a text or a turn; empty if the model has none."""
        return self._tokens["eos"]

    def get_pad_token(self) -> str:
        """Return the padding token, else the end-of-text token."""
        return self._tokens["pad"] or self._tokens["eos"]

    def get_bos_token_id(self) -> int:
        """Return the id of the beginning-of-text token; -1 if the model has none."""
        return self._ids["bos"]

    def get_eos_token_id(self) -> int:
        """Return the id of the end-of-text token; -1 if the model has none."""
        return self._ids["eos"]

    def get_pad_token_id(self) -> int:
        """Return the id of the padding token, else of the end-of-text token."""
        return self._ids["pad"] if self._ids["pad"] >= 0 else self._ids["eos"]

    @property
    def padding_side(self) -> str:
        """Padding side "left" or "right", the default, for embedding and reranking pipelines."""
        return "left" if self._settings.get("padding_side") == "left" else "right"

    @property
    def model_max_length(self) -> int | None:
        """Maximum number of tokens in the settings; None if it is not set."""
        length = self._settings.get("model_max_length")
        # "No limit" is written as a huge float or integer.
        return length if isinstance(length, int) and 0 < length < _NO_LIMIT else None

    def to_json(self) -> str:
        """Return tokenizer.json's content, for a tokenizer with other settings."""
        return self._tokenizer.to_str()

    def get_vocab(self) -> dict[str, int]:
        """Return all tokens with their ids."""
        return self._tokenizer.get_vocab(with_added_tokens=True)

    def _add_tokens(self, folder: Path) -> None:
        """Add the tokens that only tokenizer_config.json lists, as transformers does.

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
                    "assigns another id; save the tokenizer again with save_pretrained"
                )

    def _override(self, converted: OpenVINOTokenizer) -> None:
        """Replace what the folder's files say by what the tokenizer model says."""
        for name in _SPECIAL:
            if (number := getattr(converted, f"{name}_token_id")) >= 0:
                self._ids[name] = number
                self._tokens[name] = getattr(converted, f"{name}_token")
        self._chat_template = converted.chat_template or self._chat_template

    def _special_ids(self, folder: Path) -> dict[str, int]:
        """Return the special tokens' ids: those of config.json, else those of the tokens' texts."""
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


def _read_converted(folder: Path) -> OpenVINOTokenizer | None:
    """Return the tokenizer of openvino_tokenizer.xml; None if the folder has tokenizer.json."""
    if is_file(folder / "tokenizer.json"):
        return None
    if not is_file(folder / "openvino_tokenizer.xml"):
        raise ModelError(f"{folder}: has no tokenizer.json and no openvino_tokenizer.xml")
    return openvino_tokenizer.read(folder)


def _load(path: Path) -> tokenizers.Tokenizer:
    """Return the tokenizer of tokenizer.json."""
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ModelError(f"{path}: larger than 256 MiB")
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise ModelError(f"{path}: not a tokenizer: {error}") from error


def _special_tokens(folder: Path) -> dict[str, str]:
    """Return the special tokens: special_tokens_map.json's, else tokenizer_config.json's."""
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
    """Return the chat template of the .jinja file, else of the .json file, else of the settings."""
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
    """Return the template named "default", else the first."""
    entries: list[dict[str, Any]] = [entry for entry in templates if isinstance(entry, dict)]
    named = {
        str(e["name"]): str(e["template"]) for e in entries if {"name", "template"} <= e.keys()
    }
    return named.get("default", next(iter(named.values()), ""))


def _check_characters(text: str) -> None:
    """Reject a text that cannot be encoded in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PromptError(
            f"character {error.start} of a text is {text[error.start]!r}, a lone surrogate; "
            "pass text in UTF-8"
        ) from None
