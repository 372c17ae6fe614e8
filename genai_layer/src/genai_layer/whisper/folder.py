"""Files of an exported Whisper's folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from genai_layer.errors import ModelError
from genai_layer.files import is_file
from genai_layer.json_file import read_counts
from genai_layer.model_folder import add_end_of_text
from genai_layer.tokenizer import Tokenizer
from genai_layer.whisper.features import FeatureExtractor
from genai_layer.whisper.generation_config import WhisperGenerationConfig


@dataclass(frozen=True, slots=True)
class WhisperFolder:
    """Paths and parameters from a model folder."""

    encoder: Path
    decoder: Path
    features: FeatureExtractor
    config: WhisperGenerationConfig
    source_positions: int
    """Number of frames that the encoder returns for a window."""
    target_positions: int
    """Maximum number of tokens in prompt and text together."""

    @staticmethod
    def read(folder: Path, tokenizer: Tokenizer) -> WhisperFolder:
        """Read a folder; the tokenizer may add the end-of-text id.

        Raises:
            ModelError: a file is missing or broken.
        """
        parts = [folder / f"openvino_{part}_model.xml" for part in ("encoder", "decoder")]
        for part in parts:
            if not is_file(part):
                raise ModelError(
                    f"{part}: no such file; export the model with optimum-cli export openvino "
                    "--task automatic-speech-recognition-with-past"
                )
        path = folder / "generation_config.json"
        config = WhisperGenerationConfig(path) if is_file(path) else WhisperGenerationConfig()
        add_end_of_text(config, tokenizer)
        defaults = {"max_source_positions": 1500, "max_target_positions": 448}
        sizes = read_counts(folder / "config.json", defaults)
        return WhisperFolder(
            encoder=parts[0],
            decoder=parts[1],
            features=FeatureExtractor.from_file(folder / "preprocessor_config.json"),
            config=config,
            source_positions=sizes["max_source_positions"],
            target_positions=sizes["max_target_positions"],
        )
