"""Models in parts: groups of ops that stand alone, each run in its own way.

A static graph is cut around such groups (attention, say): what lies between them is compiled as
ever, parts that are equal but for weights once. A group's parts go to a device of their own, which
may drive several programs from the host where a single one could only do all there is.

    rules      what options let stand alone
    patterns   how that is found in a graph
    planned    groups that a file names
    plan_file  what went where, for people and for NPUW_PLAN
    ports      interface of a way of running groups, and of listeners
    container  the programs of a model's parts as bytes, to be cached as a blob is
    links      where what goes from part to part lies
    compile    the parts of one model, as programs
    model      the parts as one model
    device     a device whose models are run so

Source: the original's partitioning and its function calls, fact sheet npuw §d.
"""
