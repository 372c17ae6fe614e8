"""Parsers: reasoning and tool calls in a generated text.

A parser reads and extends a message, a dictionary whose "content" is the text. Complete texts go
through ``GenerationConfig.parsers``, streamed texts through a ``TextParserStreamer``.

    base                    the two classes that a user's parsers inherit from
    message                 content of a message, and joining of streamed messages
    reasoning_tags          options of the parsers of reasoning
    reasoning               reasoning in a complete text
    incremental_reasoning   reasoning in a streamed text
    tool_calls              tool calls in the two forms of Llama 3
    vllm                    parsers of vLLM
    streamer                streamer with incremental parsers
    results                 messages of a generation's results

Source: docs/reference/genai.md#parsers.
"""
