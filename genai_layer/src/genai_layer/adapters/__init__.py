"""Adapters to runtimes that were not built for genai."""
