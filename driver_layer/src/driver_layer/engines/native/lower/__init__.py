"""Makes one native table of a program's tasks.

operations   what the tasks do: kernels, their arguments, and the bytes that they reach
addresses    where in the host's memory these bytes are
regions      which of them overlap
cuts         operands that several copies wrote, in parts that one copy wrote
forward      copies that need not be made: readers go to the source, writers to the destination
chains       workloads that go on with each other's sums are one product
levels       what may run side by side
align        rows of a product wait for each other
merge        workloads that continue each other are one call, cut for the kernel
share        calls that threads cannot share evenly are cut
units        who does what, in which order
streams      what is fetched while threads wait
table        rows, units and phases as the dispatcher reads them
anchors      what of these are addresses, for the same program elsewhere
"""
