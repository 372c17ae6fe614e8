"""Mutations of IRs and Hugging Face folders, and the outcome of reading them.

For any content of a file, the compiler either compiles it or raises a CompilerError, within limits
of memory and time.
"""

from __future__ import annotations

import base64
import json
import lzma
import random
import re
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from compiler_layer.compile import compile_model
from compiler_layer.errors import CompilerError
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.frontends.openvino_ir.rules import RULES
from compiler_layer.model import Model
from compiler_layer.pipeline import Options

CORPUS = Path(__file__).parent / "corpus"
SEED = CORPUS / "seed.xml"
"""IR written by OpenVINO: a stateful decoder of one layer, with weights of 4 and of 16 bits."""

SHAPES = {
    "input_ids": (1, 3),
    "beam_idx": (1,),
    "past.key": (1, 2, 5, 4),
    "past.value": (1, 2, 5, 4),
}

MEMORY_BYTES = 2 << 30
SECONDS = 20

_WORDS = (
    *("", "0", "1", "-1", "-5", "3", "7", "256", "65536", "1000000", "4294967296"),
    *(
        "9223372036854775807",
        "-9223372036854775808",
        "99999999999999999999",
        "1e400",
        "nan",
        "true",
    ),
    *(
        "f32",
        "f16",
        "bf16",
        "i64",
        "i32",
        "u4",
        "i4",
        "boolean",
        "u8",
        "f64",
        "FP32",
        "nf4",
        "?",
        "-",
    ),
    *(
        "1,2",
        "?,?",
        "0,0,0",
        "1..8",
        "32,8",
        "8,32",
        "1000000,1000000,1000000",
        ",",
        "\u0661",
        "&amp;",
    ),
    *RULES,
)


@contextmanager
def limited() -> Iterator[None]:
    """Raise MemoryError or TimeoutError beyond the limits, on top of the current use."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)

    def stop(*_: object) -> None:
        raise TimeoutError(f"it takes more than {SECONDS} s")

    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, before[1]))
    old = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
        resource.setrlimit(resource.RLIMIT_AS, before)


def outcome_of(read: Callable[[], Model]) -> str:
    """Read and compile a model; return "compiled" or the name of the error.

    Raises:
        Exception: any error that is not a CompilerError.
    """
    try:
        with limited():
            model = read()
            known = {port.name for port in model.inputs} | {v.name for v in model.variables()}
            model.set_input_shapes({name: SHAPES[name] for name in SHAPES if name in known})
            compile_model(model, Options())
    except CompilerError as error:
        return type(error).__name__
    return "compiled"


def outcome_of_ir(files: dict[str, bytes], folder: Path) -> str:
    """Return the outcome of reading an IR; see ``outcome_of``."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return outcome_of(lambda: read_ir(folder / "seed.xml"))


def outcome_of_folder(files: dict[str, bytes], folder: Path) -> str:
    """Return the outcome of reading a Hugging Face folder: "read", or the name of the error."""
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    try:
        with limited():
            read_folder(folder)
    except CompilerError as error:
        return type(error).__name__
    return "read"


def packed(files: dict[str, bytes]) -> str:
    """Return files as a text for the corpus."""
    small = {name: base64.b64encode(lzma.compress(files[name])).decode() for name in files}
    return json.dumps(small, indent=1) + "\n"


def unpacked(text: str) -> dict[str, bytes]:
    """Return the files of a text of the corpus."""
    small = json.loads(text).items()
    return {name: lzma.decompress(base64.b64decode(content)) for name, content in small}


def seed_ir() -> dict[str, bytes]:
    """Return the files of the undamaged IR."""
    return {path.name: path.read_bytes() for path in (SEED, SEED.with_suffix(".bin"))}


