"""Speech recognition with Whisper: a decoder that attends to what an encoder made of audio.

    names             what its inputs, outputs and variables are called
    lengths           how long prompts and caches are, and which options that settles
    cross_attention   K and V of the audio: computed by one static graph, read by the others
    decoder           the stateful decoder as static graphs
    cross_buffers     where a request's audio lies
    conversation      what runs when
    input_ports       tokens and audio, as the caller sets them
    infer_request, variable_state, compiled_model   OpenVINO's API
    imported_ports    programs from elsewhere are not believed

The rest is that of a language model (``npuw_layer.llm``), whose prefill has one more input and
whose variants read K and V that stay beside those that grow. The encoder is a static model.

Source: fact sheet npuw §a.3 step 12, §a.4, §f 15.
"""
