"""Speech recognition with Whisper: a decoder with cross-attention to an encoder's output.

    cross_attention   K and V of the audio: computed by one static graph, read by the others
    decoder           the stateful decoder as static graphs
    conversation      sequence of prompt and generate runs
    input_ports       tokens and audio, as set by the caller
    compiled_model    OpenVINO's API

The rest is that of a language model (``npuw_layer.llm``), with the trait
``traits.cross_attention``: prefill has one more input, and variants read constant K and V in
addition to growing ones. The encoder is a static model.

Source: docs/reference/npuw.md#whisper.
"""
