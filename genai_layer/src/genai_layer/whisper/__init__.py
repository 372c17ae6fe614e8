"""Speech recognition: audio in, text out, with openvino_genai's names.

    features            audio to a spectrogram
    generation_config   parameters: language, task, timestamps
    decoder             one window of audio to tokens; timestamp tokens, segments of a text
    words               words with their times, from scores of attention
    transcription       all windows of an audio in order
    models              files of a model folder; compiled encoder and decoder
    pipeline            the public class
    results             results of a transcription, its durations, and their clock

Source: openvino_genai.WhisperPipeline.
"""
