"""`neuclust evaluate`: the contract people build on, and what it says of logs that cannot tell."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from command_line import Command
from logged_problem import DIM, SLATE, logged

from neuclust import Recommender, load
from neuclust.core import Feedback, Slate
from neuclust.logs import LogWriter, RunStart, open_log
from neuclust.policies.exploring import Exploring
from neuclust.registry import build_policy
from neuclust.slates.propensities import Exploration

KEYS = {"policy", "estimator", "estimate", "interval", "interval_kind", "ess", "difference", "verdict"}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 slates of a fixed policy that explores."""
    return written(tmp_path_factory.mktemp("log") / "log.jsonl", 600, 0.8)


def written(path: Path, rows: int, share: float) -> Path:
    policy = build_policy("linucb", dim=DIM, slate_size=SLATE)
    exploring = Exploring(policy, Exploration(share, 5, 0.5), 3) if share else policy
    with LogWriter(path) as log:
        log.start(RunStart("run", "linucb", SLATE, DIM, learning=False))
        for each in logged(exploring, rows).kept:
            slate = exploring.select(each.round)
            log.decided(each.round, slate, Feedback(torch.from_numpy(each.rewards), torch.tensor(each.slate_reward)))
    return path


def test_json_keeps_the_contract_and_stands_alone_on_stdout(call: Command, log: Path) -> None:
    """Fails when a key goes, or anything else is printed with it."""
    answer = call("evaluate", log, "--policy", "linucb", "--policy", "uniform", "--json", "-")
    assert answer.code == 0
    document = json.loads(answer.out)
    assert document["schema"] == 1
    assert [each["policy"] for each in document["policies"]] == ["linucb", "uniform"]
    assert all(each.keys() >= KEYS for each in document["policies"])
    assert document["logged"]["decisions"] == 600
    logged = document["logged"]
    assert (logged["fitted"], logged["evaluated"], logged["held_back"]) == (300, 210, 90)
    assert document["winner"]["rows"] == 90
    first = document["policies"][0]
    assert first["difference"] == pytest.approx(first["estimate"] - logged["value"])


def test_tables_pictures_and_the_best_policy_are_written(call: Command, log: Path, tmp_path: Path) -> None:
    """Fails when a file is missing, or when the policy that is kept has not learned the log."""
    order = ["evaluate", log, "--policy", "linucb", "--policy", "uniform", "--estimator", "iips"]
    answer = call(*order, "--out", tmp_path / "out", "--save", tmp_path / "best")
    assert answer.code == 0
    assert "linucb is better than what ran by" in answer.out
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "evaluation.json", "evaluation.png", "evaluation.svg", "table.csv", "table.txt",
    }  # fmt: skip
    policy = load(tmp_path / "best")
    round = next(open_log(log).decisions()).round
    fresh = build_policy("linucb", dim=DIM, slate_size=SLATE)
    assert isinstance(policy.select(round), Slate)
    assert policy.select(round).means.tolist() != fresh.select(round).means.tolist()


def test_a_log_that_cannot_tell_is_no_error(call: Command, tmp_path: Path) -> None:
    """Fails when too few effective rows end in an error, or in a claim."""
    answer = call("evaluate", written(tmp_path / "few.jsonl", 30, 0.05), "--policy", "popular")
    assert answer.code == 0
    assert "this log cannot tell" in answer.out


def test_a_shops_log_needs_no_options(call: Command, tmp_path: Path) -> None:
    """Fails when the range of a log of money has to be given again, or its last open slate refuses the whole."""
    path = tmp_path / "money.jsonl"
    items = [{"sku": f"s{n}"} for n in range(4)]
    shop = Recommender(items, "sku", slate_size=2, policy="popular", exploration=0.9, reward_range=(0, 200), log=path)
    for _ in range(30):
        choice = shop.recommend()
        shop.feedback(choice.id, {choice.items[0]: 55.2})
    shop.recommend()
    shop.log.close()
    answer = call("evaluate", path, "--policy", "uniform")
    assert answer.code == 0
    assert "note: reward: sum, as the log says; of a slot from 0 to 200, as the log says" in answer.err
    assert "note: 1 of 31 decisions were still open at the end of the log" in answer.err
    asked = call("evaluate", path, "--policy", "uniform", "--reward-range", "0:50", "--unseen", "drop")
    assert asked.code == 65
    assert "--reward-range: expected rewards from 0 to 50, got 0 to 55.2" in asked.err


