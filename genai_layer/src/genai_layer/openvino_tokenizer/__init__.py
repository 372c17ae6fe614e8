"""Tokenizers of openvino_tokenizer.xml and openvino_detokenizer.xml.

The graphs are not run: their constants are read, and a ``tokenizers.Tokenizer`` of the same steps
is built. A step that has no exact counterpart is rejected by name. Beside a tokenizer.json, only
the settings and the rt_info of the graphs count.

Source: docs/reference/genai.md#tokenizer-models.
"""

from genai_layer.openvino_tokenizer.decoding import UNSETTLED, cleaning
from genai_layer.openvino_tokenizer.reader import (
    CLEAN_UP,
    SPECIAL,
    TokenizerModels,
    read_folder,
    read_model,
)
from genai_layer.openvino_tokenizer.template import surrounded

__all__ = [
    "CLEAN_UP",
    "SPECIAL",
    "UNSETTLED",
    "TokenizerModels",
    "cleaning",
    "read_folder",
    "read_model",
    "surrounded",
]
