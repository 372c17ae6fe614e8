"""Bodies of requests and replies, field by field as OpenAI's; small ones are beside their routes.

base          types that all bodies share, parameters that all endpoints of text share
tools         functions that a model may call
formats       structured output
messages      messages of a chat
tokens        log-probabilities of tokens, and counts
errors        OpenAI's error JSON
chat          /v1/chat/completions
items         input and output of /v1/responses
responses     /v1/responses, and the events of a streamed response

A field of type None is one of OpenAI's that the server does not support: any value but null is
rejected by name. A field of type Inert is accepted without effect.

Source: docs/reference/openai.md#bodies.
"""
