"""Effects of tokenizer_config.json on the tokenizer of tokenizer.json, as in transformers.

Both versions add special tokens. Settings that transformers 4 wrote also change the tokenizer by
the rules of its class; transformers 5 writes a tokenizer.json that has the changes already.

Source: transformers 4.57.6 and 5.24.0, measured; docs/reference/genai.md#tokenizer-settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers

from genai_layer.errors import ModelError
from genai_layer.openvino_tokenizer import CLEAN_UP, cleaning, surrounded
from genai_layer.tokenizer_classes import ADDS_BOS_AND_EOS, SETS_CASE, class_of, is_complete
from genai_layer.tokenizer_files import NAMED, TokenizerFiles, content_of

_LISTS = ("additional_special_tokens", "extra_special_tokens")


def apply_settings(tokenizer: tokenizers.Tokenizer, files: TokenizerFiles) -> None:
    """Apply settings to the tokenizer of tokenizer.json.

    Args:
        tokenizer: the tokenizer, which is changed.
        files: the other files, as transformers reads them.

    Raises:
        ModelError: a token is broken, or the id of a listed one is not the next free one.
    """
    settings = files.settings
    add: Callable[[list[AddedToken]], int] = tokenizer.add_tokens  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] (its list has no element type)
    own = {} if files.has_decoder else tokenizer.get_added_tokens_decoder()
    for number in sorted(files.added.keys() - own.keys()):
        token = files.added[number]
        if add([token]) and tokenizer.token_to_id(token.content) != number:
            raise ModelError(
                f"{files.adding}: added token {token.content!r} has id {number}, but "
                "tokenizer.json assigns another id; save the tokenizer again with save_pretrained"
            )
    add([*_special_tokens(tokenizer, files)])
    tokenizer.encode_special_tokens = settings.get("split_special_tokens") is True
    if not is_complete(settings):
        _set_prefix_space(tokenizer, settings)
        if class_of(settings) in SETS_CASE:
            _set_case(tokenizer, settings)
        if class_of(settings) in ADDS_BOS_AND_EOS:
            _set_surroundings(tokenizer, settings)


def cleans_up(tokenizer: tokenizers.Tokenizer, settings: Mapping[str, Any]) -> bool:
    """Return whether decoding removes spaces; transformers 5 does not for BPE."""
    kept = is_complete(settings) and isinstance(tokenizer.model, models.BPE)
    return settings.get(CLEAN_UP) is True and not kept


def clean_up(tokenizer: tokenizers.Tokenizer, as_models: bool) -> None:
    """Remove spaces before punctuation and contractions from decoded texts.

    Args:
        tokenizer: the tokenizer, which is changed.
        as_models: as openvino_tokenizers' detokenizers, in one replacement; else as transformers,
            in one after another.
    """
    steps = [cleaning()] if as_models else _CLEANING
    whole = tokenizer.decoder or _SPACED
    tokenizer.decoder = decoders.Sequence([whole, decoders.Fuse(), *steps])


_CLEANING = [
    decoders.Replace(text, text.strip())
    for text in (" .", " ?", " !", " ,", " ' ", " n't", " 'm", " 's", " 've", " 're")
]
_SPACED = decoders.WordPiece(prefix="\0", cleanup=False)
"""Decoder that joins tokens by spaces, as a tokenizer without a decoder does."""


def _special_tokens(tokenizer: tokenizers.Tokenizer, files: TokenizerFiles) -> Iterator[AddedToken]:
    """Yield the special tokens; those that the tokenizer has keep the spaces that they take.

    Beside added_tokens_decoder, an object has the flags of its own, unless its token is listed.

    Raises:
        ModelError: a list of tokens, or a token, is broken.
    """
    known = tokenizer.get_added_tokens_decoder().values()
    flags = {token.content: cast("dict[str, Any]", token.__getstate__()) for token in known}  # pyright: ignore[reportUnknownMemberType] (its state has no types)
    kept = {token.content for token in files.added.values()} if files.has_decoder else flags.keys()
    for token in _listed(files.settings):
        content = content_of(token)
        own = cast("dict[str, Any]", token) if isinstance(token, dict) else {}
        given = own if own and content not in kept else flags.get(content, own)
        try:
            yield AddedToken(content, **{n: given[n] for n in _FLAGS if n in given}, special=True)
        except TypeError as error:
            raise ModelError(f"tokenizer_config.json: token {content!r}: {error}") from None


_FLAGS = ("lstrip", "rstrip", "single_word", "normalized")


def _listed(settings: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the special tokens by name, then those of lists and of objects."""
    for name in NAMED:
        token = settings.get(f"{name}_token")
        if token is not None:
            yield token
    for name in _LISTS:
        found: object = settings.get(name) or []
        if not isinstance(found, list | dict):
            raise ModelError(f"tokenizer_config.json: {name} = {found!r}: write a list of tokens")
        tokens = cast("dict[str, Any] | list[Any]", found)
        yield from tokens.values() if isinstance(tokens, dict) else tokens


def _set_prefix_space(tokenizer: tokenizers.Tokenizer, settings: Mapping[str, Any]) -> None:
    """Set whether a byte-level text gets a space in front."""
    given, first = settings.get("add_prefix_space", False), tokenizer.pre_tokenizer
    if isinstance(first, pre_tokenizers.ByteLevel) and isinstance(given, bool):
        first.add_prefix_space = given


def _set_case(tokenizer: tokenizers.Tokenizer, settings: Mapping[str, Any]) -> None:
    """Set case, accents and Chinese characters of BERT's normalizer."""
    found = tokenizer.normalizer
    if isinstance(found, normalizers.BertNormalizer):
        found.lowercase = settings["do_lower_case"]
        found.strip_accents = settings["strip_accents"]
        found.handle_chinese_chars = settings.get(
            "tokenize_chinese_chars", found.handle_chinese_chars
        )


def _set_surroundings(tokenizer: tokenizers.Tokenizer, settings: Mapping[str, Any]) -> None:
    """Put the tokens that begin and end a text around it, where the settings add them."""
    around: list[list[tuple[int, str]]] = [[], []]
    for name, tokens in zip(("bos", "eos"), around, strict=True):
        token = content_of(settings.get(f"{name}_token"))
        number = tokenizer.token_to_id(token) if token else None
        if settings.get(f"add_{name}_token") is True and number is not None:
            tokens.append((number, token))
    tokenizer.post_processor = surrounded(*around)
