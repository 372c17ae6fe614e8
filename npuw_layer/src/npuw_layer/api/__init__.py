"""OpenVINO's objects: Core, requests, ports and tensors, and what all kinds of models share.

Begin with ``core``, then ``kind`` (what a kind of model brings), and ``ready_model`` and
``request``, the bases of models and requests.
"""
