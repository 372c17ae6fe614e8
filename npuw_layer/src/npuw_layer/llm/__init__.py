"""A stateful language model, run as static models; plain Llama only.

``graph`` makes the static graphs that ``plan`` lists, ``kv`` holds K and V, ``request`` runs
conversations. Begin with ``compiled``, then ``request/conversation``; ``trait`` extends models
beyond K and V.
"""
