"""`neuclust data prepare kuairand` and `obd` at the command line: a log, what it rests on, and refusals."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner, Result

from neuclust.cli.app import app
from neuclust.data.dataset import load_dataset
from neuclust.errors import ConfigError, DataError, NeuclustError
from neuclust.logs import open_log

LOG = "log_random_4_22_to_5_08_pure.csv"


def call(*words: object) -> Result:
    return CliRunner().invoke(app, ["data", *map(str, words)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    done = call("generate", "kuairand", "--rows", 2000, "--users", 40, "--videos", 10, "--out", tmp_path / "raw")
    assert done.exit_code == 0, done.output
    assert "truth.json" in done.output
    return tmp_path / "raw"


def test_kuairand_becomes_a_log_and_a_problem(folder: Path, tmp_path: Path) -> None:
    """Fails when the command writes no log that can be read, no problem, or keeps its assumption to itself."""
    log, problem = tmp_path / "log.parquet", tmp_path / "contexts.npz"
    done = call("prepare", "kuairand", folder, "--out", log, "--contexts", problem, "--reward", "long_view")
    assert done.exit_code == 0, done.output
    assert (
        "assumed: every random video was drawn evenly from all random videos, 10 of them; propensity 1 / 10"
        in done.output
    )
    paid = pl.read_csv(folder / LOG)["long_view"].sum()
    assert f"{paid:,} of them with long_view = 1" in done.output
    assert "warning" not in done.output
    assert sum(each.slate_reward for each in open_log(log).decisions()) == paid
    assert len(load_dataset(problem).arms) == 10


def test_assumptions_that_do_not_hold_are_said(folder: Path, tmp_path: Path) -> None:
    """Fails when exposures that are far from uniform, or pools seen too rarely, pass without a warning."""
    done = call("prepare", "kuairand", folder, "--pool", "day", "--rows", 50, "--out", tmp_path / "a.jsonl")
    assert done.exit_code == 0, done.output
    assert "exposures per video" not in done.output
    frame = pl.read_csv(folder / LOG)
    frame.filter((pl.col("video_id") > 2) | (pl.col("user_id") < 4)).write_csv(folder / LOG)
    done = call("prepare", "kuairand", folder, "--out", tmp_path / "b.jsonl")
    assert "times as much as under uniform draws" in done.output
    frame.head(30).write_csv(folder / LOG)
    done = call("prepare", "kuairand", folder, "--pool", "day", "--out", tmp_path / "c.jsonl")
    assert "videos that were never shown by chance are missing" in done.output
    assert "--pool all has more" in done.output


def refused(error: type[NeuclustError], *words: object) -> str:
    done = call("prepare", *words)
    assert isinstance(done.exception, error), done.output
    return str(done.exception)


def test_what_cannot_work_is_refused_before_anything_is_read(folder: Path, tmp_path: Path) -> None:
    """Fails when a log is overwritten, an option is not named, or a bad row leaves a file."""
    log = tmp_path / "log.jsonl"
    assert "--out: expected a file named .parquet or .jsonl" in refused(
        ConfigError, "kuairand", folder, "--out", "a.npz"
    )
    words = ("kuairand", folder, "--out", log)
    assert "--contexts: expected a file named .npz" in refused(ConfigError, *words, "--contexts", tmp_path / "a.csv")
    assert "expected a date" in refused(ConfigError, *words, "--after", "someday")
    text = (folder / LOG).read_text().splitlines()
    (folder / LOG).write_text("\n".join([*text[:5], "1,2,3", *text[5:]]) + "\n")
    assert f"{LOG}:6: expected 19 fields, got 3" in refused(DataError, *words)
    assert not log.exists()
    done = call("prepare", *words, "--skip-bad", 1)
    assert done.exit_code == 0, done.output
    assert "skipped 1 bad rows" in done.output
    assert "--out: expected a new file" in refused(ConfigError, *words, "--skip-bad", 1)


def test_open_bandit_counts_its_clicks_and_says_that_they_are_few(tmp_path: Path) -> None:
    """Fails when the number of clicks, or that they are too few, is not said."""
    folder = tmp_path / "obd" / "random" / "men"
    folder.mkdir(parents=True)
    names = ["timestamp", "item_id", "position", "click", "propensity_score", *(f"user_feature_{i}" for i in range(4))]
    rows = [f"2019-11-24 00:00:{i:02d}+00:00,{i % 2},{1 + i % 3},{int(i == 5)},0.5,a,b,c,d" for i in range(20)]
    (folder / "men.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    items = ["item_id,item_feature_0,item_feature_1,item_feature_2,item_feature_3", "0,0.5,x,y,z", "1,-1,x,y,z"]
    (folder / "item_context.csv").write_text("\n".join(items) + "\n")
    done = call("prepare", "obd", tmp_path / "obd", "--campaign", "men", "--out", tmp_path / "log.jsonl")
    assert done.exit_code == 0, done.output
    assert "read 20 rows of random: 2 items, drawn evenly, 1 clicks" in done.output
    assert "1 clicks are too few to tell" in done.output
    assert list(open_log(tmp_path / "log.jsonl").runs) == ["obd/men/random"]
