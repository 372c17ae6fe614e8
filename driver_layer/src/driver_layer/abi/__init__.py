"""The hardware contract: the contents of a blob and their effect on the hardware.

Pure data, record layouts and pure functions; numpy is the only dependency. The compiler writes
blobs by these tables; the loader, the device and the tools read them. Begin with ``tasks``.

    elf        section types, flags, symbols, relocation numbers, ELF records
    notes      version notes
    metadata   serialised containers: network metadata, platform, performance tables
    tasks      DMA descriptors, DPU invariants and variants, SHAVE ranges and invocations, barriers
    workloads  operands of DPU workloads, and the rules for their sizes and places
    shave      the SHAVE instruction set and its encoding; shave_text assembles and disassembles
    platforms  the NPU generations, a TOML file each
    cost       expected durations of tasks
    layer_map  the operation of the model that each task belongs to, and the time when it ran
    special    the error function, which numpy lacks
    dtypes     element types and their codes
"""
