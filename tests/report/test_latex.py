"""The LaTeX table holds the numbers, survives any name and compiles without packages."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_records import MakeRecord
from patience import HANG_SECONDS

from neuclust.analysis.summary import summaries
from neuclust.experiment.records import RunRecord
from neuclust.report.results import latex_table
from neuclust.report.tables import SPECIAL, latex_escape

HEADINGS = ["policy", "expected regret", "versus best", "clipped regret", "its floor", "successes", "seconds per run"]
HOSTILE = 'a_b & 50% $x^2$ #1 {~} \\input{x} <|> "γ" ± 漢\n\\end{tabular}'


def table_of(records: list[RunRecord]) -> str:
    (summary,) = summaries(records)
    return latex_table(summary)


def rows_of(table: str) -> list[list[str]]:
    """Cells by row, headings first."""
    return [line.removesuffix(r" \\").split(" & ") for line in table.splitlines() if line.endswith(r"\\")]


def test_rows_hold_means_errors_and_the_floor(record: MakeRecord) -> None:
    records = [record("linucb", seed, regret) for seed, regret in enumerate((10.0, 12.0, 11.0))]
    records += [record("cn-ucb", seed, regret, preset="paper") for seed, regret in enumerate((13.0, 9.0, 12.5))]
    records += [record("uniform", seed, regret) for seed, regret in enumerate((40.0, 41.0, 42.0))]
    heading, best, alike, worse = rows_of(table_of(records))
    assert heading == HEADINGS
    assert best == [
        "linucb", r"$11.00 \pm 0.58$", "best", r"$24.80 \pm 0.46$", "16.00", r"$69.00 \pm 0.58$", "2.00",
    ]  # fmt: skip
    assert alike[:3] == ["cn-ucb paper", r"$11.50 \pm 1.26$", r"$+0.500 \pm 1.803^{*}$"]
    assert worse[2] == r"$+30.00 \pm 0.58^{*}$", "three seeds tell nothing"


def test_no_star_where_the_seeds_tell_a_difference(record: MakeRecord) -> None:
    records = [record(name, seed, regret + seed) for seed in range(6) for name, regret in (("a", 1.0), ("b", 9.0))]
    assert rows_of(table_of(records))[2][2] == r"$+8.00 \pm 0.00$"


def test_one_seed_has_no_error(record: MakeRecord) -> None:
    _, _, other = rows_of(table_of([record("a", 0, 10.0), record("b", 0, 12.0)]))
    assert other[1:3] == ["$12.00$", "$+2.00^{*}$"]


def test_comments_stay_on_their_line(record: MakeRecord) -> None:
    table = table_of([record(HOSTILE, 0, 10.0, env="two\nlines")])
    assert table.splitlines()[0].startswith("% two lines: slates of 5")
    assert table.count(r"\begin{tabular}") == 1
    assert [line for line in table.splitlines() if line.startswith(r"\end")] == [r"\end{tabular}"]


@given(st.text(st.sampled_from("\\&%$#_{}~^<>|\n") | st.characters()))
def test_no_letter_keeps_a_meaning_for_latex(text: str) -> None:
    escaped = latex_escape(text)
    assert escaped.isascii()
    assert "\n" not in escaped
    for written in sorted(set(SPECIAL.values()), key=len, reverse=True):
        escaped = escaped.replace(written, "")
    assert not re.search(r"[\\&%$#_{}~^]", escaped)


def test_it_compiles_without_packages(record: MakeRecord, tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex here")
    table = table_of([record(HOSTILE, seed, 10.0, settings={"slate.scale": HOSTILE}) for seed in range(2)])
    document = f"\\documentclass{{article}}\n\\begin{{document}}\n{table}\\end{{document}}\n"
    (tmp_path / "table.tex").write_text(document, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "table.tex"],
        cwd=tmp_path, capture_output=True, text=True, timeout=HANG_SECONDS, errors="replace",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
