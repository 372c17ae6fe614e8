"""Command-line tools of genai: npu-chat and npu-bench."""
