"""Command-line tools of the driver: npu-objdump (``objdump``) and npu-smi (``smi``)."""
