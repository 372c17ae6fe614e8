"""FLUX.2, which makes images: static models (``kinds.static``) with defaults of their own."""
