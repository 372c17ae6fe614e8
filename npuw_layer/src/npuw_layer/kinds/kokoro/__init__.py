"""Text to speech with Kokoro: how many frames of audio there are follows from what tokens say.

A first model reads the text: it says how many frames each token lasts, and encodes it. The host
repeats the encodings accordingly, and a second model makes audio of so many frames at a time.

    names          what both models, their inputs and their outputs are called
    products       where the frames begin in a graph: the products with the alignment
    split          the graph as two
    given_lengths  the first one is told which tokens are padding
    alignment      which tokens are padding, and which token each frame is of; its encodings
    blocks         which frames the second model gets at a time, and which of its samples are kept
    speaker        from a text to its audio
    compiled       both models, compiled
    ports, infer_request, compiled_model   OpenVINO's API

Either model is a static one (``npuw_layer.kinds.static``), on any of NPUW_DEVICES.

Source: NPUW's pipelines/kokoro of OpenVINO 2026.4, where the models are called A and B.
"""
