"""OpenAI-compatible server; needs the extra ``serve``.

run        a server, from its settings to its end; its process and its shutdown
app        application: middleware, routes, and errors as responses
request_id ids of requests, in headers and in the log
middleware body of a request, and clients that leave; API key
limits     limits of a request
errors     errors as HTTP statuses, OpenAI's error JSON, and responses
metrics    metrics for Prometheus
engine     language models behind an asyncio interface
models     loaded models; settings of a server
openai     OpenAI's endpoints, one a file
anthropic  Anthropic's endpoints: a door over the parts of OpenAI's
observe    what the stack does, for the page
page       the page: a chat, and pictures of what the stack does
"""
