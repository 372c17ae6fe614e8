"""Text to speech with Kokoro, whose length of audio depends on the values of the tokens.

A first model encodes the text and returns the duration of each token in frames. The host repeats
the encodings accordingly, and a second model makes the audio of a fixed number of frames at a time.

    names          names of both models, their inputs and their outputs
    matmuls        begin of the frames in a graph: matmuls with the alignment
    split          the graph cut into two, with inputs of the first model for padding
    alignment      padding, the token of each frame, and its encodings
    blocks         frames for each run of the second model, and the samples to keep
    speaker        from a text to its audio
    compiled       both models, compiled
    compiled_model   OpenVINO's API

Each is a static model (``npuw_layer.kinds.static``), on any of NPUW_DEVICES.

Source: NPUW's pipelines/kokoro of OpenVINO 2026.4, which calls the models A and B.
"""
