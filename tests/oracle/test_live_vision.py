"""Vision-language pipeline compared to the real openvino_genai, live.

Skipped unless openvino_genai, openvino_tokenizers and transformers are installed. The real pipeline
runs on device NPU without an NPU; this one on the simulated NPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest
from tests.oracle.real_npuw import EXACT, ON_CPU

import genai_layer as ours
from genai_layer.vision.perf_metrics import VLMPerfMetrics, VLMRawPerfMetrics
from genai_layer.vision.resize import resize

theirs = pytest.importorskip("openvino_genai")
pytest.importorskip("openvino_tokenizers")
pytest.importorskip("transformers")

pytestmark = pytest.mark.oracle

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests" / "goldens"
OWN_TAG = "<|vision_start|><|image_pad|><|vision_end|>"

Turns = Sequence[tuple[Any, Sequence[np.ndarray]]]


@pytest.fixture(scope="module")
def tools(load_module: Callable[[Path], Any]) -> Any:
    return load_module(GOLDENS / "vision" / "folder.py")


@pytest.fixture(scope="module")
def folder(
    tools: Any,
    load_module: Callable[[Path], Any],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch_module: pytest.MonkeyPatch,
) -> Path:
    """Folder that both packages read."""
    monkeypatch_module.syspath_prepend(ROOT / "tools")
    restore = load_module(GOLDENS / "exported" / "restore.py").restore
    found = tools.write(restore, tmp_path_factory.mktemp("vision"))
    load_module(ROOT / "tools" / "make_vision_goldens.py").convert_tokenizer(found)
    return found


@pytest.fixture(scope="module")
def monkeypatch_module() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module", params=["CPU", "NPU"])
def pipes(folder: Path, cpu: tuple[Any, Any], request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """Both pipelines on a device, in f32."""
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    if request.param == "CPU":
        return cpu
    real = theirs.VLMPipeline(folder, "NPU", **exact, **ON_CPU)
    return ours.VLMPipeline(folder, "NPU", **exact), real


@pytest.fixture(scope="module")
def cpu(folder: Path) -> tuple[Any, Any]:
    return ours.VLMPipeline(folder, "CPU", **EXACT), theirs.VLMPipeline(folder, "CPU", **EXACT)


def check_alike(pipes: tuple[Any, Any], act: Callable[[Any, Any, Any], Any]) -> Any:
    """Check that an action gives the same in both packages; tensors are each package's own."""
    found = act(ours, pipes[0], ours.Tensor)
    assert found == act(theirs, pipes[1], ov.Tensor)
    return found


def generate(prompt: str, *images: np.ndarray, **parameters: Any) -> Callable[..., Any]:
    def act(package: Any, pipe: Any, tensor: Any) -> Any:
        given = [tensor(image) for image in images]
        said = pipe.generate(prompt, images=given, max_new_tokens=16, **parameters)
        metrics = said.perf_metrics
        counts = (metrics.get_num_input_tokens(), metrics.get_total_image_slice_count())
        scores = said.scores if package is ours else pytest.approx(said.scores, rel=1e-3)
        return said.texts, scores, [each.name for each in said.finish_reasons], counts

    return act


@pytest.mark.parametrize(
    "sizes",
    [
        (),
        ((60, 90),),
        ((5, 9),),
        ((300, 411),),
        ((2, 401),),
        ((60, 90), (200, 100), (33, 250)),
        ((60, 90), (60, 90)),
    ],
    ids=str,
)
def test_texts_are_equal(pipes: tuple[Any, Any], tools: Any, sizes: Any) -> None:
    images = [tools.picture(*size, seed) for seed, size in enumerate(sizes)]
    check_alike(pipes, generate("What is it?", *images))


