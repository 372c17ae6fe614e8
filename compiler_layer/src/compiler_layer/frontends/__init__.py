"""Readers of models: OpenVINO IR and Hugging Face folders, both to the same stateful graph."""
