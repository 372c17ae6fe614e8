"""Transcriptions of speech.

transcriptions  /v1/audio/transcriptions
form            fields and files of a form
wav             WAV files as samples
subtitles       texts with times: SRT, WebVTT

Source: docs/reference/openai.md#transcriptions.
"""
