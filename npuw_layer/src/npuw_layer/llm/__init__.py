"""A stateful language model, run as static models: what all language models have in common.

``graph`` makes the static graphs that ``plan`` lists, ``kv`` holds K and V, ``request`` runs
conversations. Begin with ``compiled``, then ``request/conversation``; ``trait`` is the
interface of what some models have besides (``npuw_layer.traits``).
"""
