"""Hugging Face folders: ``config.json`` with ``*.safetensors``."""

from compiler_layer.frontends.huggingface.read import read_folder

__all__ = ["read_folder"]
