"""Parsers: reasoning and tool calls in a generated text.

A parser reads and extends a message, a dictionary whose "content" is the text. Complete texts go
through ``GenerationConfig.parsers``, streamed texts through a ``TextParserStreamer``.

    base         the two classes that a user's parsers inherit from; joining of streamed messages
    reasoning    reasoning in a complete text, and in a streamed one
    tool_calls   tool calls in the two forms of Llama 3
    vllm         parsers of vLLM
    streamer     streamer with incremental parsers, and messages of a generation's results

Source: docs/reference/genai.md#parsers.
"""
