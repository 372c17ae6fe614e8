"""Command-line tools of the driver: npu-objdump and npu-smi."""
