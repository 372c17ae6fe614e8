"""Decoder: the ops of openvino_detokenizer.xml as ``tokenizers.decoders``.

Source: openvino_tokenizers 2026.4, tokenizer_pipeline.py and hf_parser.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tokenizers import Regex, decoders

from genai_layer.openvino_tokenizer.graph import Graph, Node
from genai_layer.openvino_tokenizer.normalizers import arguments, replaced
from genai_layer.token_names import byte_level_bytes, unigram_bytes, word_piece_bytes

_INPUTS = {
    "VocabDecoder": 0,
    "ByteFallback": 0,
    "FuzeRagged": 2,
    "RegexNormalization": 0,
    "UTF8Validate": 0,
    "Convert": 0,
}
_CLEAN_UP = r"(?| ([\\.\\?\\!,])| ('[ms])| (') | ('[rv]e)| (n't))"
_CLEANED = r" (?=[\\.?!,])| (?='[ms])| (?=' )|(?<= ') | (?='[rv]e)| (?=n't)"

UNSETTLED = (*(f" {mark}" for mark in "\\.?!,"), " ' ", "' ", " 'm", " 's", " 've", " 're", " n't")
"""Strings that the replacement shortens; a quotation mark ends one, if a space preceded it."""


def skipped(graph: Graph) -> set[int]:
    """Return the ids that decoding leaves out.

    Raises:
        ModelError: they are not constant.
    """
    node = graph.only("VocabDecoder")
    if len(node.ports) < 5:
        return set()
    source = graph.source(node, 4)
    found = graph.array(source, 0) if source.type == "Slice" else graph.array(node, 4)
    return {int(number) for number in found}


def cleaning() -> Any:
    """Return the decoder that removes spaces before punctuation and contractions."""
    return decoders.Replace(Regex(_CLEANED), "")


def cleans_up(graph: Graph) -> bool:
    """Return whether a detokenizer removes these spaces."""
    found = [node for node in graph.nodes.values() if node.type == "RegexNormalization"]
    return any(arguments(graph, node) == (_CLEAN_UP, "$1") for node in found)


def decoder(graph: Graph, tokens: dict[int, str], is_bytes: bool) -> Any:
    """Return the decoder.

    Args:
        graph: the detokenizer.
        tokens: the tokens by id, as tokenizers has them.
        is_bytes: whether characters of tokens stand for bytes.

    Raises:
        ModelError: the detokenizer does something that decoders cannot do exactly.
    """
    last = graph.source(graph.only("StringTensorPack"), 0)
    vocabulary, *steps = graph.chain(last, "Parameter", _INPUTS)
    if vocabulary.type == "Convert":
        vocabulary, *steps = steps
    if [step.type for step in steps].count("FuzeRagged") != 1 or vocabulary.type != "VocabDecoder":
        raise graph.unsupported(vocabulary, "the tokens are not joined once")
    found = _written(graph, vocabulary, tokens, is_bytes)
    validated = False
    for step in steps:
        if step.type == "UTF8Validate":
            validated = step.flag("replace_mode")
        elif step.type == "FuzeRagged":
            found.append(decoders.ByteLevel() if is_bytes else decoders.Fuse())
        elif step.type == "ByteFallback":
            found.append(decoders.ByteFallback())
        else:
            found.append(_replacement(graph, step))
    if not validated:
        raise graph.unsupported(vocabulary, "invalid UTF-8 is not replaced by U+FFFD")
    return decoders.Sequence(found)


def _replacement(graph: Graph, node: Node) -> Any:
    """Return the decoder of a RegexNormalization."""
    pattern, content = arguments(graph, node)
    if (pattern, content) == (_CLEAN_UP, "$1"):
        return cleaning()
    if (pattern, content) == ("^ ", ""):
        return decoders.Strip(" ", 1, 0)
    return decoders.Replace(replaced(graph, node, pattern, content), content)


def _written(graph: Graph, node: Node, tokens: dict[int, str], is_bytes: bool) -> list[Any]:
    """Return the decoders that make the op's strings of the tokens.

    Raises:
        ModelError: none does.
    """
    strings = graph.strings(node, 1)
    for write, found in _WRITERS:
        if is_bytes == (write is byte_level_bytes) and all(
            number < len(strings) and strings[number] == write(token)
            for number, token in tokens.items()
        ):
            return list(found)
    raise graph.unsupported(node, "its strings are not those of the tokenizer's tokens")


_SPACES = decoders.Replace("▁", " ")
_WRITERS: tuple[tuple[Callable[[str], bytes], tuple[Any, ...]], ...] = (
    (byte_level_bytes, ()),
    (str.encode, ()),
    (
        word_piece_bytes,
        (
            decoders.Replace(Regex(r"\A(?!##)(?![.,!?]\z)"), " "),
            decoders.Replace(Regex(r"\A##"), ""),
        ),
    ),
    (partial(unigram_bytes, fallback=False), (_SPACES,)),
    (partial(unigram_bytes, fallback=True), (_SPACES, decoders.ByteFallback())),
)
