"""Speech recognition: audio in, text out, with openvino_genai's names.

    features            audio to a spectrogram
    generation_config   parameters: language, task, timestamps
    timestamps          timestamp tokens: constraints on logits, and segments of a text
    decoder             one window of audio to tokens
    folder              files of a model folder
    properties          properties of the encoder and the decoder on device NPU
    pipeline            transcription of all windows in order
    results             results of a transcription

Source: openvino_genai.WhisperPipeline.
"""
