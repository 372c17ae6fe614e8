"""Speech recognition with Whisper: a decoder that attends to what an encoder made of audio.

    lengths           how long prompts and caches are, and which options that settles
    cross_attention   K and V of the audio: computed by one static graph, read by the others
    decoder           the stateful decoder as static graphs
    conversation      what runs when
    input_ports       tokens and audio, as the caller sets them
    infer_request, compiled_model   OpenVINO's API

The rest is that of a language model (``npuw_layer.llm``), with the trait
``traits.cross_attention``: prefill has one more input, and variants read K and V that stay beside
those that grow. The encoder is a static model.

Source: fact sheet npuw §a.3 step 12, §a.4, §f 15.
"""
