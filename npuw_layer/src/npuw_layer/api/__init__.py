"""OpenVINO's objects: Core, requests, ports and tensors, and the common parts of all kinds.

Begin with ``core``, then ``kind`` (the record of a kind of model), and ``ready_model`` and
``request``, the bases of models and requests.
"""
