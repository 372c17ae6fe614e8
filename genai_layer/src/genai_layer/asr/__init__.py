"""Speech recognition with the names of openvino_genai's ASRPipeline, over WhisperPipeline."""
