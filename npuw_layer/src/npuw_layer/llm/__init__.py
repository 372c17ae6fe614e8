"""One stateful language model as static models; a Llama and nothing else.

``graph`` makes static graphs, ``plan`` says which, ``kv`` holds K and V, ``request`` runs
conversations. Begin with ``compiled``, then ``request/conversation``; ``trait`` says how a model
may have more than K and V.
"""
