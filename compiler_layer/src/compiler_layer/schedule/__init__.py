"""From hardware ops to an ordered list of tasks with addresses and barriers: plain data, no IR.

views         strided views of DDR buffers
layout        where every tensor of the model lies
tasks         the tasks, and their operands in CMX
unroll        each hardware op as steps of tasks, block by block
cmx           addresses in CMX
order         steps in sequence, loads ahead of time
in_place      variables that are written where they are read
place_ddr     addresses of intermediate tensors
dependencies  which task must wait for which
barriers      virtual and physical barriers for those waits
repeat        the body of a folded model: the ops that its layers have in common
unfold        the ops, buffers and ports of all its layers
program       the result: stretches of tasks, some of which run several times
build         all of this, from a lowered model to its program
expand        a program as one list of tasks, as the device sees it
check         an independent check of that
hazards       conflicts found byte by byte, for tests
"""