def mutate_ir(draw: random.Random, files: dict[str, bytes]) -> dict[str, bytes]:
    """Damage an IR in one to four places; most mutations respect its structure."""
    xml, weights = files["seed.xml"].decode(), files["seed.bin"]
    if draw.random() < 0.6:
        xml = without_declarations(xml)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        xml = draw.choice(_XML_MUTATIONS)(draw, xml)
    data = bytearray(weights)
    if draw.random() < 0.3:
        for _ in range(draw.choice((1, 8))):
            at = draw.randrange(len(data) - 8)
            data[at : at + 8] = draw.choice((bytes(8), b"\xff" * 8, draw.randbytes(8)))
    if draw.random() < 0.05:
        del data[draw.randrange(len(data)) :]
    content = xml.encode("utf-8", "surrogateescape")
    if draw.random() < 0.05:
        content = _spoil_bytes(draw, content)
    return {"seed.xml": content, "seed.bin": bytes(data)}


def _element(draw: random.Random, xml: str, pattern: str) -> re.Match[str] | None:
    found = list(re.finditer(pattern, xml, re.S))
    return draw.choice(found) if found else None


def _value(draw: random.Random, xml: str) -> str:
    """Return another attribute value: a listed word, or a value from elsewhere in the file."""
    found = _element(draw, xml, r'"([^"]*)"') if draw.random() < 0.5 else None
    return draw.choice(_WORDS) if found is None else found[1]


def change_attribute(draw: random.Random, xml: str) -> str:
    """Replace the value of an attribute."""
    # Attributes of layers and of their data matter more than names of ports.
    where = draw.choice((r'="([^"]*)"', r'<(?:data|layer) [^>]*?="([^"]*)"'))
    found = _element(draw, xml, where)
    return xml if found is None else xml[: found.start(1)] + _value(draw, xml) + xml[found.end(1) :]


def drop_attribute(draw: random.Random, xml: str) -> str:
    """Remove an attribute."""
    found = _element(draw, xml, r' [\w-]+="[^"]*"')
    return xml if found is None else xml[: found.start()] + xml[found.end() :]


_ELEMENTS = (
    *(r"<edge [^>]*/>", r"<dim>[^<]*</dim>", r"<data [^>]*/>", r"<port [^>]*/>"),
    *(
        r"<port [^>/]*>.*?</port>",
        r"<layer .*?</layer>",
        r"<(?:input|output)>.*?</(?:input|output)>",
    ),
)


def drop_element(draw: random.Random, xml: str) -> str:
    """Remove an element."""
    found = _element(draw, xml, draw.choice(_ELEMENTS))
    return xml if found is None else xml[: found.start()] + xml[found.end() :]


def repeat_element(draw: random.Random, xml: str) -> str:
    """Repeat an element."""
    found = _element(draw, xml, draw.choice(_ELEMENTS))
    return xml if found is None else xml[: found.end()] + found[0] + xml[found.end() :]


def swap_elements(draw: random.Random, xml: str) -> str:
    """Swap two elements of a kind."""
    kind = draw.choice(_ELEMENTS)
    pair = [found for found in (_element(draw, xml, kind), _element(draw, xml, kind)) if found]
    pair.sort(key=lambda found: found.start())
    if len(pair) < 2 or pair[0].end() > pair[1].start():
        return xml
    one, two = pair
    return xml[: one.start()] + two[0] + xml[one.end() : two.start()] + one[0] + xml[two.end() :]


def change_edge(draw: random.Random, xml: str) -> str:
    """Move one end of an edge."""
    one = _element(draw, xml, r'(?:from|to)-(?:layer|port)="(\d+)"')
    two = _element(draw, xml, r'(?:from|to)-(?:layer|port)="(\d+)"')
    if one is None or two is None:
        return xml
    return xml[: one.start(1)] + two[1] + xml[one.end(1) :]


def change_text(draw: random.Random, xml: str) -> str:
    """Replace a declared dimension."""
    found = _element(draw, xml, r"<dim>([^<]*)</dim>")
    return xml if found is None else xml[: found.start(1)] + _value(draw, xml) + xml[found.end(1) :]


def without_declarations(xml: str) -> str:
    """Remove the declared types of all ports, so that none contradicts an inferred type."""
    return re.sub(r' precision="[^"]*"', "", xml)


