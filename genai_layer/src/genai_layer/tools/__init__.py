"""Command-line tools of genai: npu-chat."""
