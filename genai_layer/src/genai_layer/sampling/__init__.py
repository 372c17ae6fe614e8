"""From logits to the next token, one step per file; ``sampler`` puts them in order.

Source: order and formulas of openvino_genai, fact sheet genai §b.3.
"""