@pytest.mark.parametrize(
    "prompt",
    [
        "a <ov_genai_image_1> b <ov_genai_image_0>",
        "a <ov_genai_image_1> b <ov_genai_image_1>",
        f"a {OWN_TAG} b {OWN_TAG}",
        "",
    ],
)
def test_tags_are_read_alike(pipes: tuple[Any, Any], tools: Any, prompt: str) -> None:
    check_alike(pipes, generate(prompt, tools.picture(60, 90), tools.picture(90, 60, 1)))


def test_other_layouts_and_parameters_are_read_alike(pipes: tuple[Any, Any], tools: Any) -> None:
    image = tools.picture(60, 90)
    several = np.stack([image, tools.picture(60, 90, 1)])
    for given in (several, image[..., :1].copy(), np.concatenate([image, image], 2)[..., :4]):
        check_alike(pipes, generate("a", np.ascontiguousarray(given)))
    for parameters in ({"apply_chat_template": False}, {"repetition_penalty": 1.5}):
        check_alike(pipes, generate("a", image, **parameters))


@pytest.mark.parametrize(
    "parameters",
    [
        {"do_sample": True, "temperature": 3.0, "rng_seed": 5},
        {"do_sample": True, "temperature": 3.0, "num_return_sequences": 3},
        {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.0},
    ],
    ids=str,
)
def test_other_methods_give_the_texts_of_the_cpu(
    cpu: tuple[Any, Any], tools: Any, parameters: dict[str, Any]
) -> None:
    check_alike(cpu, generate("a", tools.picture(60, 90), **parameters))


def test_arguments_have_the_same_places(pipes: tuple[Any, Any], tools: Any) -> None:
    def act(package: Any, pipe: Any, tensor: Any) -> Any:
        image, config = tensor(tools.picture(60, 90)), package.GenerationConfig()
        config.max_new_tokens = 5
        calls = [
            pipe.generate("a", [image], config),
            pipe.generate("a", image, config),
            pipe.generate("a", [image], [], config),
            pipe.generate("a", image=image, generation_config=config),
            pipe.generate(prompt="a", images=image, generation_config=config),
        ]
        return [said.texts for said in calls]

    found = check_alike(pipes, act)
    assert found == [found[0]] * 5


def history(turns: Turns) -> Callable[..., Any]:
    def act(package: Any, pipe: Any, tensor: Any) -> Any:
        chat, found = package.ChatHistory(), []
        for content, images in turns:
            chat.append({"role": "user", "content": content})
            given = [tensor(image) for image in images]
            said = pipe.generate(chat, images=given, max_new_tokens=9)
            chat.append({"role": "assistant", "content": said.texts[0]})
            found.append((said.texts, said.perf_metrics.get_num_input_tokens()))
        return found

    return act


def started(turns: Turns, system: str) -> Callable[..., Any]:
    def act(_: Any, pipe: Any, tensor: Any) -> Any:
        with pytest.deprecated_call():
            pipe.start_chat(system)
        found = [
            pipe.generate(text, images=[tensor(image) for image in images], max_new_tokens=9).texts
            for text, images in turns
        ]
        with pytest.deprecated_call():
            pipe.finish_chat()
        return found

    return act


def test_chats_are_equal(pipes: tuple[Any, Any], tools: Any) -> None:
    one, two, three = (tools.picture(60, 90 + 30 * seed, seed) for seed in range(3))
    text, image = {"type": "text", "text": "What"}, {"type": "image"}
    for turns in (
        [("What?", [one]), ("And?", [])],
        [("What?", []), ("And?", [two])],
        [("What?", [one]), ("And <ov_genai_image_1>?", [two]), ("x", [three])],
        [([text, image], [one]), ([image, text], [two])],
    ):
        check_alike(pipes, history(turns))
    check_alike(pipes, started([("What?", [one]), ("And?", [two])], "Be brief."))
    check_alike(pipes, started([("What?", [one]), ("And?", [])], ""))


