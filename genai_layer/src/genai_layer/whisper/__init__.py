"""Speech recognition: audio in, text out, with openvino_genai's names.

    features            audio to a spectrogram
    generation_config   parameters: language, task, timestamps
    timestamps          timestamp tokens: constraints on logits, and segments of a text
    decoder             one window of audio to tokens
    alignment, words    times of tokens, from scores of attention; words with their times
    transcription       all windows of an audio in order
    folder              files of a model folder
    properties          properties of the encoder and the decoder on device NPU
    models              compiled encoder and decoder
    recorder            clock of a transcription
    pipeline            the public class
    results             results of a transcription
    perf_metrics        durations of transcriptions

Source: openvino_genai.WhisperPipeline.
"""
