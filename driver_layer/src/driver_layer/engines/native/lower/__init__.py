"""Makes one native table of a program's tasks.

operations   what the tasks do: kernels, their arguments, and the bytes that they reach
addresses    where in the host's memory these bytes are
regions      which of them overlap
cuts         operands that several copies wrote, in parts that one copy wrote
forward      copies that need not be made: readers go to the source, writers to the destination
levels       what may run side by side
table        rows, units and phases as the dispatcher reads them
"""
