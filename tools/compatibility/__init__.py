"""Comparison of openvino_genai's public names with those of genai_layer."""
