"""Reader of tokenizer models: the steps of the graphs, as one ``tokenizers.Tokenizer``.

Source: openvino_tokenizers 2026.4, tokenizer_pipeline.py and hf_parser.py.
"""

from __future__ import annotations

from dataclasses import dataclass
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
CLEAN_UP = "clean_up_tokenization_spaces"
MAX_FILE_BYTES = 256 << 20

_MODELS = {"BPETokenizer": bpe, "WordpieceTokenizer": wordpiece, "UnigramTokenizer": unigram}
_OTHER_MODELS = ("SentencepieceTokenizer", "VocabEncoder", "TrieTokenizer")
_INPUTS = dict.fromkeys((*_MODELS, "RegexSplit", "SpecialTokensSplit"), 2) | {
    "RegexNormalization": 0,
    "CharsMapNormalization": 0,
}


@dataclass(frozen=True, slots=True)
class TokenizerModels:
    """Models of a tokenizer and of its detokenizer."""

    graph: Graph
    back: Graph

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the graphs, under the names of tokenizer_config.json.

        Raises:
            ModelError: a graph has another form.
        """
        return template.settings(self.graph) | {CLEAN_UP: decoding.cleans_up(self.back)}

    @property
    def ids(self) -> dict[str, int]:
        """Ids of the special tokens that the rt_info has, by "bos", "eos" and "pad".

        Raises:
            ModelError: one is not an integer.
        """
        ids: dict[str, int] = {}
        for name in SPECIAL:
            given = self.graph.rt_info.get(f"{name}_token_id")
            if given is None:
                continue
            if not given.removeprefix("-").isdecimal() or len(given) > 9:
                raise self.graph.error(f"{name}_token_id={given!r} is not an integer")
            ids[name] = int(given)
        return ids

    @property
    def chat_template(self) -> str | None:
        """Chat template of the rt_info; None if it has none."""
        return self.graph.rt_info.get("chat_template")

    def build(self) -> tokenizers.Tokenizer:
        """Return the tokenizer.

        Raises:
            ModelError: a model is broken, or has a step without exact counterpart here.
        """
        return _build(self.graph, self.back)


def read_folder(folder: Path, decodes: bool = True) -> TokenizerModels:
    """Read openvino_tokenizer.xml and openvino_detokenizer.xml of a folder.

    Args:
        folder: the folder.
        decodes: whether the folder must have a detokenizer.

    Raises:
        ModelError: a file is missing, or is no model.
    """
    has_back = decodes or is_file(folder / "openvino_detokenizer.xml")
    back = _model(folder / "openvino_detokenizer.xml") if has_back else _NO_MODEL
    return read_model(*_model(folder / "openvino_tokenizer.xml"), *back)


def _model(path: Path) -> tuple[str, bytes]:
    """Return the text and the weights of a model."""
    try:
        text = _content(path).decode()
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is not UTF-8: {error}") from None
    return text, _content(path.with_suffix(".bin"))


_NO_MODEL = ("<net/>", b"")


def read_model(
    tokenizer_xml: str,
    tokenizer_weights: bytes,
    detokenizer_xml: str,
    detokenizer_weights: bytes,
) -> TokenizerModels:
    """Read a tokenizer and its detokenizer from memory.

    Raises:
        ModelError: a text is no model.
    """
    return TokenizerModels(
        Graph(tokenizer_xml, tokenizer_weights, "openvino_tokenizer.xml"),
        Graph(detokenizer_xml, detokenizer_weights, "openvino_detokenizer.xml"),
    )


def _build(graph: Graph, back: Graph) -> tokenizers.Tokenizer:
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
    made.post_processor = template.read(graph, tokens).post_processor(tokens)
    return made


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
