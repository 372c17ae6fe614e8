"""Static models: one graph and one program, on the NPU itself or through NPUW.

Begin with ``kind``, then ``compiled`` and ``infer_request``. ``ThroughNpuw`` is the base of kinds
that build on static models.
"""
