"""Token ids of prompts: texts, wrapped by the chat template if there is one, and chats.

Source: docs/reference/genai.md#chat-history.
"""

from __future__ import annotations

from genai_layer.chat_history import ChatHistory
from genai_layer.chat_prompt import ChatPrompts
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.generation_config import GenerationConfig
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.tokenizer import Tokenizer


class PromptEncoder:
    """Encoder of a pipeline's prompts; each call adds its durations to metrics.

    Args:
        tokenizer: the model's.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._chats = ChatPrompts(tokenizer)

    def text(self, text: str, config: GenerationConfig, raw: RawPerfMetrics) -> list[int]:
        """Return the ids of a text, as the only turn of a chat if the parameters request it.

        Raises:
            TemplateError: the chat template fails.
        """
        if config.apply_chat_template and self._tokenizer.chat_template:
            return self.chat(ChatHistory([{"role": "user", "content": text}]), raw)
        return self.plain(text, raw)

    def chat(self, history: ChatHistory, raw: RawPerfMetrics) -> list[int]:
        """Return the ids of a chat, up to the beginning of the answer.

        Raises:
            TemplateError: the chat template fails.
        """
        watch = Stopwatch()
        prompt = self._chats.render(history)
        raw.chat_template_durations.append(watch.microseconds())
        watch = Stopwatch()
        ids = self._chats.encode(prompt)
        raw.tokenization_durations.append(watch.microseconds())
        return ids

    def plain(self, text: str, raw: RawPerfMetrics) -> list[int]:
        """Return the ids of a text without a template, with special tokens around it."""
        watch = Stopwatch()
        ids = self._tokenizer.encode(text).input_ids.data[0].tolist()
        raw.tokenization_durations.append(watch.microseconds())
        return ids
