"""A request in the forms of chat templates and of the engine: messages, tools, parameters."""

from __future__ import annotations

from collections.abc import Iterator

from genai_layer.generation_config import GenerationConfig
from genai_layer.serve.anthropic.requests import (
    AnyToolChoice,
    AssistantBlock,
    ConversationRequest,
    MessageRequest,
    TextBlock,
    TextContent,
    ToolChoice,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
)
from genai_layer.serve.openai.formats import json_grammar
from genai_layer.serve.openai.sampling import Bounds, configs_of
from genai_layer.serve.openai.schemas.base import Sampled
from genai_layer.serve.openai.schemas.tools import Choice, NamedFunction
from genai_layer.serve.openai.tools.offer import Offer, make_offer
from genai_layer.serve.openai.turn import TemplateMessage, Turn
from genai_layer.structured.formats import StructuralFormat


def template_messages(given: ConversationRequest) -> list[TemplateMessage]:
    """Return the messages of a conversation.

    Texts of one role that follow each other are one message; calls join the message before them,
    and text after calls begins another one. Earlier reasoning is left out.
    """
    found: list[TemplateMessage] = []
    for role, block in _blocks(given):
        if isinstance(block, TextBlock):
            _add_text(found, role, block.text)
        elif isinstance(block, ToolUseBlock):
            _add_call(found, block)
        elif isinstance(block, ToolResultBlock):
            result = {"role": "tool", "content": _texts(block.content)}
            found.append(result | {"tool_call_id": block.tool_use_id})
    return [one | {"content": "\n".join(one["content"])} for one in found]


def _blocks(given: ConversationRequest) -> Iterator[tuple[str, UserBlock | AssistantBlock]]:
    """Yield all blocks with their roles; a text without blocks is one."""
    turns = [("system", given.system)] if given.system else []
    for role, content in [*turns, *((turn.role, turn.content) for turn in given.messages)]:
        if isinstance(content, str):
            yield role, TextBlock(type="text", text=content)
        else:
            yield from ((role, block) for block in content)


def _add_text(found: list[TemplateMessage], role: str, text: str) -> None:
    """Add a text to messages whose contents are lists of texts."""
    last = found[-1] if found else {}
    if last.get("role") == role and "tool_calls" not in last:
        last["content"].append(text)
    else:
        found.append({"role": role, "content": [text]})


def _add_call(found: list[TemplateMessage], block: ToolUseBlock) -> None:
    if not found or found[-1]["role"] != "assistant":
        found.append({"role": "assistant", "content": []})
    function = {"name": block.name, "arguments": block.input}
    call = {"id": block.id, "type": "function", "function": function}
    found[-1].setdefault("tool_calls", []).append(call)


def _texts(content: TextContent | None) -> list[str]:
    """Return the texts of a result."""
    if isinstance(content, str):
        return [content]
    return [block.text for block in content or ()]


_CHOICES: dict[str, Choice] = {"none": "none", "auto": "auto", "any": "required"}


def tool_offer(given: ConversationRequest) -> Offer:
    """Return the tools that the model may call.

    Raises:
        BadRequest: two tools have one name, or the choice needs a tool that is missing.
    """
    choice = given.tool_choice
    parallel = choice is None or not choice.disable_parallel_tool_use
    return make_offer(given.tools or (), _choice(choice), parallel)


def _choice(given: ToolChoice | None) -> Choice | NamedFunction | None:
    return _CHOICES[given.type] if isinstance(given, AnyToolChoice) else given


def text_grammar(given: ConversationRequest) -> StructuralFormat | None:
    """Return the grammar of the answer's text; None for any text."""
    form = given.output_config and given.output_config.format
    return None if form is None else json_grammar(form.json_schema)


def parameters(given: MessageRequest, turn: Turn, defaults: GenerationConfig) -> GenerationConfig:
    """Return the parameters of a generation.

    The engine's text includes the stop sequence at its end, by which ``StopReader`` finds it.

    Raises:
        ConfigError: a value is not supported.
    """
    sampled = Sampled(model=given.model, temperature=given.temperature, top_p=given.top_p)
    bounds = Bounds(given.max_tokens, grammar=turn.grammar, calls_only=turn.calls_only)
    (config,) = configs_of(sampled, bounds, defaults)
    stops = set[str]() if turn.calls_only else set(given.stop_sequences or ())
    changes = {"stop_strings": stops, "include_stop_str_in_output": True} if stops else {}
    if given.top_k is not None:
        changes |= {"top_k": given.top_k, "do_sample": given.temperature != 0}
    return config.updated(changes)
