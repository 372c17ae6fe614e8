"""Tokenizers of folders that only have openvino_tokenizer.xml and openvino_detokenizer.xml.

The graphs are not run: their constants are read, and a ``tokenizers.Tokenizer`` of the same steps
is built. A step that has no exact counterpart is rejected by name.

Source: docs/reference/genai.md#tokenizer-models.
"""

from genai_layer.openvino_tokenizer.reader import SPECIAL, TokenizerContent, read, read_model

__all__ = ["SPECIAL", "TokenizerContent", "read", "read_model"]
