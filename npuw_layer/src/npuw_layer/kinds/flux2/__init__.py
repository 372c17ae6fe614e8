"""FLUX.2 image generation: static models (``kinds.static``) with their own defaults."""
