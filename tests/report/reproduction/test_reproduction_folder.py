"""Figures, files and page of a reproduction."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

from invented_reproduction import MOVIELENS, REGRETS, readings, runs

from neuclust.analysis.reproduction.results import (
    Reproduction,
    Search,
    summary_rows,
)
from neuclust.analysis.reproduction.verdicts import verdicts
from neuclust.experiment.reproduction.phases import (
    PAPER,
    READINGS,
    STUDIES,
    TUNED,
    quick_scale,
)
from neuclust.report.reproduction.figures import paper_figures
from neuclust.report.reproduction.folder import write_reproduction


def test_no_records_no_figures(reproduced: Reproduction) -> None:
    assert paper_figures(replace(reproduced, runs={}, elbow=())) == []


def test_folder_and_page(reproduced: Reproduction, tmp_path: Path) -> None:
    hostile = replace(reproduced, source="<script>alert(1)</script>.npz", missing=3)
    written = write_reproduction(hostile, tmp_path)
    assert written[-1] == tmp_path / "index.html"
    names = {file.name for file in (tmp_path / "figures").iterdir()}
    for stem in ("figure-2-clipped-regret", "figure-2-expected-regret", "figure-4-reward",
                 "figure-6-elbow", "figure-8-clusters"):  # fmt: skip
        assert {f"{stem}.svg", f"{stem}.png"} <= names
    page = (tmp_path / "index.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r'(src|href)="(?!#)', page.replace("xlink:href", "xlink"))
    for text in ("What reproduces and what does not", "Table 1", "Figure 6", "Figure 8", "Our protocol",
                 "Not finished: 3 runs are missing", "neuclust reproduce movielens"):  # fmt: skip
        assert text in page
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["rows"] == summary_rows(hostile)
    assert summary["verdicts"] == [asdict(each) for each in verdicts(hostile)]


def test_readings_are_on_the_page(reproduced: Reproduction, tmp_path: Path) -> None:
    played = replace(reproduced, runs={**reproduced.runs, READINGS: readings((13, 15, 12), (28, 45, 41), (44, 29, 29))})
    page = _page(played, tmp_path)
    assert "6 of 6 seeds" in page
    assert MOVIELENS.readings[1].words in page


def test_the_twin_and_the_quick_look_are_named_first(reproduced: Reproduction, tmp_path: Path) -> None:
    quick = replace(
        reproduced,
        source=None,
        rounds=100,
        scale=quick_scale(STUDIES["yelp"]),
        study=STUDIES["yelp"],
        runs={PAPER: runs(REGRETS, seeds=2, rounds=100)},
    )
    write_reproduction(quick, tmp_path)
    page = (tmp_path / "index.html").read_text()
    opening = page[page.index("<h1>") : page.index('id="verdicts"')]
    assert quick.label == "quick: T = 100, 2 seeds"
    for text in ("quick: T = 100, 2 seeds", "synthetic twin", "NeUClust online is left out", "clustering.n_init = 1"):
        assert text in opening
    assert "Figure 3: clipped regret" in page
    assert "Figure 5: reward" in page
    assert "Figure 2:" not in page


def test_tuned_settings_are_told_with_their_budget(reproduced: Reproduction, tmp_path: Path) -> None:
    search = Search(TUNED, "linucb", "default", 7, (1000, 1001), 1000, {"alpha": "0.3"})
    assert "nothing was tuned" in _page(reproduced, tmp_path / "plain")
    tuned = replace(
        reproduced,
        runs={**reproduced.runs, TUNED: runs({"linucb": 0.2}, settings={"alpha": "0.3"})},
        searches=(search,),
    )
    page = _page(tuned, tmp_path / "tuned")
    assert "found with 7 trials each, on development seeds 1000, 1001" in page
    assert "alpha=0.3" in page
    assert "nothing was tuned" not in page


def _page(reproduced: Reproduction, folder: Path) -> str:
    write_reproduction(reproduced, folder)
    return (folder / "index.html").read_text()
