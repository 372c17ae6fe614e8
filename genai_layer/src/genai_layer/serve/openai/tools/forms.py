"""Forms in which models write calls of functions.

Source: docs/reference/openai.md#calls-of-functions.
"""

from __future__ import annotations

from dataclasses import dataclass

from genai_layer.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Form:
    """A call is a JSON object with the entry ``name`` and the arguments, between tags."""

    arguments: str
    """Name of the entry with the arguments."""
    begin: str = ""
    """Tag before a call; without tags, a call is the whole text."""
    end: str = ""


JSON = Form("arguments")
"""Form of calls that only a grammar makes a model write."""
LLAMA = Form("parameters")
HERMES = Form("arguments", "<tool_call>", "</tool_call>")
"""Form of Hermes, Qwen 2.5 and Qwen 3."""


_XML = ("<function=", "<arg_key>")
"""Tags of Qwen3-Coder's and GLM's calls, which stand between HERMES's tags, too."""


def form_of(tokenizer: Tokenizer) -> Form | None:
    """Return the form that a model's chat template teaches it; None if it is not known here."""
    template = tokenizer.chat_template
    if HERMES.begin in template:
        other = any(tag in template for tag in _XML)
        special = {token.content for token in tokenizer.special_tokens.values()}
        return None if other or HERMES.begin in special else HERMES  # those have no text
    if '"name": function name, "parameters":' in template:
        return LLAMA
    return None
