"""Figures as SVG and PDF: the same figure gives the same bytes, with no date and nothing fetched from elsewhere."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import matplotlib
from matplotlib.figure import Figure

LETTERS: dict[Any, object] = {  # keys of matplotlib's settings
    "font.family": "DejaVu Sans",
    "font.size": 7.0,
    "axes.labelsize": 7.0,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "text.parse_math": False,  # a name may hold a dollar sign
}


@contextmanager
def small_letters(more: Mapping[Any, object] = MappingProxyType({})) -> Iterator[None]:
    """Settings under which a figure of one column is drawn and written."""
    with matplotlib.rc_context({**LETTERS, **more}):
        yield


def svg_text(figure: Figure, as_paths: bool = True) -> str:
    """The figure as SVG; equal figures give equal text. Letters as paths look alike everywhere."""
    out = io.StringIO()
    with small_letters({"svg.hashsalt": "neuclust", "svg.fonttype": "path" if as_paths else "none"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def pdf_bytes(figure: Figure) -> bytes:
    """The figure as PDF with its fonts inside (TrueType, type 42, which publishers ask for) and without a date."""
    out = io.BytesIO()
    with small_letters({"pdf.fonttype": 42}):
        figure.savefig(out, format="pdf", metadata={"CreationDate": None})
    return out.getvalue()


def inline_svg(figure: Figure, prefix: str, label: str) -> str:
    """SVG to stand inside a page: its ids are its own, its size is the page's, its letters are text.

    `prefix` and `label` must be safe inside an attribute.
    """
    svg = svg_text(figure, as_paths=False)
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    head, rest = svg.split(">", 1)
    head = re.sub(r'\s(xmlns(:\w+)?|width|height|version)="[^"]*"', "", head)
    rest = re.sub(r'(<[^<>]*?\sid=")', rf"\g<1>{prefix}-", rest)
    rest = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{prefix}-", rest)
    return f'{head} role="img" aria-label="{label}">{rest}'
