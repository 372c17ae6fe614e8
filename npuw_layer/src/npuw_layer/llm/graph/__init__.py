"""Graph preparation: one stateful model becomes static prefill and generate models.

Begin with ``stage_graph``.
"""
