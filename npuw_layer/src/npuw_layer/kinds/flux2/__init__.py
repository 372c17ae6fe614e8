"""FLUX.2, which makes images: static models (``kinds.static``) with defaults of their own.

``kind`` tells its models apart; ``options`` has NPUW_FLUX2.
"""
