"""Table 1 in words, CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from neuclust.analysis.published import PUBLISHED
from neuclust.analysis.reproduction.results import (
    Reproduction,
    table_rows,
)
from neuclust.experiment.reproduction.phases import (
    PAPER,
)
from neuclust.report.reproduction.tables import DASH, cells, table_notes, table_texts


def test_published_numbers_stand_beside_measured_ones_and_nothing_is_invented(reproduced: Reproduction) -> None:
    rows = {(row.protocol, row.policy): cells(reproduced, row) for row in table_rows(reproduced)}
    ours = rows[PAPER, "neuclust"]
    assert ours["clipped regret, published"] == "152"
    assert ours["seconds, published"] == "486"
    assert ours["times faster"] == "243×"  # 486 s over the 2 s of the records
    assert ours["its floor"] == "160.0"
    assert rows[PAPER, "linucb-disjoint"]["seconds, published"] == "1,352"
    assert rows[PAPER, "cc-mab"]["seconds, published"] == DASH
    assert "332 s, 141 s and 187 s" in " ".join(table_notes(reproduced))
    absent = rows[PAPER, "neural-mab"]
    assert (absent["clipped regret, published"], absent["clipped regret, measured"]) == ("227", DASH)
    assert [policy for protocol, policy in rows][-4:] == ["linucb", "static", "uniform", "oracle"]
    assert "Neural-MAB" in " ".join(table_notes(reproduced))
    assert {name: row.regret for name, row in PUBLISHED["movielens"].items()} == {
        "neuclust": 152, "cn-ucb": 168, "linucb-disjoint": 207, "neural-mab": 227, "cc-mab": 403,
    }  # fmt: skip


def test_other_lengths_are_not_compared_with_the_published_numbers(reproduced: Reproduction) -> None:
    short = replace(reproduced, rounds=120)
    row = next(row for row in table_rows(short) if row.policy == "neuclust")
    words = cells(short, row)
    assert (words["times faster"], words["expected regret behind the published"]) == (DASH, DASH)
    assert any("cannot be compared with these 120" in note for note in table_notes(short))


def test_every_text_table_has_every_row(reproduced: Reproduction) -> None:
    texts = table_texts(reproduced)
    rows = list(csv.DictReader(io.StringIO(texts["table1.csv"])))
    assert [row["policy"] for row in rows] == [row.policy for row in table_rows(reproduced)]
    assert float(rows[0]["expected_regret_mean"]) == pytest.approx(15.25)
    assert (rows[2]["published_seconds"], rows[2]["published_regret"]) == ("", "168")
    lines = texts["table1.md"].splitlines()
    assert len({line.count("|") for line in lines[:12]}) == 1
    tex = texts["table1.tex"]
    assert tex.count(r"\\") == 11
    assert f"% {table_notes(reproduced)[0]}" in tex
