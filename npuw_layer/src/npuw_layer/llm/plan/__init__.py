"""The plan of static models: lengths, stages and variants.

Begin with ``stages``.
"""