def test_a_log_without_exploration_is_refused(call: Command, tmp_path: Path) -> None:
    """Fails when missing support is given a number."""
    answer = call("evaluate", written(tmp_path / "certain.jsonl", 30, 0.0), "--policy", "uniform")
    assert answer.code == 65
    assert "missing support" in answer.err


def test_bad_lines_are_named_and_some_may_be_skipped(call: Command, log: Path, tmp_path: Path) -> None:
    """Fails when a bad line is dropped silently, or when --skip-bad does not go on."""
    lines = log.read_text().splitlines()
    broken = tmp_path / "broken.jsonl"
    at = next(place for place, line in enumerate(lines) if '"decision"' in line)
    lines[at] = lines[at].replace('"propensities":[', '"propensities":[7.5,', 1)
    broken.write_text("\n".join(lines) + "\n")
    answer = call("evaluate", broken, "--policy", "uniform")
    assert answer.code == 65
    assert f"broken.jsonl, line {at + 1}" in answer.err
    again = call("evaluate", broken, "--policy", "uniform", "--skip-bad", "1")
    assert again.code == 0
    assert f"line {at + 1}" in again.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--policy"),
        (("--policy", "linucb", "--target", "x"), "--policy"),
        (("--policy", "oracle"), "--policy"),
        (("--policy", "linucb", "--estimator", "isp"), "--estimator"),
        (("--policy", "linucb", "--reward", "some"), "--reward"),
        (("--policy", "linucb", "--reward", "any", "--estimator", "iips"), "--estimator"),
        (("--policy", "linucb", "--reward-range", "1:0"), "--reward-range"),
        (("--policy", "linucb", "--learning", "never"), "--learning"),
        (("--policy", "linucb", "--interval", "exact"), "--interval"),
        (("--policy", "linucb", "--level", "2"), "--level: expected a number from 0.5 to 0.9999, got 2\n"),
        (
            ("--policy", "linucb", "--level", "95"),
            "--level: expected a number from 0.5 to 0.9999, got 95; did you mean",
        ),
        (("--policy", "linucb", "--fit", "50"), "--fit: expected a number from 0 to 0.95, got 50; did you mean 0.5?"),
        (("--policy", "linucb", "--hold-back", "-1"), "--hold-back: expected a number from 0 to 0.9, got -1"),
        (("--policy", "linucb", "--format", "csv"), "--format"),
    ],
)
def test_options_that_cannot_work_are_named(call: Command, log: Path, words: tuple[str, ...], said: str) -> None:
    """Fails when a usage error does not say which option."""
    answer = call("evaluate", log, *words)
    assert answer.code == 2
    assert said in answer.err


def test_estimators_are_listed_with_their_assumptions(call: Command) -> None:
    """Fails when an estimator has no sentence, or the list needs a log."""
    lines = call("evaluate", "--estimators").out.splitlines()
    assert {line.split()[0] for line in lines} >= {
        "ips",
        "snips",
        "iips",
        "rips",
        "pi",
        "cascade-dr",
        "dr",
        "switch",
        "dm",
    }
    assert all(line.endswith(".") for line in lines)


def test_a_missing_log_is_named(call: Command) -> None:
    """Fails when LOG, which the list of estimators does not need, is missed anywhere else."""
    answer = call("evaluate", "--policy", "linucb")
    assert answer.code == 2
    assert "expected a log, got none; write neuclust evaluate LOG" in answer.err


