"""OpenAI-compatible server; needs the extra ``serve``.

app      assembles the server
engine   a language model behind an asyncio interface
errors   errors as HTTP statuses and OpenAI's error JSON
limits   limits of a request
"""
