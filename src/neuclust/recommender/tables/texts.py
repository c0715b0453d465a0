"""Numbers that were written as text: what counts as one, what counts as missing beside them, and what was meant."""

import re

MISSING = frozenset({"NULL", "null", "NA", "N/A", "n/a", "None", "\\N", "-", "#N/A", "nan"})  # beside other values

_REAL = re.compile(
    r"\s*[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\s*|\s*(nan|[-+]?inf(inity)?)\s*", re.I
)
_DECLARED = re.compile(r"\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*")  # 007 too
_ADORNED = re.compile(r"[^0-9.,+-]{0,5}([-+]?[0-9]+([.,][0-9]{1,2}|[.][0-9]+)?)[^0-9.,+-]{0,5}")  # 4,50 € or 12%


def is_number(text: str) -> bool:
    """Whether a text is a number, with a dot and without zeros before it: 007 is none."""
    return _REAL.fullmatch(text) is not None


def number_in(text: str) -> float | None:
    """The number that a text of a declared column of numbers is; None where it is none."""
    return float(text) if _DECLARED.fullmatch(text) else None


def is_missing(text: str) -> bool:
    """Whether a text says that there is no value; only to be asked where the other values are no text."""
    return text.strip() in MISSING or text.strip().lower() == "nan"


def advice_for(text: str) -> str:
    """What to write in the place of a text that is no number."""
    meant = _ADORNED.fullmatch(text.strip())
    if meant is None:
        return "make it empty, or declare the column a category if it holds text"
    return f"write {meant[1].replace(',', '.')}"
