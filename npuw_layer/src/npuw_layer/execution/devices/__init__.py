"""Several devices as one: NPUW_DEVICES and the other options that place submodels.

``make``       the device that the options request
``pins``       NPUW_SUBMODEL_DEVICE: a submodel's first device
``several``    devices in order: each submodel is compiled for the first that accepts it
``stored``     a submodel's bytes: program and device, and the graph for other devices
``elsewhere``  compilation of that graph for another device
``placed``     a submodel on one device, its programs, and its move to another device
``accuracy``   NPUW_ACC_CHECK: the same inputs on a reference device
``report``     placements and accuracy of static models
``staged``     separate devices for the stages of a language model
"""
