"""Settings of openvino_genai's scheduler; most of them have no counterpart here."""
