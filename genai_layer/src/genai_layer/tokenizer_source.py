"""Arguments of ``Tokenizer``: a folder, or two models in memory.

Source: openvino_genai.Tokenizer, docs/reference/genai.md#tokenizer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from genai_layer.call_form import call_form
from genai_layer.openvino_tokenizer import OpenVINOTokenizer, read_model
from genai_layer.properties import check_names, with_dictionary
from genai_layer.tensor import HasData, is_tensor

_TO_CALLER = 6
"""Stack level of the tokenizer's caller for warnings of ``with_dictionary``."""


def find_source(given: Sequence[Any], named: Mapping[str, Any]) -> Path | OpenVINOTokenizer:
    """Return the folder, or the tokenizer that was read from models.

    Args:
        given: (folder, dictionary), or (tokenizer model, weights, detokenizer model, weights).
        named: more of them by name, and properties.

    Raises:
        TypeError: an argument is missing.
        ModelError: a model is broken, or has a step that is not supported.
        PropertyError: a name is not upper case, or a value is None.
    """
    in_memory = "tokenizer_weights" in named or (len(given) > 1 and is_tensor(given[1]))
    form = _of_models if in_memory else _of_folder
    return call_form("Tokenizer", form, given, named)


def _of_folder(
    tokenizer_path: str | Path, properties: Mapping[str, Any] | None = None, **named: Any
) -> Path:
    merged = with_dictionary(properties, named, _TO_CALLER) if properties else named
    # The original adds an input for the second text of pairs; a tokenizer here always has it.
    check_names({name: value for name, value in merged.items() if name != "add_second_input"})
    return Path(tokenizer_path)


def _of_models(
    tokenizer_model: str,
    tokenizer_weights: HasData,
    detokenizer_model: str,
    detokenizer_weights: HasData,
    **named: Any,
) -> OpenVINOTokenizer:
    check_names(named)
    return read_model(
        tokenizer_model,
        tokenizer_weights.data.tobytes(),
        detokenizer_model,
        detokenizer_weights.data.tobytes(),
    )
