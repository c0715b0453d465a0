"""The picture and the table of a shop show what its runs say."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest

from neuclust.analysis.shop import summarised
from neuclust.experiment.shop import ShopRun
from neuclust.report.drawing import GREY
from neuclust.report.shop import requests_csv, shop_figure, text_table


def run_of(policy: str, level: float, count: int = 1000) -> ShopRun:
    return ShopRun(policy, np.ones(count), np.full(count, level), np.full(count, 0.2), np.full(count, 1.0))


def test_every_policy_has_a_curve_between_random_and_best() -> None:
    figure = shop_figure([run_of("auto", 0.9), run_of("uniform", 0.21), run_of("linucb", 0.7, count=400)])
    axes: Any = figure.axes[0]
    curves = [line for line in axes.lines if line.get_transform() == axes.transData]
    assert [float(line.get_ydata()[-1]) for line in curves] == pytest.approx([0.9, 0.21, 0.7, 1.0, 0.2])
    assert [int(line.get_xdata()[-1]) for line in curves] == [1000, 1000, 400, 1000, 1000]
    assert max(len(line.get_xdata()) for line in curves) <= 300
    assert len({line.get_color() for line in curves[:3]}) == 3
    assert curves[1].get_color() == GREY
    labels = [text.get_text().split("  ")[0] for text in axes.texts]
    assert sorted(labels) == ["auto", "best possible", "linucb", "random slates", "uniform"]
    assert axes.get_ylim()[1] > 1.0
    assert "last 100 requests" in axes.get_xlabel()


@pytest.mark.parametrize("count", [1, 2, 9])
def test_few_requests_can_be_drawn(count: int) -> None:
    assert shop_figure([run_of("auto", 0.9, count)]).axes


def test_tables_hold_the_numbers() -> None:
    runs = [run_of("auto", 0.84), run_of("uniform", 0.2, count=12)]
    lines = text_table([summarised(run) for run in runs]).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["auto", "1,000", "0.84", "0.84", "80%"],
        ["uniform", "12", "0.20", "0.20", "0%"],
    ]
    rows = list(csv.DictReader(io.StringIO(requests_csv(runs))))
    assert len(rows) == 1012
    assert rows[-1] == {
        "policy": "uniform", "request": "12", "clicks": "1", "expected": "0.200000", "random": "0.200000",
        "best": "1.000000",
    }  # fmt: skip
