"""How every picture is drawn and written: colours, axes, curves with error bands, legends; SVG, PDF and PNG.

No pyplot: nothing global is touched and no display is needed. Equal figures give equal bytes, without a date.
"""

import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from neuclust.analysis.curves import Band
from neuclust.analysis.groups import ProblemRuns
from neuclust.errors import ConfigError
from neuclust.files import write_bytes

# Okabe and Ito's colours, told apart with any colour vision; yellow is left out: too pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F3C8D", "#8C564B")
BLUE, ORANGE = COLOURS[:2]
INK, GREY, GRID = "#222222", "#6E6E6E", "#E3E3E3"
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
Dash = tuple[int, tuple[float, ...] | None]
DASHES: tuple[Dash, ...] = ((0, None), (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
FLOOR_DASH, BEST_DASH, CHOICE_DASH = (0, (5, 3)), (0, (4, 3)), (0, (1, 2))
LOG_SPREAD = 30.0  # final regrets this many times apart cannot share a linear axis
FEW_SEEDS = 3  # up to here every seed is drawn as a thin line
PNG_DPI = 160
LABEL_SIZE = 9.5  # points
LETTERS: Mapping[Any, object] = {  # keys of matplotlib's settings; a name may hold a dollar sign
    "font.family": "DejaVu Sans", "font.size": 7.0, "text.parse_math": False, "axes.labelsize": 7.0,
    "xtick.labelsize": 6.5, "ytick.labelsize": 6.5, "legend.fontsize": 6.5,
    "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Picture:
    """One drawn figure, what it is called in a file name, and what it shows in a sentence."""

    name: str
    title: str
    caption: str
    figure: Figure


@dataclass(frozen=True, slots=True)
class Pen:
    """Line widths of means, single seeds and references, and how visible single seeds are."""

    line: float
    thin: float
    faint: float
    reference: float


WIDE_PEN, COLUMN_PEN = Pen(2.0, 0.7, 0.45, 1.2), Pen(1.3, 0.4, 0.5, 0.9)


@dataclass(frozen=True, slots=True)
class Style:
    """How a contender is drawn."""

    colour: str
    dash: Dash


def line_styles(problem: ProblemRuns) -> dict[str, Style]:
    """A style per contender, by title, so that every picture of the same runs agrees; yardsticks are grey."""
    styles = dict.fromkeys((contender.title for contender in problem.contenders), Style(GREY, DASHES[0]))
    for index, title in enumerate(sorted(learner.title for learner in problem.learners)):
        turn, colour = divmod(index, len(COLOURS))
        styles[title] = Style(COLOURS[colour], DASHES[turn % len(DASHES)])
    return styles


def new_figure(size: tuple[float, float], **more: Any) -> Figure:
    """An empty figure of so many inches that can be written."""
    figure = Figure(figsize=size, **more)
    FigureCanvasAgg(figure)
    return figure


def bare(axes: Axes, grid: str = "y", width: float = 0.7) -> Axes:
    """Axes without a frame, with a light grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y" if grid == "y" else "x", color=GRID, linewidth=width)
    axes.set_axisbelow(True)
    return axes


def panels(size: tuple[float, float], columns: int) -> tuple[Figure, list[Axes]]:
    """A figure with so many axes beside each other."""
    figure = new_figure(size, layout="constrained")
    axes = [bare(figure.add_subplot(1, columns, column + 1)) for column in range(columns)]
    for one in axes:
        one.tick_params(colors=INK)
    return figure, axes


def draw_bands(axes: Axes, bands: Sequence[Band], styles: Mapping[str, Style], pen: Pen) -> None:
    """Means, the best on top; thin lines for few seeds, a band of ± 1 standard error for more."""
    for band in reversed(bands):
        colour, count = styles[band.title].colour, len(band.seeds)
        axes.plot(band.rounds, band.mean, color=colour, linestyle=styles[band.title].dash, linewidth=pen.line, zorder=3)
        if 1 < count <= FEW_SEEDS:
            axes.plot(band.rounds, band.seeds.T, color=colour, linewidth=pen.thin, alpha=pen.faint, zorder=2)
        elif count > FEW_SEEDS:
            low, high = band.mean - band.error, band.mean + band.error
            axes.fill_between(band.rounds, low, high, color=colour, alpha=0.18, linewidth=0, zorder=2)
    axes.set_xlabel("round")
    axes.set_xlim(0, max(float(band.rounds[-1]) for band in bands))


def draw_reference(axes: Axes, band: Band, dash: Dash, pen: Pen, zorder: int = 1) -> None:
    """A dashed line that contenders are measured by."""
    axes.plot(band.rounds, band.mean, color=INK, linewidth=pen.reference, linestyle=dash, zorder=zorder)


def spread_words(seeds: int, single: str = "") -> str:
    """What thin lines or bands show."""
    return single if seeds == 1 else "thin lines: single seeds" if seeds <= FEW_SEEDS else "shaded: ± 1 standard error"


def needs_log_axis(finals: Sequence[float]) -> bool:
    """Whether final regrets (those above zero) lie too far apart for a linear axis."""
    positive = [final for final in finals if final > 0]
    return len(positive) > 1 and max(positive) > LOG_SPREAD * min(positive)


def use_log_axis(axes: Axes, finals: Sequence[float]) -> None:
    """Logarithmic, and linear near zero, where oracles are."""
    largest = max(finals)
    smallest = max(min(final for final in finals if final > 0), largest * 1e-5)
    axes.set_yscale("symlog", linthresh=10.0 ** math.floor(math.log10(smallest)), linscale=0.6)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(0, largest * 1.6)


def dashed(dash: tuple[int, tuple[float, ...]]) -> Line2D:
    """The mark of a reference in a legend."""
    return Line2D([], [], color=INK, linewidth=COLUMN_PEN.reference, linestyle=dash)


def shortened(name: str, letters: int) -> str:
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


# --- files ----------------------------------------------------------------------------------------------------------


@contextmanager
def small_letters(more: Mapping[Any, object] = MappingProxyType({})) -> Iterator[None]:
    """Settings under which a figure of one column is drawn and written."""
    with matplotlib.rc_context({**LETTERS, **more}):
        yield


def _bytes(figure: Figure, kind: str, **more: Any) -> bytes:
    """The figure as a file; equal figures give equal bytes."""
    out = io.BytesIO()
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with matplotlib.rc_context({"svg.hashsalt": "neuclust", "pdf.fonttype": 42}):  # TrueType, as publishers ask for
        figure.savefig(out, format=kind, metadata=dates.get(kind, {}), **more)
    return out.getvalue()


def save_figure(figure: Figure, path: Path) -> None:
    """Write a `.png` or `.svg`, whole or not at all."""
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("png", "svg"):
        raise ConfigError(f"{path}: expected a picture named .png or .svg, got {path.suffix or 'no ending'}")
    write_bytes(path, _bytes(figure, kind, dpi=PNG_DPI))


def save_figures(figures: Mapping[str, Figure], folder: Path) -> None:
    """Every figure as FOLDER/NAME.png and .svg."""
    for name, figure in figures.items():
        for ending in ("png", "svg"):
            save_figure(figure, folder / f"{name}.{ending}")


def write_picture(figure: Figure, folder: Path, name: str, *kinds: str) -> list[Path]:
    """A small figure as files of these kinds: svg, pdf, png."""
    files = [folder / f"{name}.{kind}" for kind in kinds]
    for file, kind in zip(files, kinds, strict=True):
        with small_letters():
            write_bytes(file, _bytes(figure, kind, **({"dpi": PNG_DPI} if kind == "png" else {})))
    return files


def svg_text(figure: Figure, as_paths: bool = True) -> str:
    """A small figure as SVG. Letters as paths look alike everywhere."""
    with small_letters({"svg.fonttype": "path" if as_paths else "none"}):
        return _bytes(figure, "svg").decode()


def inline_svg(figure: Figure, prefix: str, label: str) -> str:
    """SVG inside a page: own ids, the page's size, text as text; `prefix` and `label` must be safe in attributes."""
    svg = svg_text(figure, as_paths=False)
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    head, rest = svg.split(">", 1)
    head = re.sub(r'\s(xmlns(:\w+)?|width|height|version)="[^"]*"', "", head)
    rest = re.sub(r'(<[^<>]*?\sid=")', rf"\g<1>{prefix}-", rest)
    rest = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{prefix}-", rest)
    return f'{head} role="img" aria-label="{label}">{rest}'
