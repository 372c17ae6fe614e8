"""Scheduling of hardware ops: an ordered list of tasks with addresses and barriers, without IR.

views         strided views of DDR buffers
layout        the place of every tensor of the model in DDR
tasks         the tasks, and their operands in CMX
unroll        each hardware op as steps of tasks, block by block
cmx           addresses in CMX
order         sequence of steps, with loads ahead of time
in_place      variables that are written where they are read
place_ddr     addresses of intermediate tensors
dependencies  dependencies between tasks
barriers      virtual and physical barriers for these dependencies
repeat        the body of a folded model: the ops that its layers share
unfold        the ops, buffers and ports of all its layers
program       the result: phases of tasks, some of which run several times
build         the complete path from a lowered model to its program
expand        a program as one list of tasks, as the device runs it
check         an independent check of the expanded program
hazards       byte-exact conflicts, for tests
"""
