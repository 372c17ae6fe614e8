"""Language models: one stateful model as static prefill and generate models.

``plan`` lists the static models, ``graph`` makes their graphs, ``kv`` keeps K and V, ``request``
runs a conversation on them. Begin with ``compiled``, then ``request.conversation``.
"""
