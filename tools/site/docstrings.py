"""Docstrings of this project, which are plain text with single backticks, as reStructuredText."""

import re

SPECIAL = re.compile(r"([*|\\])|(?<=\w)(_)(?!\w)")  # what reStructuredText would read as markup


def as_rst(lines: list[str]) -> list[str]:
    """Paragraphs of plain text: code between double backticks, markup characters escaped, indented parts kept."""
    return [_line(line) for line in _aligned(lines)]


def _line(line: str) -> str:
    parts = line.split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner is a character
        return SPECIAL.sub(r"\\\g<0>", line).replace("`", r"\`")
    plain = [SPECIAL.sub(r"\\\g<0>", part) if at % 2 == 0 else f"``{part}``" for at, part in enumerate(parts)]
    return _spaced(plain)


def _spaced(parts: list[str]) -> str:
    """Code that touches a word is set apart by an escaped blank, which shows nothing."""
    text = ""
    for part in parts:
        touches = text and part and (
            (part.startswith("``") and re.match(r"\w", text[-1]))
            or (text.endswith("``") and re.match(r"\w", part[0]))
        )  # fmt: skip
        text += ("\\ " if touches else "") + part
    return text


def _aligned(lines: list[str]) -> list[str]:
    """Every paragraph without indentation: a deeper first or second line is no quotation here."""
    return [line.strip() for line in lines]
