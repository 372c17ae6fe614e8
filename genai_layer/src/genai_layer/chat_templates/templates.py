"""Chat templates of a tokenizer: one for chats, and perhaps another for chats with tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from genai_layer.chat_history import Message
from genai_layer.chat_templates.generic_tools import report_generic_tools
from genai_layer.chat_templates.messages import fitted
from genai_layer.chat_templates.rendering import render
from genai_layer.chat_templates.support import TemplateSupport, support_of
from genai_layer.errors import TemplateError


@dataclass(slots=True)
class ChatTemplates:
    """Templates, and the special tokens that are their variables."""

    chat: str
    """Template of chats; empty if there is none."""
    with_tools: str
    """Template of chats with tools; empty if the other is for them, too."""
    tokens: Mapping[str, str]
    """Special tokens by "bos", "eos" and "pad"."""

    def source(self, tools: bool) -> str:
        """Return the template of chats with or without tools; empty if there is none."""
        return (tools and self.with_tools) or self.chat

    def shows_tools(self) -> bool:
        """Return whether the template for tools shows them; else messages describe them."""
        return self._support_of(self.source(True)).tools

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Any],
        add_generation_prompt: bool,
        context: Mapping[str, Any],
        source: str = "",
    ) -> str:
        """Render messages as a prompt, in the form that the template supports.

        Args:
            messages: the chat.
            tools: the template's variable ``tools``.
            add_generation_prompt: end with the beginning of the assistant's turn.
            context: further variables.
            source: a template instead of the model's.

        Raises:
            TemplateError: there is no template, or it fails.
        """
        source = source or self.source(bool(tools))
        if not source:
            raise TemplateError(
                "the model has no chat template",
                "pass one with set_chat_template, or set apply_chat_template=False",
            )
        support = self._support_of(source)
        if tools and not support.tools:
            report_generic_tools(source)
        variables = {**self._variables(), "tools": tools or None, **context}
        return render(source, fitted(messages, tools, support), add_generation_prompt, variables)

    def _support_of(self, source: str) -> TemplateSupport:
        return support_of(source, tuple(self._variables().items()))

    def _variables(self) -> dict[str, str]:
        """Return the special tokens by the names of their variables."""
        return {f"{name}_token": token for name, token in self.tokens.items()}
