"""Runtimes that are not built for genai: one adapter each."""
