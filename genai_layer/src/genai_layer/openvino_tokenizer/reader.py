"""Reader of tokenizer models: the steps of the graphs, as one ``tokenizers.Tokenizer``.

Source: openvino_tokenizers 2026.4, tokenizer_pipeline.py and hf_parser.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, normalizers, pre_tokenizers

from genai_layer.errors import ModelError
from genai_layer.files import is_file
from genai_layer.openvino_tokenizer import decoding, template
from genai_layer.openvino_tokenizer.graph import REMEDY, Graph, Node
from genai_layer.openvino_tokenizer.models import Vocabulary, bpe, unigram, wordpiece
from genai_layer.openvino_tokenizer.normalizers import normalizer
from genai_layer.openvino_tokenizer.splits import (
    SpecialToken,
    is_han,
    is_metaspace_first,
    metaspace,
    special_tokens,
    splits,
)

SPECIAL: tuple[str, ...] = ("bos", "eos", "pad")
MAX_FILE_BYTES = 256 << 20

_MODELS = {"BPETokenizer": bpe, "WordpieceTokenizer": wordpiece, "UnigramTokenizer": unigram}
_OTHER_MODELS = ("SentencepieceTokenizer", "VocabEncoder", "TrieTokenizer")
_INPUTS = dict.fromkeys((*_MODELS, "RegexSplit", "SpecialTokensSplit"), 2) | {
    "RegexNormalization": 0,
    "CharsMapNormalization": 0,
}


@dataclass(slots=True)
class TokenizerContent:
    """A tokenizer, its special tokens and its settings."""

    tokenizer: tokenizers.Tokenizer
    settings: dict[str, Any]
    """Entries of tokenizer_config.json."""
    tokens: dict[str, str]
    """Special tokens by "bos", "eos" and "pad"; empty if there is none."""
    ids: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SPECIAL, -1))
    """Ids of the special tokens; -1 if there is none."""
    chat_template: str = ""
    tool_template: str = ""
    """Template for chats with tools; empty if the chat template is for them, too."""

    def override(self, converted: TokenizerContent) -> None:
        """Replace what the folder's files say by what the tokenizer model says."""
        for name, number in converted.ids.items():
            if number >= 0:
                self.ids[name], self.tokens[name] = number, converted.tokens[name]
        self.settings |= converted.settings
        self.chat_template = converted.chat_template or self.chat_template


def read(folder: Path) -> TokenizerContent:
    """Read openvino_tokenizer.xml and openvino_detokenizer.xml of a folder.

    Raises:
        ModelError: a file is missing or broken, or has a step without exact counterpart here.
    """
    found = [
        _content(folder / f"openvino_{name}{suffix}")
        for name in ("tokenizer", "detokenizer")
        for suffix in (".xml", ".bin")
    ]
    texts: list[str] = []
    for data, name in zip(found[::2], ("tokenizer", "detokenizer"), strict=True):
        try:
            texts.append(data.decode())
        except UnicodeDecodeError as error:
            raise ModelError(f"{folder}: openvino_{name}.xml is not UTF-8: {error}") from None
    return read_model(texts[0], found[1], texts[1], found[3])


def read_model(
    tokenizer_xml: str,
    tokenizer_weights: bytes,
    detokenizer_xml: str,
    detokenizer_weights: bytes,
) -> TokenizerContent:
    """Read a tokenizer and its detokenizer from memory.

    Raises:
        ModelError: a model is broken, or has a step without exact counterpart here.
    """
    graph = Graph(tokenizer_xml, tokenizer_weights, "openvino_tokenizer.xml")
    back = Graph(detokenizer_xml, detokenizer_weights, "openvino_detokenizer.xml")
    node = graph.only(*_MODELS, *_OTHER_MODELS)
    if node.type in _OTHER_MODELS:
        raise graph.unsupported(node, "the op is not supported")
    words = _MODELS[node.type](graph, node)
    steps = graph.chain(graph.source(node, 2), "StringTensorUnpack", _INPUTS)
    made = _tokenizer(graph, words)
    specials = _prepare(graph, made, words, steps)
    if back.rt_info.get("skip_special_tokens") == "False":
        raise back.error("skip_special_tokens=False", "convert with skip_special_tokens=True")
    tokens = {number: token for token, number in words.ids.items()}
    _add(graph, made, words, specials, decoding.skipped(back))
    made.decoder = decoding.decoder(back, tokens, words.is_bytes)
    around = template.read(graph, tokens)
    made.post_processor = around.post_processor(tokens)
    return _described(graph, made, template.settings(graph, around.added))


