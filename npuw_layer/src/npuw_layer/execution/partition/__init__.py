"""Partitioned models: groups of ops as separate parts, each with its own way of running.

A static graph is cut around such groups (attention, say). The parts between them are compiled as
usual; parts that differ only in weights are compiled once. A group's parts go to a separate device,
which may drive several programs from the host where one program would have to do all the work.

    rules      isolations that options request
    patterns   search for their ops in a graph
    planned    groups that a file names
    plan_file  partitions as a readable file, also for NPUW_PLAN
    ports      isolations and listeners
    container  the programs of a model's parts as bytes, which a cache stores like a blob
    compile    the parts of one model, as programs
    model      the parts as one model, and the memory of tensors between them
    device     a device that runs partitioned models

Source: NPUW's partitioning and its function calls, docs/reference/npuw.md#partitioning.
"""
