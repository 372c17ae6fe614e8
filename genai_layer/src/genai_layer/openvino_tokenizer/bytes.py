"""Characters that stand for bytes in byte-level vocabularies (GPT-2's table)."""

from __future__ import annotations

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
_CHARACTERS = {byte: chr(byte) for byte in _PRINTABLE} | {
    byte: chr(0x100 + index) for index, byte in enumerate(_OTHERS)
}
_BYTES = {character: byte for byte, character in _CHARACTERS.items()}

TOKENS = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""Names of the tokens that stand for single bytes, where characters are missing."""


def to_characters(data: bytes) -> str:
    """Return the characters that stand for bytes."""
    return "".join(_CHARACTERS[byte] for byte in data)


def from_characters(text: str) -> bytes:
    """Return the bytes that a text stands for; a text with other characters is UTF-8."""
    if all(character in _BYTES for character in text):
        return bytes(_BYTES[character] for character in text)
    return text.encode()
