"""The pictures show what the records say."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_records import MakeRecord
from matplotlib.figure import Figure
from PIL import Image

from neuclust.errors import ConfigError
from neuclust.experiment.records import RunRecord
from neuclust.report.drawing import needs_log_axis, save_figure
from neuclust.report.figures import clipped_figure, regret_figure, reward_figure, spread_out

FIGURES = (regret_figure, reward_figure, clipped_figure)


def axes_of(figure: Figure) -> Any:
    """The one set of axes, of which matplotlib's stubs do not know the arrays."""
    (axes,) = figure.axes
    return axes


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in axes_of(figure).texts]


def test_curves_are_means_with_bands_of_one_standard_error(record: MakeRecord) -> None:
    regrets = [10.0, 12.0, 14.0, 20.0]
    figure = regret_figure([record("linucb", seed, regret) for seed, regret in enumerate(regrets)])
    (curve,) = [line for line in axes_of(figure).lines if line.get_linewidth() == 2.0]
    assert next(iter(curve.get_xdata())) == 0
    assert list(curve.get_ydata())[-1] == pytest.approx(14.0)
    (band,) = axes_of(figure).collections
    outline = band.get_paths()[0].vertices
    last = outline[outline[:, 0] == 100.0, 1]
    error = np.std(regrets, ddof=1) / 2
    assert (last.min(), last.max()) == pytest.approx((14.0 - error, 14.0 + error))
    assert "shaded: ± 1 standard error" in axes_of(figure).get_xlabel()


def test_few_seeds_are_thin_lines_instead(record: MakeRecord) -> None:
    figure = regret_figure([record("linucb", seed, regret) for seed, regret in enumerate([10.0, 12.0, 14.0])])
    assert len(axes_of(figure).collections) == 0
    thin = [line for line in axes_of(figure).lines if line.get_linewidth() == 0.7]
    assert sorted(float(line.get_ydata()[-1]) for line in thin) == pytest.approx([10.0, 12.0, 14.0])


def test_ends_are_labelled_in_the_order_of_the_regrets(record: MakeRecord) -> None:
    figure = regret_figure([record("b", 0, 12.0), record("a", 0, 12.1), record("c", 0, 3.0)])
    assert texts(figure) == ["c  3.00", "b  12.00", "a  12.10"]
    heights = [text.get_position()[1] for text in axes_of(figure).texts]
    assert all(upper - lower > 0.05 for lower, upper in pairwise(heights))


def test_the_axis_turns_logarithmic_when_policies_lie_far_apart(record: MakeRecord) -> None:
    near = regret_figure([record("a", 0, 10.0), record("b", 0, 200.0), record("oracle", 0, 0.0)])
    far = regret_figure([record("a", 0, 0.3), record("b", 0, 300.0), record("oracle", 0, 0.0)])
    assert axes_of(near).get_yscale() == "linear"
    assert axes_of(far).get_yscale() == "symlog"
    assert "log scale" in axes_of(far).get_ylabel()


@pytest.mark.parametrize(
    ("finals", "log"),
    [([1.0], False), ([0.0, 5.0], False), ([1.0, 29.0], False), ([1.0, 31.0], True), ([0.0, 0.0], False)],
)
def test_log_axis_rule(finals: list[float], log: bool) -> None:
    assert needs_log_axis(finals) is log


def test_clipped_regret_is_never_shown_without_its_floor(record: MakeRecord) -> None:
    figure = clipped_figure([record("a", 0, 10.0), record("b", 0, 50.0)])
    (floor,) = [line for line in axes_of(figure).lines if list(line.get_ydata()) == [16.0, 16.0]]
    assert floor.get_linestyle() == "--"
    assert texts(figure) == ["floor  16.00"]
    bottom, top = axes_of(figure).get_ylim()
    assert bottom == 0
    assert top > 16 + 0.8 * 50


def test_reward_is_an_average_below_the_best_possible(record: MakeRecord) -> None:
    figure = reward_figure([record("a", 0, 10.0)])
    assert texts(figure) == ["a  0.700", "best possible  0.800"]


@pytest.mark.parametrize("figure_of", FIGURES)
def test_every_picture_names_the_problem_and_both_axes(
    record: MakeRecord, figure_of: Callable[[list[RunRecord]], Figure]
) -> None:
    axes = axes_of(figure_of([record("a", 0, 10.0)]))
    assert "on bump: slates of 5, 100 rounds, 1 seed" in axes.get_title(loc="left")
    assert axes.get_xlabel()
    assert "is better" in axes.get_ylabel()


@pytest.mark.parametrize("figure_of", FIGURES)
def test_nothing_leaves_the_page(record: MakeRecord, figure_of: Callable[[list[RunRecord]], Figure]) -> None:
    names = ["neuclust-online", "cn-ucb", "linucb", "uniform", "oracle", "neuclust"]
    problem: dict[str, str | int | None] = {
        "slate_reward": "table:0,0,0.2,0.5,1,1",
        "arms_per_round": 500,
        "start_ratings": 5,
    }
    runs = [record(name, seed, 0.01 * 4**place) for place, name in enumerate(names) for seed in range(4)]
    runs += [record("cn-ucb", seed, 0.3, settings={"arms.network.width": "64", "gamma": "0.25"}) for seed in range(4)]
    figure = figure_of([replace(run, problem=problem) for run in runs])
    page, needed = figure.bbox_inches, figure.get_tightbbox()
    assert needed.x0 >= page.x0
    assert needed.y0 >= page.y0
    assert needed.x1 <= page.x1
    assert needed.y1 <= page.y1


def test_a_run_cut_short_can_be_drawn(record: MakeRecord) -> None:
    cut = record("a", 0, 0.2, rounds=1, rounds_asked=100, interrupted=True)
    for figure_of in FIGURES:
        assert "1 round," in axes_of(figure_of([cut])).get_title(loc="left")


def test_pictures_of_two_problems_or_none_are_refused(record: MakeRecord) -> None:
    with pytest.raises(ConfigError, match="expected runs on one problem"):
        regret_figure([record("a", 0, 1.0), record("a", 0, 1.0, env="clusters")])
    with pytest.raises(ConfigError, match="no rounds at all"):
        regret_figure([])


def test_files_are_real_sharp_and_repeatable(record: MakeRecord, tmp_path: Path) -> None:
    runs = [record("a", 0, 10.0), record("b", 0, 12.0)]
    for name in ("one.png", "two.png", "one.svg", "two.svg"):
        save_figure(regret_figure(runs), tmp_path / name)
    with Image.open(tmp_path / "one.png") as image:
        assert image.size[0] >= 8.6 * 150
    assert ElementTree.parse(tmp_path / "one.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    with pytest.raises(ConfigError, match=r"expected a picture named .png or .svg, got .bmp"):
        save_figure(regret_figure(runs), tmp_path / "one.bmp")


@given(st.lists(st.floats(0, 1), max_size=12).map(sorted))
def test_labels_are_spread_apart_in_order_and_stay_when_they_can(heights: list[float]) -> None:
    gap = 0.05
    placed = spread_out(heights, gap)
    assert all(upper - lower >= gap - 1e-9 for lower, upper in pairwise(placed))
    assert all(-1e-9 <= height <= 1 + 1e-9 for height in placed)
    if all(upper - lower >= gap for lower, upper in pairwise(heights)):
        assert placed == pytest.approx(heights)
