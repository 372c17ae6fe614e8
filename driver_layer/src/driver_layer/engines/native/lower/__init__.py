"""Lowering of a program's tasks to one native table.

Begin with ``engines.native.executor``, which runs the steps down to ``copy_propagation``, and
``table``, which runs the others.

issue_order       order in which tasks are issued
dma, dpu, shave   operations of tasks: kernels, their arguments, and the regions they access
template          kernels, and the arguments that tasks share; operands (``dpu_operands``)
accesses          operations in order, and the bytes they access; analyses (``dataflow``)
address_map       translation of device addresses
regions           memory regions and their aliases
split_operands    splits operands that several copies wrote (``split_points``, ``splits``)
copy_propagation  eliminates copies by redirecting operands to their other side (``redirect``)
reduction_chains  fuses workloads that continue one another's sums
levels            gives independent operations one level, and moves matmuls together
merge             merges calls with adjoining operands, chooses their kernels, and tiles them
balance           splits calls that threads cannot share evenly
work_units        groups calls into units, in the queues of threads; lists operands to prefetch
fixups            lists the addresses in the table, to rebase it
"""