@pytest.mark.parametrize("device", ["CPU", "NPU"])
def test_adapters_change_texts_alike(
    folder: Path, tools: Any, load_module: Callable[[Path], Any], tmp_path: Path, device: str
) -> None:
    files = load_module(GOLDENS / "adapter_files.py")
    layer = "model.language_model.layers.0.self_attn.q_proj"
    tensors = {
        f"{files.PREFIX}{name}.lora_{letter}.weight": values
        for name, pair in files.draw({layer: (96, 96)}, 4, 1, scale=6).items()
        for letter, values in zip("AB", pair, strict=True)
    }
    path = files.write_tensors(tmp_path / "adapter.safetensors", tensors)

    def texts(package: Any, tensor: Any, device: str, **exact: Any) -> list[str]:
        adapters = package.AdapterConfig(package.Adapter(path), 1.0)
        pipe = package.VLMPipeline(folder, device, adapters=adapters, **exact)
        given = {"image": tensor(tools.picture(60, 90)), "max_new_tokens": 9}
        calls = ({}, {"adapters": package.AdapterConfig()})
        return [pipe.generate("What?", **given, **call).texts[0] for call in calls]

    found = texts(ours, ours.Tensor, device, INFERENCE_PRECISION_HINT="f32")
    assert found == texts(theirs, ov.Tensor, "CPU", **EXACT)
    assert found[0] != found[1]


def watch(
    prompt: Any, videos: Sequence[np.ndarray], images: Sequence[np.ndarray] = (), **parameters: Any
) -> Callable[..., Any]:
    """Return an action that generates from videos; ``chosen`` has the frames of each."""
    chosen = parameters.pop("chosen", ())

    def act(package: Any, pipe: Any, tensor: Any) -> Any:
        metadata = [package.VideoMetadata() for _ in chosen]
        for each, frames in zip(metadata, chosen, strict=True):
            each.fps, each.frames_indices = 25.0, frames
        given: dict[str, Any] = {"videos_metadata": metadata} if metadata else {}
        given |= {"videos": [tensor(video) for video in videos]}
        given |= {"images": [tensor(image) for image in images]} if images else {}
        said = pipe.generate(prompt, **given, max_new_tokens=16, **parameters)
        metrics = said.perf_metrics
        return said.texts, metrics.get_num_input_tokens(), metrics.get_total_image_slice_count()

    return act


@pytest.mark.parametrize(
    "sizes", [((4, 60, 90),), ((1, 60, 90),), ((5, 56, 56),), ((12, 40, 60), (3, 90, 60))], ids=str
)
def test_videos_are_encoded_alike(pipes: tuple[Any, Any], tools: Any, sizes: Any) -> None:
    videos = [tools.film(*size, place) for place, size in enumerate(sizes)]
    check_alike(pipes, watch("What happens?", videos))


def test_frames_are_chosen_alike(pipes: tuple[Any, Any], tools: Any) -> None:
    one, two = tools.film(6, 60, 90), tools.film(4, 60, 60, 9)
    found = [
        check_alike(pipes, watch("What?", [one, two], chosen=chosen))
        for chosen in (([0, 2, 5], []), ([5, 0, 0], [3]), ())
    ]
    assert len({tokens for _, tokens, _ in found}) == 3


@pytest.mark.parametrize(
    ("prompt", "images"),
    [
        ("What?", 1),
        ("a <ov_genai_video_1> b <ov_genai_video_0> c", 0),
        ("a <ov_genai_video_0><ov_genai_image_0> b", 1),
        (f"a {OWN_TAG} b {OWN_TAG}".replace("image", "video"), 0),
    ],
)
def test_videos_and_images_have_tags_of_their_own(
    pipes: tuple[Any, Any], tools: Any, prompt: str, images: int
) -> None:
    """Videos precede images; else openvino_genai exchanges their sizes in positions."""
    videos = [tools.film(4, 60, 60), tools.film(3, 60, 90, 5)]
    check_alike(pipes, watch(prompt, videos, [tools.picture(90, 60, 11)] * images))


