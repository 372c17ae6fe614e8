"""Configuration of structured output: openvino_genai's classes, and their JSON form."""
