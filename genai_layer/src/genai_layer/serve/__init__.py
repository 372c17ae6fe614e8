"""OpenAI-compatible server; needs the extra ``serve``.

run          a server, from its settings to its end; its process and its shutdown
output       lines and log records, which no reader delays
connections  bound of connections, time of a head, errors of the protocol
app          application: middleware, routes, and errors as responses
request_id   ids of requests, in headers and in the log
middleware   admission, body of a request, and clients that leave
access       hosts, origins, API key
hosts        names and addresses of the server
limits       limits of a request, and of connections
errors       errors as HTTP statuses, OpenAI's error JSON, and responses
metrics      metrics for Prometheus
workers      threads for what would hold the event loop
engine       language models behind an asyncio interface
models       loaded models; settings of a server
openai       OpenAI's endpoints, one a file
anthropic    Anthropic's endpoints: a door over the parts of OpenAI's
observe      what the stack does, for the page
page         the page: a chat, and pictures of what the stack does
"""