def _tokenizer(graph: Graph, words: Vocabulary) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer(words.build())
    except Exception as error:  # the library raises plain Exception
        raise graph.error(f"the vocabulary is broken: {error}") from None


def _prepare(
    graph: Graph, made: tokenizers.Tokenizer, words: Vocabulary, steps: list[Node]
) -> list[SpecialToken]:
    """Set what happens to a text before the model; return the tokens that are found first."""
    specials: list[SpecialToken] = []
    normal: list[Any] = []
    first = is_metaspace_first(steps)
    types = [step.type for step in steps]
    if "SpecialTokensSplit" in types[first + 1 :]:
        raise graph.error("SpecialTokensSplit is not the first op", REMEDY)
    if "RegexSplit" in types and set(types[types.index("RegexSplit") :]) != {"RegexSplit"}:
        raise graph.error("a RegexSplit precedes other ops", REMEDY)
    for step in steps[first:]:
        if step.type == "SpecialTokensSplit":
            specials = special_tokens(graph, step)
        elif step.type != "RegexSplit" and not is_han(graph, step):
            normal += normalizer(graph, step)
    found = splits(graph, steps[first:])
    if first:
        found.insert(0, metaspace(graph, steps, specials))
    if words.is_bytes:
        found.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    if normal:
        made.normalizer = normalizers.Sequence(normal)
    if found:
        made.pre_tokenizer = pre_tokenizers.Sequence(found)
    return specials


def _add(
    graph: Graph,
    made: tokenizers.Tokenizer,
    words: Vocabulary,
    specials: list[SpecialToken],
    skipped: set[int],
) -> None:
    """Add the tokens that are found before anything else.

    Raises:
        ModelError: a token is not in the vocabulary, or one that decoding leaves out is not added.
    """
    for token in specials:
        if token.text not in words.ids:
            raise graph.error(f"special token {token.text!r} is not in the vocabulary", REMEDY)
    numbers = {words.ids[token.text] for token in specials}
    if not skipped <= numbers:
        raise graph.error(f"tokens {sorted(skipped - numbers)[:5]} are not special", REMEDY)
    _check_unmerged(graph, made, words, {token.text for token in specials})
    made.add_tokens(  # pyright: ignore[reportUnknownMemberType] (its list has no element type)
        [
            AddedToken(
                token.text,
                lstrip=token.left,
                rstrip=token.right,
                normalized=False,
                special=words.ids[token.text] in skipped,
            )
            for token in specials
        ]
    )


def _check_unmerged(
    graph: Graph, made: tokenizers.Tokenizer, words: Vocabulary, specials: set[str]
) -> None:
    """Reject tokens that the op would find in normalized text, and that tokenizers would not.

    Raises:
        ModelError: the splits leave such a token whole, or a normalizer writes one that is special.
    """
    splits: Any = made.pre_tokenizer
    written = [
        graph.text(node, len(node.ports) - 1)[:1]
        for node in graph.nodes.values()
        if node.type == "RegexNormalization"
    ]
    for token in words.unmerged:
        if token in specials:
            found = any(text and text in token for text in written)
        else:
            found = splits is None or len(splits.pre_tokenize_str(token)) == 1
        if found:
            raise graph.error(f"no merge makes the token {token!r}", REMEDY)


def _described(
    graph: Graph, made: tokenizers.Tokenizer, settings: dict[str, Any]
) -> TokenizerContent:
    ids: dict[str, int] = {}
    for name in SPECIAL:
        given = graph.rt_info.get(f"{name}_token_id", "-1")
        if not given.removeprefix("-").isdecimal() or len(given) > 9:
            raise graph.error(f"{name}_token_id={given!r} is not an integer")
        ids[name] = int(given)
    tokens = {name: (made.id_to_token(n) or "") if n >= 0 else "" for name, n in ids.items()}
    return TokenizerContent(made, settings, tokens, ids, graph.rt_info.get("chat_template", ""))


def _content(path: Path) -> bytes:
    """Return a file's content; no file holds more than 256 MiB."""
    if not is_file(path):
        raise ModelError(f"{path}: the file is missing; export the model again")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from None
    if len(data) > MAX_FILE_BYTES:
        raise ModelError(f"{path}: larger than 256 MiB")
    return data
