"""Normalizers: RegexNormalization and CharsMapNormalization as ``tokenizers.normalizers``."""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Any

from tokenizers import Regex, normalizers

from genai_layer.openvino_tokenizer.graph import Graph, Node
from genai_layer.openvino_tokenizer.patterns import translate

_FORMS = {
    "nfc": normalizers.NFC,
    "nfd": normalizers.NFD,
    "nfkc": normalizers.NFKC,
    "nfkd": normalizers.NFKD,
}
_PREPENDED = re.compile(
    r"(?:(?P<captured>\(\^\))|\(\?:\^\)|\^)\((?P<first>\\S|\[(?:\\.|[^\]\\])+\])\)", re.DOTALL
)


def normalizer(graph: Graph, node: Node) -> list[Any]:
    """Return the normalizers of an op.

    Raises:
        ModelError: the op does something that they cannot do exactly.
    """
    return _charsmap(graph, node) if node.type == "CharsMapNormalization" else _regex(graph, node)


def arguments(graph: Graph, node: Node) -> tuple[str, str]:
    """Return the pattern and the replacement of a RegexNormalization.

    Raises:
        ModelError: only the first match is replaced.
    """
    pattern, content = (graph.text(node, len(node.ports) - place) for place in (2, 1))
    if not node.flag("global_replace", True):
        raise graph.unsupported(node, "global_replace=false is not supported")
    return pattern, content


def replaced(graph: Graph, node: Node, pattern: str, content: str) -> str | Regex:
    """Return a pattern for tokenizers, whose replacement is always literal.

    Raises:
        ModelError: the pattern or the replacement is not supported.
    """
    if "$" in content or "\\" in content:
        raise graph.unsupported(node, f"the replacement {content!r} of {pattern!r}")
    if not re.search(r"[\\^$.|?*+()\[\]{}]", pattern):
        return pattern
    try:
        return Regex(translate(pattern))
    except Exception as error:  # the library raises plain Exception
        raise graph.unsupported(node, f"the pattern {pattern!r}: {error}") from None


def _regex(graph: Graph, node: Node) -> list[Any]:
    pattern, content = arguments(graph, node)
    first = _PREPENDED.fullmatch(pattern)
    if first is not None and content.endswith("$2" if first["captured"] else "$1"):
        prefix = content[:-2]
        if "$" in prefix or "\\" in prefix:
            raise graph.unsupported(node, f"the replacement {content!r} of {pattern!r}")
        if first["first"] == r"[\s\S]":
            return [normalizers.Prepend(prefix)]
        # Replacing an empty match would break the library's alignments.
        needless = replaced(graph, node, f"^{re.escape(prefix)}(?!{first['first']})", "")
        return [normalizers.Prepend(prefix), normalizers.Replace(needless, "")]
    return [normalizers.Replace(replaced(graph, node, pattern, content), content)]


def _charsmap(graph: Graph, node: Node) -> list[Any]:
    for name in ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces", "nmt"):
        if node.flag(name):
            raise graph.unsupported(node, f"{name}=true is not supported")
    form = node.data.get("normalization_form", "")
    if form not in (*_FORMS, "identity"):
        raise graph.unsupported(node, f"normalization_form={form!r} is not supported")
    found = [_FORMS[form]()] if form in _FORMS else []
    if node.flag("case_fold"):
        if form not in ("nfd", "nfkd"):
            raise graph.unsupported(node, f"case_fold with normalization_form={form!r}")
        found += simple_case_folding()
    return found


@functools.cache
def simple_case_folding() -> list[Any]:
    """Return normalizers of Unicode's simple case folding, for decomposed text.

    Lowercase differs from the folding in a few letters; they are replaced before or after it.
    U+0130 differs, too, but decomposes.
    """
    lowered: dict[str, list[str]] = {}
    raised: dict[str, str] = {}
    for code in range(0x1F000):
        letter = chr(code)
        lower, fold = letter.lower(), _fold(letter)
        if unicodedata.normalize("NFD", letter) != letter or 0xD800 <= code < 0xE000:
            continue
        if fold.lower() != fold:  # Cherokee, which folds to capitals
            raised[fold.lower()] = fold
        elif lower != fold:
            lowered.setdefault(fold, []).append(letter)
    before = [
        normalizers.Replace(Regex(f"[{''.join(letters)}]"), fold)
        for fold, letters in lowered.items()
    ]
    after = [normalizers.Replace(small, large) for small, large in raised.items()]
    return [*before, normalizers.Lowercase(), *after]


def _fold(letter: str) -> str:
    """Return the simple case folding of a letter."""
    candidates = (letter.casefold(), letter.lower())
    return next((folded for folded in candidates if len(folded) == 1), letter)
