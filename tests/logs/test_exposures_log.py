"""Exposures written as a log: what is read back is what was published, in both kinds of file."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from neuclust.data.logged.exposures import Exposures
from neuclust.errors import ConfigError
from neuclust.logs import exposures as module
from neuclust.logs import json_schema, open_log
from neuclust.logs.exposures import check_log_place, write_exposures

N, D = 25, 3


def made(pools: int = 2, uniform: bool = True) -> Exposures:
    rng = np.random.default_rng(0)
    arms = tuple(np.sort(rng.choice(6, 4, replace=False)) for _ in range(pools))
    pool = np.arange(N) * pools // N
    arm = np.array([rng.choice(arms[each]) for each in pool])
    return Exposures(
        name="made", logger="random", features=("a", "b", "c"), arm_ids=np.arange(6) * 10 + 2**62,
        profiles=rng.random((6, D)), queries=rng.random((5, D)), pools=arms,
        pool_names=tuple(f"day{i}" for i in range(pools)), pool=pool, query=rng.integers(0, 5, N), arm=arm,
        propensity=np.full(N, 0.25) if uniform else rng.uniform(0.1, 0.9, N),
        reward=rng.integers(0, 2, N).astype(np.float64), time=np.arange(N, dtype=np.float64) + 0.5,
        line=np.arange(2, N + 2), uniform=uniform, user=rng.integers(0, 2**40, N) if uniform else None,
    )  # fmt: skip


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@pytest.mark.parametrize(("pools", "uniform"), [(1, False), (2, True)])
def test_a_log_of_exposures_is_read_back(
    suffix: str, pools: int, uniform: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when an exposure loses its pool, context, slate, propensity, design or reward on the way to the reader."""
    monkeypatch.setattr(module, "BLOCK", 7)
    exposures, path = made(pools, uniform), tmp_path / f"log.{suffix}"
    write_exposures(exposures, path)
    log = open_log(path)
    names = ["made/random"] if pools == 1 else ["made/random/day0", "made/random/day1"]
    assert list(log.runs) == names
    assert (log.dim, log.slate_size, log.runs[names[0]].learning) == (D, 1, False)
    decisions = list(log.decisions())
    assert [int(each.id) for each in decisions] == exposures.line.tolist()
    for row, each in enumerate(decisions):
        pool = exposures.pools[exposures.pool[row]]
        assert each.run == names[exposures.pool[row]]
        assert each.round.arm_ids.tolist() == exposures.arm_ids[pool].tolist()
        expected = exposures.profiles[pool] * exposures.queries[exposures.query[row]]
        assert np.array_equal(each.round.contexts.numpy(), expected)
        assert pool[each.slate[0]] == exposures.arm[row]
        assert each.propensities is not None
        assert each.propensities.tolist() == [exposures.propensity[row]]
        assert (each.design.kind, each.sizes) == ("uniform" if uniform else "unknown", (4,))
        assert each.rewards.tolist() == [each.slate_reward] == [exposures.reward[row]]
        assert (each.time, each.version) == (exposures.time[row], "random")
        assert each.user == (None if exposures.user is None else str(exposures.user[row]))
    assert [path.name for path in tmp_path.iterdir()] == [f"log.{suffix}"]
    first = [each.round.t for each in decisions if each.run == names[0]]
    assert first == list(range(1, len(first) + 1))


def test_every_line_keeps_to_the_schema_of_logs(tmp_path: Path) -> None:
    """Fails when a line of a prepared log breaks the published JSON Schema."""
    write_exposures(made(), tmp_path / "log.jsonl")
    schema = jsonschema.Draft202012Validator(json_schema())
    for line in (tmp_path / "log.jsonl").read_text().splitlines():
        schema.validate(json.loads(line))


def test_a_log_is_written_whole_or_not_at_all_and_never_over_another(tmp_path: Path) -> None:
    """Fails when a broken write leaves a file, or an earlier log is overwritten."""

    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_exposures(made(), tmp_path / "log.jsonl", stop)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "log.jsonl").write_text("earlier")
    with pytest.raises(ConfigError, match=r"^out: expected a new file"):
        check_log_place(tmp_path / "log.jsonl")
    with pytest.raises(ConfigError, match=r"^out: expected a file named \.parquet or \.jsonl"):
        check_log_place(tmp_path / "log.npz")
