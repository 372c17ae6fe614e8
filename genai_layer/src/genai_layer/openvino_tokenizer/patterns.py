r"""Regular expressions of PCRE2, which the ops use, as those of Oniguruma, which tokenizers uses.

Where the two differ: ``\w`` (Oniguruma includes all marks), ``\s`` (PCRE2 includes U+180E), scripts
(PCRE2 reads ``\p{Han}`` as a script extension), ``^`` and ``$`` (Oniguruma: of each line),
``\x7F`` (Oniguruma: a byte), ``[`` and ``&&`` in a class. Characters of newer Unicode versions than
a library knows are not letters to that library.

Source: the manual of PCRE2 (pcre2pattern), Oniguruma's doc/RE;
docs/reference/genai.md#tokenizer-models.
"""

from __future__ import annotations

import re

HAN = (
    r"\x{23}\x{B7}\x{2E80}-\x{2E99}\x{2E9B}-\x{2EF3}\x{2F00}-\x{2FD5}\x{2FF0}-\x{2FFF}"
    r"\x{3001}-\x{3003}\x{3005}-\x{3011}\x{3013}-\x{301F}\x{3021}-\x{302D}\x{3030}"
    r"\x{3037}-\x{303F}\x{30FB}\x{3190}-\x{319F}\x{31C0}-\x{31E5}\x{31EF}\x{3220}-\x{3247}"
    r"\x{3280}-\x{32B0}\x{32C0}-\x{32CB}\x{32FF}\x{3358}-\x{3370}\x{337B}-\x{337F}"
    r"\x{33E0}-\x{33FE}\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{A700}-\x{A707}\x{F900}-\x{FA6D}"
    r"\x{FA70}-\x{FAD9}\x{FE45}-\x{FE46}\x{FF61}-\x{FF65}\x{16FE2}-\x{16FE3}"
    r"\x{16FF0}-\x{16FF6}\x{1D360}-\x{1D371}\x{1F250}-\x{1F251}\x{20000}-\x{2A6DF}"
    r"\x{2A700}-\x{2B81D}\x{2B820}-\x{2CEAD}\x{2CEB0}-\x{2EBE0}\x{2EBF0}-\x{2EE5D}"
    r"\x{2F800}-\x{2FA1D}\x{30000}-\x{3134A}\x{31350}-\x{33479}"
)

_PLAIN = frozenset("rntdD")
_GROUPS = ("?:", "?i:", "?!", "?=", "?<=", "?<!")
_TOKEN = re.compile(
    r"\\x\{(?P<wide>[0-9A-Fa-f]{1,6})\}|\\x(?P<byte>[0-9A-Fa-f]{2})"
    r"|\\(?P<property>[pP])\{(?P<named>\^?\w+)\}|\\(?P<escaped>.)"
    r"|\((?P<group>\?(?:[a-z]*:|<?[=!]|.)?)?|(?P<counted>\{\d*,?\d*\}[+])|(?P<other>.)",
    re.DOTALL,
)
_PROPERTIES = re.compile(r"L[ultmo]?|N[dlo]?|P[cdseifo]?|M[nce]?|S[mcko]?|Z[slp]?|C[cfnos]?")


def translate(pattern: str) -> str:
    """Return the pattern for Oniguruma.

    Raises:
        ValueError: a part of the pattern may have another meaning there.
    """
    found: list[str] = []
    inside = False
    for match in _TOKEN.finditer(pattern):
        if match["other"]:
            part, inside = _character(match["other"], inside, pattern, match.start())
        else:
            part = _special(match, inside)
        found.append(part)
    if inside:
        raise ValueError("a class does not end")
    return "".join(found)


def _special(match: re.Match[str], inside: bool) -> str:
    """Return an escape sequence, or the beginning of a group."""
    if match["wide"] or match["byte"]:
        return f"\\x{{{match['wide'] or match['byte']}}}"
    if match["property"]:
        return _property(match["property"], match["named"], inside)
    if match["escaped"]:
        return _escaped(match["escaped"], inside)
    if not inside and (match["counted"] or (match["group"] and match["group"] not in _GROUPS)):
        raise ValueError(f"{match[0]!r} is not supported")
    return match[0]


def _character(other: str, inside: bool, pattern: str, at: int) -> tuple[str, bool]:
    """Return a character that is not escaped, and whether a class is open behind it."""
    if not inside:
        if other == "[" and pattern.startswith(("]", "^]"), at + 1):
            raise ValueError("a class that begins with ] is not supported")
        return {"^": r"\A", "$": r"\Z"}.get(other, other), other == "["
    if pattern.startswith("&&", at) or pattern.startswith(("[:", "[.", "[="), at):
        raise ValueError("intersections and named classes are not supported")
    return (r"\[", True) if other == "[" else (other, other != "]")


def _property(letter: str, named: str, inside: bool) -> str:
    """Return a general category, or the ranges of a script."""
    if named == "Han" and letter == "p":
        return HAN if inside else f"[{HAN}]"
    if not _PROPERTIES.fullmatch(named):
        raise ValueError(f"the property {named!r} is not supported")
    return f"\\{letter}{{{named}}}"


def _escaped(character: str, inside: bool) -> str:
    """Return an escaped character, or a class."""
    classes = {"s": r"\s\x{180E}", "w": r"\p{L}\p{N}\p{Mn}\p{Pc}"}
    if character.lower() in classes:
        negated = character.isupper()
        if inside and negated:
            raise ValueError(f"\\{character} in a class is not supported")
        listed = classes[character.lower()]
        return listed if inside else f"[{'^' * negated}{listed}]"
    if character.isalnum() and character.isascii() and character not in _PLAIN:
        raise ValueError(f"\\{character} is not supported")
    return f"\\{character}" if character.isascii() else character
