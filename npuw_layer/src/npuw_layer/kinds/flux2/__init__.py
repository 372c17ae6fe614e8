"""FLUX.2, which makes images: its models are static ones with defaults of their own."""
