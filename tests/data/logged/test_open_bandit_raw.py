"""The Open Bandit layout: a small invented folder, broken rows, and the published sample where it is at hand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuclust.data.logged.exposures import Exposures
from neuclust.data.logged.open_bandit import OpenBanditOptions, OpenBanditReport, open_bandit_files, prepare_open_bandit
from neuclust.errors import DataError

SAMPLE = os.environ.get("NEUCLUST_OBD", "")
CLICKS = {("random", "all"): 38, ("random", "men"): 46, ("random", "women"): 46}
CLICKS |= {("bts", "all"): 42, ("bts", "men"): 69, ("bts", "women"): 46}
HEADER = (
    ",timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1,user_feature_2,user_feature_3"
)
ROWS = [
    "0,2019-11-24 00:00:34.762830+00:00,1,3,0,0.5,u,v,w,x",
    "1,2019-11-24 00:00:17+00:00,0,1,1,0.5,u,v2,w,x",
    "2,2019-11-24 00:00:53.965051+00:00,1,2,0,0.5,u,v,w,x",
]
ITEMS = ",item_id,item_feature_0,item_feature_1,item_feature_2,item_feature_3\n0,0,-0.5,a,b,c\n1,1,0.25,a2,b,c\n"


def write(folder: Path, rows: list[str], items: str = ITEMS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "all.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    (folder / "item_context.csv").write_text(items)
    return folder


def read(place: Path, options: OpenBanditOptions | None = None) -> tuple[Exposures, OpenBanditReport]:
    options = options or OpenBanditOptions()
    return prepare_open_bandit(*open_bandit_files(place, options), options)


def test_rows_become_exposures_at_their_position(tmp_path: Path) -> None:
    """Fails when a row loses its item, click, propensity, position or features, or the log is not by time."""
    exposures, report = read(write(tmp_path / "random" / "all", ROWS))
    assert exposures.line.tolist() == [3, 2, 4]
    assert exposures.arm.tolist() == [0, 1, 1]
    assert exposures.reward.tolist() == [1, 0, 0]
    assert exposures.time.tolist() == [1574553617.0, 1574553634.76283, 1574553653.965051]
    assert (exposures.logger, exposures.uniform, report.clicks, report.items) == ("random", True, 1, 2)
    contexts = exposures.profiles[exposures.arm] * exposures.queries[exposures.query]
    shown = [dict(zip(exposures.features, context, strict=True)) for context in contexts]
    assert [one["item_feature_0"] for one in shown] == [-0.5, 0.25, 0.25]
    assert [name for name in shown[0] if shown[0][name] == 1] == [
        *("item_feature_1=a", "item_feature_2=b", "item_feature_3=c"),
        *("user_feature_0=u", "user_feature_1=v2", "user_feature_2=w", "user_feature_3=x", "position=1"),
    ]
    assert [one["position=3"] for one in shown] == [0, 1, 0]


def test_propensities_that_are_not_all_equal_make_no_uniform_design(tmp_path: Path) -> None:
    """Fails when a Thompson sampling log passes for a uniform one."""
    rows = [ROWS[0].replace(",0.5,", ",0.4,"), *ROWS[1:]]
    exposures, _ = read(write(tmp_path / "bts" / "all", rows), OpenBanditOptions(logger="bts"))
    assert not exposures.uniform
    assert exposures.propensity.tolist() == [0.5, 0.4, 0.5]
    assert exposures.logger == "bts"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (",1,3,0,", ",5,3,0,", "expected an item of item_context.csv for item_id, got 5"),
        (",1,3,0,", ",1,4,0,", "expected a position from 1 to 3 for position, got 4"),
        (",0.5,", ",0,", "expected a propensity above 0 and up to 1 for propensity_score, got 0.0"),
        (",0.5,", ",1.5,", "expected a propensity above 0 and up to 1 for propensity_score, got 1.5"),
        (",0.5,", ",,", "for propensity_score, got None"),
        ("2019-11-24 00:00:34", "yesterday", "expected a time such as .* for timestamp"),
        (",1,3,0,", ",1,3,2,", "expected 0 or 1 for click, got '2'"),
    ],
)
def test_bad_rows_are_named_by_file_and_line(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    """Fails when a bad row is taken, dropped without a word, or named by another line."""
    folder = write(tmp_path, [ROWS[0].replace(old, new), *ROWS[1:]])
    with pytest.raises(DataError, match=rf"all\.csv:2: .*{sentence}"):
        read(folder)
    exposures, report = read(folder, OpenBanditOptions(skip_bad=1))
    assert (len(exposures), report.bad_rows) == (2, 1)


def test_items_met_twice_and_missing_files_are_refused(tmp_path: Path) -> None:
    """Fails when a second row of an item is dropped without a word, or a foreign folder is a traceback."""
    with pytest.raises(DataError, match=r"item_context\.csv:4: expected each item_id once, got 1 again"):
        read(write(tmp_path / "twice", ROWS, ITEMS + "2,1,0.5,a,b,c\n"))
    with pytest.raises(DataError, match=r"expected item_context\.csv beside one of all\.csv"):
        read(tmp_path)


@pytest.mark.skipif(not SAMPLE, reason="NEUCLUST_OBD names no folder with the Open Bandit sample (obp/dataset/obd)")
@pytest.mark.parametrize(("logger", "campaign"), sorted(CLICKS))
def test_the_published_sample_is_read_whole(logger: Any, campaign: Any) -> None:
    """Fails when a row of the sample is refused, its clicks miscounted, or its design misjudged."""
    options = OpenBanditOptions(logger, campaign)
    exposures, report = read(Path(SAMPLE), options)
    assert (report.rows_read, report.bad_rows, report.clicks) == (10_000, 0, CLICKS[logger, campaign])
    assert report.uniform == (logger == "random")
    assert exposures.logger == logger
    assert report.items == {"all": 80, "men": 34, "women": 46}[campaign]
    assert np.isfinite(exposures.profiles).all()
    assert {"position=1", "position=2", "position=3"} <= set(exposures.features)
