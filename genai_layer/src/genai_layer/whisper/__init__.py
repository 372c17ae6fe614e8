"""Speech recognition: audio in, text out, with openvino_genai's names.

    features            audio to a spectrogram
    generation_config   parameters: language, task, timestamps
    timestamps          which tokens are times, where they may be, what they cut a text into
    decoder             one window of audio to tokens
    folder              what a model's folder says
    properties          what is special about the device NPU
    pipeline            windows one after the other, and the text of all
    results             what comes of it

Source: openvino_genai.WhisperPipeline.
"""
