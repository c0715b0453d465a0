"""`neuclust report`: from records on disk to a page, through the command people type."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from command_line import Command, completed

from neuclust.experiment.records import read_runs
from neuclust.experiment.store import open_store, write_run


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, problem: Path) -> Path:
    """What `neuclust run --out` leaves."""
    folder = tmp_path_factory.mktemp("played")
    policies = ("--policy", "neuclust", "--policy", "linucb", "--policy", "uniform", "--set", "linucb.alpha=0.5")
    options = ("--rounds", "20", "--seeds", "2", "--clusters", "4", "--out", str(folder), "--quiet")
    completed("run", "--data", problem, *policies, *options, clean=True).check_returncode()
    return folder


@pytest.fixture
def folder(played: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    shutil.copy(played / "runs.json", tmp_path)
    return tmp_path


def pages(folder: Path) -> list[Path]:
    return sorted(folder.rglob("report.html"))


def test_a_folder_of_a_run_becomes_a_page_beside_it(command: Command, folder: Path) -> None:
    answer = command("report", folder)
    assert (answer.code, answer.err) == (0, "")
    page = folder / "report" / "report.html"
    assert answer.out == f"{page}: 6 runs; 12 pictures and tables beside it\n"
    text = page.read_text(encoding="utf-8")
    assert f"<title>Results: {folder.name}</title>" in text
    assert "alpha=0.5" in text
    assert (
        "neuclust run --data small.npz --rounds 20 --slate-size 5 --policy linucb --clusters 4 --set alpha=0.5" in text
    )
    assert text.count("<svg") == 5


def test_out_and_title_are_taken(call: Command, folder: Path) -> None:
    out = folder / "else" / "where"
    assert call("report", folder / "runs.json", "--out", out, "--title", "R & D").code == 0
    assert pages(folder) == [out / "report.html"]
    text = pages(folder)[0].read_text(encoding="utf-8")
    assert "<h1>R &amp; D</h1>" in text
    assert f"neuclust report {folder / 'runs.json'} --out {out} --title &#x27;R &amp; D&#x27;" in text


def test_a_store_gives_the_same_tables_as_its_runs(call: Command, folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    open_store(store, make=True)
    for place, record in enumerate(read_runs(folder / "runs.json")):
        write_run(store, f"key{place}", record)
    (store / "failures").mkdir()
    (store / "failures" / "lost.json").write_text(json.dumps({"error": "it <b>broke</b>"}))
    answer = call("report", store)
    assert answer.code == 0
    assert "6 runs, 1 failed" in answer.out
    assert "it &lt;b&gt;broke&lt;/b&gt;" in (store / "report" / "report.html").read_text(encoding="utf-8")
    call("report", folder)
    for name in ("small.csv", "small.tex"):
        of_store, of_runs = ((place / "report" / "tables" / name).read_text() for place in (store, folder))
        assert sorted(of_store.splitlines()) == sorted(of_runs.splitlines())


def test_report_and_compare_give_one_verdict_on_a_sweep(call: Command, problem: Path, tmp_path: Path) -> None:
    policies = "".join(f'[[policy]]\npolicy = "{name}"\n' for name in ("uniform", "lin-ts", "oracle"))
    grid = '[[policy]]\npolicy = "linucb"\ngrid = { alpha = [0.8, 1.0, 1.3] }\n'
    (tmp_path / "sweep.toml").write_text(
        f'rounds = 20\nseeds = 10\n[[environment]]\ndata = "{problem}"\n{policies}{grid}'
    )
    out = tmp_path / "out"
    assert call("sweep", tmp_path / "sweep.toml", "--out", out, "--engine", "inline", "-q").code == 0
    assert call("report", out).code == 0
    rows = list(csv.DictReader((out / "report" / "tables" / "small.csv").open()))
    (compared,) = json.loads(call("compare", out, "--json", "-").out)["problems"]
    titles = {(one["policy"], one["settings"]): one["title"] for one in compared["policies"]}
    (best,) = [titles[row["policy"], row["settings"]] for row in rows if row["verdict"] == "best"]
    shown = {titles[row["policy"], row["settings"]]: row["verdict"] for row in rows}
    assert {name: verdict for name, verdict in shown.items() if verdict not in ("best", "reference")} == {
        pair["title"]: pair["verdict"] for pair in compared["differences"] if pair["against"] == best
    }
    assert {"more regret", "noise"} <= set(shown.values()), shown


def test_a_second_report_is_the_first_again(call: Command, folder: Path) -> None:
    kept = []
    for _ in range(2):
        assert call("report", folder).code == 0
        kept.append({file: file.read_bytes() for file in (folder / "report").rglob("*") if file.is_file()})
    assert kept[0] == kept[1]
    assert len(kept[0]) == 13


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (None, 65, "expected a folder of records"),
        ("{", 65, "expected results as JSON"),
        ('{"schema": 1, "runs": []}', 65, "expected at least one run"),
    ],
)
def test_bad_records_leave_nothing_written(
    call: Command, tmp_path: Path, content: str | None, code: int, words: str
) -> None:
    if content is not None:
        (tmp_path / "runs.json").write_text(content)
    answer = call("report", tmp_path)
    assert answer.code == code
    assert words in answer.err
    assert answer.err.count("\n") == 1
    assert not (tmp_path / "report").exists()


def test_what_is_not_there_is_said(call: Command, tmp_path: Path) -> None:
    answer = call("report", tmp_path / "nowhere")
    assert answer.code == 65
    assert "could not read it (No such file or directory)" in answer.err


def test_a_file_in_the_place_of_the_report_is_refused(call: Command, folder: Path) -> None:
    (folder / "report").write_text("mine")
    answer = call("report", folder)
    assert answer.code == 2
    assert "report is no folder); name another place" in answer.err
    assert (folder / "report").read_text() == "mine"