_XML_MUTATIONS = (
    *(change_attribute,) * 5,
    *(drop_attribute, drop_element, repeat_element, swap_elements, change_edge, change_text),
)


def _spoil_bytes(draw: random.Random, content: bytes) -> bytes:
    data = bytearray(content)
    for _ in range(draw.choice((1, 2, 8))):
        at = draw.randrange(len(data) + 1)
        data[at : at + draw.randrange(4)] = draw.choice(
            (
                b"",
                b"\x00",
                b"\xff\xfe",
                b"\xef\xbb\xbf",
                b"<",
                b'"',
                b"<!DOCTYPE a>",
                b"]",
                b"9" * 5000,
            )
        )
    return bytes(data)


_JSON_VALUES = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        3,
        7,
        64,
        10**6,
        2**24 - 1,
        2**31,
        2**63,
        10**30,
        1e-30,
        0.5,
        1e30,
    ),
    *("", "silu", "llama", "F32", "F16", "BF16", "I64", "U8", "../x", "\x00", "x" * 100000),
    *([], {}, [1], [0, 8], [[]], [2**60] * 40, [1] * 100000, {"rope_type": "yarn", "factor": 2.0}),
)


def folder_files(folder: Path) -> dict[str, bytes]:
    """Return the files of a Hugging Face folder that the frontend reads; shards if it has any."""
    names = [path.name for path in folder.iterdir() if path.suffix in (".json", ".safetensors")]
    if "model.safetensors.index.json" in names and "model.safetensors" in names:
        names.remove("model.safetensors")
    return {name: (folder / name).read_bytes() for name in sorted(names)}


def mutate_folder(draw: random.Random, files: dict[str, bytes]) -> dict[str, bytes]:
    """Damage one to three places of a folder's config, index and headers."""
    spoilt = dict(files)
    for _ in range(draw.choice((1, 1, 2, 3))):
        name = draw.choice(sorted(spoilt))
        if draw.random() < 0.1:
            spoilt[name] = _spoil_bytes(draw, spoilt[name][:4096]) + spoilt[name][4096:]
        elif name.endswith(".json"):
            spoilt[name] = _mutated_json(draw, spoilt[name])
        else:
            spoilt[name] = _mutated_safetensors(draw, spoilt[name])
    if draw.random() < 0.05:
        del spoilt[draw.choice(sorted(spoilt))]
    return spoilt


def _mutated_json(draw: random.Random, content: bytes) -> bytes:
    try:
        tree = json.loads(content)
    except ValueError:
        return content
    return json.dumps(_mutated_tree(draw, tree)).encode()


def _mutated_tree(draw: random.Random, tree: object) -> object:
    """Change a value in a JSON tree, or add or remove a key or an item."""
    if isinstance(tree, dict) and tree and draw.random() < 0.95:
        key, other = draw.choice(list(tree)), draw.choice(list(tree))
        match draw.randrange(8):
            case 0:
                return {k: v for k, v in tree.items() if k != key}
            case 1:
                return tree | {key: tree[other]}
            case _:
                return tree | {key: _mutated_tree(draw, tree[key])}
    if isinstance(tree, list) and tree and draw.random() < 0.7:
        at = draw.randrange(len(tree))
        return [*tree[:at], _mutated_tree(draw, tree[at]), *tree[at + 1 + draw.randrange(2) :]]
    if isinstance(tree, int) and draw.random() < 0.5:
        return tree + draw.choice((-1, 1, -(1 << 32), 1 << 32))
    return draw.choice(_JSON_VALUES)


def _mutated_safetensors(draw: random.Random, content: bytes) -> bytes:
    length = int.from_bytes(content[:8], "little")
    header = _mutated_json(draw, content[8 : 8 + length])
    stated = draw.choice((len(header),) * 8 + (0, len(header) - 1, 1 << 40, 2**64 - 1))
    data = content[8 + length :]
    cut = draw.choice((0, 0, 0, 4))
    return max(0, stated).to_bytes(8, "little") + header + data[: max(0, len(data) - cut)]
