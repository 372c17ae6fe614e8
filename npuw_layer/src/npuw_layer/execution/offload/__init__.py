"""Weight offload: a model whose weights do not all fit the device's memory.

The weights of its layers stay in host memory. While a layer computes, those of later layers are
copied into slots of device memory. All layers are instances of one block, which is one blob and
runs once for each layer, bound to a slot. Weights are read-only, so nothing is copied back: a slot
is simply overwritten.

    container  the parts of a model as bytes, which a cache stores like a blob
    plan       number of slots in a budget, and the slot of each layer
    sources    weights on the host, and those that stay on the device
    ring       the slots: present and next weights
    stage      the parts of one static model, loaded
    model      the parts as one model
    device     a device that runs such models
    timeline   predicted times of layers and copies on the simulated device
    report     counts and costs of copies

Source: behaviour of MindIE-SD's, docs/reference/npu.md#weight-offload.
"""
