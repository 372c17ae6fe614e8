"""From hardware ops to an ordered list of tasks with addresses and barriers: plain data, no IR.

views         strided views of DDR buffers
layout        where every tensor of the model lies
tasks         the tasks, and their operands in CMX
unroll        each hardware op as steps of tasks, block by block
order         steps in sequence, loads ahead of time, CMX addresses
place_ddr     addresses of intermediate tensors
dependencies  which task must wait for which
barriers      virtual and physical barriers for those waits
check         an independent check of the result
"""
