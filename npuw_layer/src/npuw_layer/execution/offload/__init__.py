"""Weight offload: a model whose weights do not all fit the device's memory.

The weights of its layers stay in the host's memory. While a layer computes, those of later layers
are copied into slots of device memory: the block that all layers are instances of is one blob, and
runs once for each layer, bound to a slot. Weights are only read, so that nothing is ever copied
back: a slot is simply written over.

    container  the pieces of a model as bytes, to be cached as a blob is
    plan       how many slots a budget gives, and which layer uses which
    sources    where weights are on the host, and those that stay on the device
    ring       the slots: who is in them, who comes next
    model      the pieces as one model
    device     a device whose models are run so
    timeline   when layers and copies would run on the simulated device
    report     what was moved and what that cost

Source: "Asynchronous offload" of the project's seed; behaviour of MindIE-SD's, fact sheet
simulators_npu §d.
"""
