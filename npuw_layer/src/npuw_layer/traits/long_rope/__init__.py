"""LongRoPE: rotary factors that depend on how far an inference reaches."""
