"""Emission of a blob's bytes from a scheduled program.

records      sections of records, as rows of fields; their relocations, as arrays
dma, dpu     descriptor fields of a transfer; registers of a matmul
tiles        DMA symbols: arguments whose strides the caller chooses
lists        task lists of one phase, for one run of it; SHAVE code
stamp        barriers in records, for all runs together
merge        task lists of a complete program; records of repeated phases are copied as arrays
metadata     names and shapes of inputs and outputs
layer_map    the layer that each task belongs to
elf          the ELF file
blob         the complete blob, from all these parts
"""
