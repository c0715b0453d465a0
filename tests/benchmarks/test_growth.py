"""Exponents of growth curves, and the picture of them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.growth import Panel, exponent, growth_figure
from neuclust.report.drawing import save_figure


@given(st.floats(-2, 3), st.floats(0.01, 100), st.integers(2, 9))
def test_a_power_law_gives_back_its_exponent(power: float, factor: float, count: int) -> None:
    curve = [(float(4**i), factor * 4.0 ** (i * power)) for i in range(1, count + 1)]
    assert exponent(curve) == pytest.approx(power, abs=1e-9)


def test_only_the_upper_half_counts() -> None:
    flat_then_square = [(1.0, 100.0), (10.0, 100.0), (100.0, 100.0), (1e3, 1e6), (1e4, 1e8), (1e5, 1e10)]
    assert exponent(flat_then_square) == pytest.approx(2.0)


def test_two_points_are_needed() -> None:
    assert math.isnan(exponent([]))
    assert math.isnan(exponent([(10.0, 3.0)]))
    assert math.isnan(exponent([(10.0, 3.0), (20.0, 0.0)]))  # nothing cannot be drawn on a log axis


def test_the_picture_names_curves_with_their_exponents(tmp_path: Path) -> None:
    panel = Panel("Time against arms", "arms", "milliseconds", {"select": [(1.0, 1.0), (10.0, 10.0)], "none": []})
    figure = growth_figure([panel, panel], columns=2)
    axes = figure.axes[0]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert [line.get_label() for line in axes.get_lines()] == ["select: x^1.00"]
    save_figure(figure, tmp_path / "growth.svg")
    assert "<svg" in (tmp_path / "growth.svg").read_text(encoding="utf-8")
