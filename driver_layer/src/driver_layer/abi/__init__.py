"""The hardware contract: what a blob contains and what the hardware does with it.

Pure data, record layouts and pure functions; numpy is the only dependency. The compiler writes by
these tables and the loader, the simulated device and the tools read by them. Begin with ``tasks``.

    elf        section types, flags, symbols, relocation numbers, ELF records
    notes      version notes
    metadata   serialised containers: network metadata, platform, performance tables
    tasks      DMA descriptors, DPU invariants and variants, SHAVE ranges and invocations, barriers
    shave      the SHAVE instruction set: encode, decode, assemble, disassemble
    platforms  the NPU generations, a TOML file each
    cost       what tasks are expected to take
    layer_map  which operation of the model each task belongs to, and when it ran
    special    functions that numpy lacks
    dtypes     element types and their codes
"""
