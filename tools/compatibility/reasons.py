"""Reasons for the differences that stay, by patterns of their names."""

from __future__ import annotations

REASONS: dict[tuple[str, ...], str] = {
    (
        *("AutoencoderKL", "CLIPTextModel*", "CppStdGenerator", "Flux*Transformer2DModel"),
        *("Generator", "Image2ImagePipeline", "ImageGeneration*", "InpaintingPipeline"),
        *("Qwen2_5_VLForConditionalGeneration", "Qwen3TextEncoder", "QwenImageTransformer2DModel"),
        *("RawImageGenerationPerfMetrics", "SD3Transformer2DModel", "Scheduler", "T5EncoderModel"),
        *("TaylorSeerCacheConfig", "Text2ImagePipeline", "TorchGenerator", "UNet2DConditionModel"),
        "ZImageTransformer2DModel",
    ): "images are not generated here",
    (
        *("AutoencoderKLLTXVideo", "LTXVideoTransformer3DModel", "Text2VideoPipeline"),
        "VideoGeneration*",
    ): "videos are not generated here",
    ("SpeechGeneration*", "Text2Speech*"): "speech is not generated here",
    ("Omni*", "Talker*"): "models of text, images and speech together are not supported",
    ("VLMPipelineBase", "VLMPipeline is a VLMPipelineBase"): (
        "it is the common base of VLMPipeline and OmniPipeline there; no script makes one"
    ),
    ("openvino", "os", "py_openvino_genai"): "modules that the package imports for itself",
    (
        "SDPerModelsPerfMetrics is a *",
        "SDPerfMetrics is a *",
    ): "metrics of both models are PerfMetrics here, which have all members of those bases",
    ("ASRPerfMetrics.asr_raw_metrics",): (
        "ASRRawPerfMetrics and WhisperRawPerfMetrics are one class here, under both names"
    ),
    ("GenerationFinishReason.CAPACITY",): (
        "the KV cache is full; there the reason is NONE, as for a cancelled generation"
    ),
    ("== integer of AdapterConfig.Mode",): (
        "a mode equals its integer there, and no other enumeration does; convert it with int()"
    ),
    ("member by unknown integer of *", "member by text of *"): (
        "an enumeration has its members alone, and Python's exception for others"
    ),
    ("hash of *",): "configurations, results and metrics are compared as values here",
    ("+ of ASRPerfMetrics", "+ of VLMPerfMetrics", "+ of WhisperPerfMetrics"): (
        "a sum keeps the durations of images and speech here, which it loses there"
    ),
    ("*PerfMetrics.get_throughput()",): "no tokens a second, in place of 1000 / −1",
    (
        "GenerationConfig().unknown = 1",
        "GenerationConfig(unknown=1)",
        "StructuralTagItem(unknown='')",
        "TextRerankPipeline.Config(unknown=1)",
    ): "an unknown name is an error, the same by each way, and names the nearest one",
    ("CacheEvictionConfig(…, kvcrush_config=None)",): (
        "a default is chosen by leaving the argument out"
    ),
    ("Tokenizer('missing')",): (
        "a folder without a tokenizer fails at once; there the first call of a method does"
    ),
}