def test_chats_with_videos_are_equal(pipes: tuple[Any, Any], folder: Path, tools: Any) -> None:
    """The real pipeline runs on the CPU, as it rejects such chats on NPU."""
    one, two, image = tools.film(4, 60, 90), tools.film(2, 60, 60, 5), tools.picture(60, 60, 9)
    parts = [{"type": "text", "text": "a"}, {"type": "video"}, {"type": "text", "text": "b"}]

    def talk(*turns: tuple[Any, dict[str, Any]]) -> Callable[..., Any]:
        def act(package: Any, pipe: Any, tensor: Any) -> Any:
            chat, found = package.ChatHistory(), []
            for content, given in turns:
                chat.append({"role": "user", "content": content})
                tensors = {name: [tensor(each) for each in of] for name, of in given.items()}
                said = pipe.generate(chat, **tensors, max_new_tokens=9)
                chat.append({"role": "assistant", "content": said.texts[0]})
                found.append((said.texts, said.perf_metrics.get_num_input_tokens()))
            return found

        return act

    pair = pipes[0], theirs.VLMPipeline(folder, "CPU", **EXACT)
    both = {"videos": [two], "images": [image]}
    check_alike(pair, talk(("What?", {"videos": [one]}), ("And?", {})))
    check_alike(pair, talk(("What?", {"images": [image]}), ("And?", {"videos": [one]})))
    check_alike(pair, talk(("What?", {"videos": [one]}), ("And <ov_genai_video_1>?", both)))
    check_alike(pair, talk((parts, {"videos": [one]}), (parts, {"videos": [two]})))


def decrypted(folder: Path, name: str) -> tuple[str, ov.Tensor]:
    """Return the text and the weights of an IR."""
    weights = np.fromfile(folder / f"{name}.bin", np.uint8)
    return (folder / f"{name}.xml").read_text(), ov.Tensor(weights)


@pytest.mark.parametrize("device", ["CPU", "NPU"])
def test_models_in_memory_give_the_same_texts(folder: Path, tools: Any, device: str) -> None:
    models = {part: decrypted(folder, f"openvino_{part}_model") for part in tools.PARTS}

    def text(package: Any, device: str, **exact: Any) -> str:
        config = package.GenerationConfig()
        config.max_new_tokens = 9
        given = models, package.Tokenizer(folder), folder, device
        pipe = package.VLMPipeline(*given, generation_config=config, **exact)
        assert pipe.get_generation_config().eos_token_id == tools.IDS["<|im_end|>"]
        return pipe.generate("What?", images=[ov.Tensor(tools.picture(60, 90))]).texts[0]

    found = text(ours, device, INFERENCE_PRECISION_HINT="f32")
    assert found == text(theirs, "CPU", **EXACT)


def test_metrics_have_all_public_members() -> None:
    for kind in (VLMPerfMetrics, VLMRawPerfMetrics):
        real = getattr(theirs.py_openvino_genai, kind.__name__)
        expected = {member for member in dir(real) if not member.startswith("_")}
        assert expected <= {*dir(kind)}, kind


@pytest.mark.parametrize("size", [(56, 84), (140, 196), (33, 17), (1, 1), (7, 300)], ids=str)
def test_interpolation_equals_openvinos(tools: Any, size: tuple[int, int]) -> None:
    image = tools.picture(60, 90)
    pixels = op.parameter([1, 3, 60, 90], np.float32)
    resized = op.interpolate(
        pixels, op.constant(np.array(size)), "cubic", "sizes", axes=op.constant(np.array([2, 3])),
        coordinate_transformation_mode="pytorch_half_pixel", cube_coeff=-0.75,
    )  # fmt: skip
    compiled = ov.Core().compile_model(ov.Model([resized], [pixels]), "CPU", EXACT)
    expected = compiled(image.transpose(2, 0, 1)[None].astype(np.float32))[0][0]
    found = resize(image, *size).transpose(2, 0, 1)
    np.testing.assert_allclose(found, expected, atol=1e-3)
