"""Settings of openvino_genai's scheduler; there is none here, so they have no effect."""
