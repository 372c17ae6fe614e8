"""Lowering of a program's tasks to one native table.

Begin with ``engines.native.executor``, which runs the steps down to ``copy_propagation`` on the
accesses of ``accesses``, and ``table``, which runs the others.

dma, dpu, shave   operations of tasks: kernels, their arguments, and the regions they access
address_map       translation of device addresses
regions           which regions alias
split_operands    operands that several copies wrote are split (``split_points``, ``splits``)
copy_propagation  copies are eliminated: operands are redirected to their other side (``redirect``)
reduction_chains  workloads that continue one another's sums are fused (``fuse_chains``)
levels            independent operations share a level; ``align_levels`` moves products together
merge             calls with adjoining operands are one call, tiled for the kernel
balance           calls that threads cannot share evenly are split
work_units        units of calls, in the queues of threads
prefetch          operands to fetch while threads wait
fixups            addresses in the table, to rebase it
"""