def table_of(path: Path, rows: int = 4000) -> tuple[Path, float]:
    """A Parquet log with a target's chances as columns: two slots of three arms, uniform; the target plays (0, 1)."""
    rng = np.random.default_rng(2)
    first = rng.integers(0, 3, rows)
    second = (first + rng.integers(1, 3, rows)) % 3
    clicks = (rng.random((rows, 2)) < np.array([0.7, 0.4, 0.1])[np.column_stack([first, second])]).astype(float)
    target = np.column_stack([first == 0, (first == 0) & (second == 1)]).astype(float)
    marginal = np.column_stack([first == 0, second == 1]).astype(float)
    columns = {
        "event": ["decision"] * rows, "propensities": [[1 / 3, 1 / 2]] * rows, "marginals": [[1 / 3, 1 / 3]] * rows,
        "rewards": clicks.tolist(), "mine": target.tolist(), "mine_marginals": marginal.tolist(),
    }  # fmt: skip
    pl.DataFrame(columns).write_parquet(path)
    return path, 0.7 + 0.4


def test_targets_may_be_columns_of_a_parquet_log(call: Command, tmp_path: Path) -> None:
    """Fails when the streaming path weighs otherwise than the formulas."""
    path, truth = table_of(tmp_path / "log.parquet")
    answer = call("evaluate", path, "--target", "mine", "--json", "-")
    assert answer.code == 0
    found = {each["estimator"]: each for each in json.loads(answer.out)["policies"]}
    frame = pl.read_parquet(path)
    rewards, target = (np.array(frame[name].to_list()) for name in ("rewards", "mine"))
    weights = target.prod(1) * 6
    assert found["ips"]["estimate"] == pytest.approx((weights * rewards.sum(1)).mean())
    assert found["snips"]["estimate"] == pytest.approx((weights * rewards.sum(1)).sum() / weights.sum())
    own = np.array(frame["mine_marginals"].to_list()) * 3 * rewards
    assert found["iips"]["estimate"] == pytest.approx(own.sum(1).mean())
    assert found["ips"]["ess"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert all(each["interval"][0] <= truth <= each["interval"][1] for each in found.values())


def test_impossible_chances_in_columns_are_named_by_row(call: Command, tmp_path: Path) -> None:
    """Fails when a propensity of 0 becomes an infinite weight."""
    path, _ = table_of(tmp_path / "log.parquet", 50)
    frame = pl.read_parquet(path)
    chances = frame["propensities"].to_list()
    chances[16] = [0.0, 0.5]
    frame.with_columns(pl.Series("propensities", chances)).write_parquet(path)
    answer = call("evaluate", path, "--target", "mine")
    assert answer.code == 65
    assert "row 17" in answer.err
    missing = call("evaluate", path, "--target", "theirs")
    assert missing.code == 65
    assert "theirs" in missing.err


def test_long_tables_with_columns_of_any_name_are_judged(call: Command, tmp_path: Path) -> None:
    """Fails when a table of one row per slot is weighed otherwise than the same rows as lists."""
    path, truth = table_of(tmp_path / "log.parquet", 2000)
    frame = pl.read_parquet(path).with_row_index("request")
    long = frame.explode("propensities", "rewards", "mine").with_columns(
        place=pl.int_range(pl.len()).over("request") + 1, item=pl.lit("x") + pl.int_range(pl.len()).cast(str)
    )
    long.select("request", "place", "item", "propensities", "rewards", "mine").write_csv(tmp_path / "log.csv")
    names = {"decision": "request", "slot": "place", "arm": "item", "reward": "rewards", "propensity": "propensities"}
    words = [word for part, name in names.items() for word in ("--column", f"{part}={name}")]
    order = ["evaluate", tmp_path / "log.csv", "--format", "table", *words, "--target", "mine", "--json", "-"]
    one, other = json.loads(call(*order).out), json.loads(call("evaluate", path, "--target", "mine", "--json", "-").out)
    for first, second in zip(one["policies"], other["policies"], strict=False):
        assert first["estimator"] == second["estimator"]
        assert first["estimate"] == pytest.approx(second["estimate"])
        assert first["interval"][0] <= truth <= first["interval"][1]
    bad = call("evaluate", tmp_path / "log.csv", "--format", "table", "--column", "shelf=place", "--target", "mine")
    assert bad.code == 2
    assert "--column" in bad.err
