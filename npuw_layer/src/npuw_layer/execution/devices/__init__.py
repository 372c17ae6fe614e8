"""Several devices as one: NPUW_DEVICES and what else decides where a submodel runs.

``core_devices``  the devices of one Core, which share memory
``make``       the device that the options ask for
``pins``       NPUW_SUBMODEL_DEVICE: which submodel begins with which device
``several``    devices in order: each submodel is compiled for the first that takes it
``stored``     a submodel's bytes: they remember the device, and the graph for others
``elsewhere``  compiles that graph for another device
``placed``     a submodel on one of them, its programs, and how it moves to another
``told``       what options tell devices before anything is loaded
``accuracy``   NPUW_ACC_CHECK: the same inputs on a reference device
"""
