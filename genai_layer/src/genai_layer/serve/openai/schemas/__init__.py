"""Bodies of requests and replies, field by field as OpenAI's.

base          types that all bodies share
sampling      parameters that all endpoints of text share
tools         functions that a model may call
formats       structured output
messages      messages of a chat
usage         counts of tokens
logprobs      log-probabilities of tokens
errors        OpenAI's error JSON
chat          /v1/chat/completions
completions   /v1/completions
input_items   input of /v1/responses
output_items  output of /v1/responses
responses     /v1/responses
events        events of a streamed response
embeddings    /v1/embeddings
rerank        /v1/rerank
models        /v1/models

A field of type None is one of OpenAI's that the server does not support: any value but null is
rejected by name. A field of type Inert is accepted without effect.

Source: docs/reference/openai.md#bodies.
"""
