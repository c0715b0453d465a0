"""Shops are played once, and the table's shares and differences are those of the lines."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
import torch

from benchmarks.click_rates import Match, build, main, play, random_reward, shares, tables
from neuclust.core import Slate
from neuclust.environments.shops import LATE, draw_shop
from neuclust.experiment.sinks import read_lines


def line(shop: str, policy: str, seed: int, share: float) -> dict[str, Any]:
    return {
        "shop": shop, "policy": policy, "seed": seed, "rounds": 100, "sums": {"100": [1.0 + 4.0 * share, 1.0, 5.0]},
        "select_ms": 2.0, "update_ms": 4.0,
    }  # fmt: skip


def test_a_contest_plays_what_the_file_does_not_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "runs.jsonl"
    order = ["play", "--out", str(out), "--rate", "0.1", "--rounds", "100", "--seeds", "3:4", "--workers", "1"]
    main([*order, "--policy", "uniform"])
    once = read_lines(out)
    assert [row["shop"] for row in once] == ["rate:0.1", "rate:0.1:late"]
    main([*order, "--policy", "uniform", "--policy", "oracle", "--policy", "nobody"])
    rows = read_lines(out)
    assert rows[:2] == once
    assert [row["policy"] for row in rows] == ["uniform", "uniform", "oracle", "oracle"]
    assert "rate:0.1 nobody seed 3: " in capsys.readouterr().err
    found = shares(rows, 100)
    assert found["rate:0.1", "oracle"][3] == pytest.approx(1.0, abs=1e-4)
    assert abs(found["rate:0.1", "uniform"][3]) < 0.1
    main(["table", str(out)])
    assert "After 100 requests" in capsys.readouterr().out


@pytest.mark.parametrize("shop", ["shop-slots", "money", "number:5"])
def test_random_slates_earn_the_average_of_all_first_choices(shop: str) -> None:
    environment = build(Match(shop, "uniform", 1, 3))
    r = environment.round(2)
    n, k = len(r.arm_ids), environment.slate_size
    zeros = torch.zeros(k, dtype=torch.float64)
    shifted = ((torch.arange(k) * 7 + start) % n for start in range(n))  # every arm once in every slot
    naive = fmean(environment.expected_reward(r, Slate(positions, zeros, zeros)) for positions in shifted)
    assert random_reward(environment, 2) == pytest.approx(naive, rel=1e-9)


def test_shops_are_named_by_rate_number_and_problem() -> None:
    late = build(Match("rate:0.03:late", "uniform", 0, 2))
    assert late.delivery == LATE.delivery(0)
    assert build(Match("rate:0.03", "uniform", 0, 2)).delivery is None
    assert build(Match("number:4", "uniform", 0, 2)).dim == draw_shop(4).dim
    same, product = (build(Match(f"tastes:{layout}", "uniform", 0, 2)) for layout in ("crossed", "product"))
    assert torch.equal(same.round(1).contexts, build(Match("shop-tastes", "uniform", 0, 2)).round(1).contexts)
    assert not torch.equal(same.round(1).contexts, product.round(1).contexts)
    with pytest.raises(SystemExit, match="expected one of crossed, beside, product, got 'round'"):
        build(Match("tastes:round", "uniform", 0, 2))
    assert play(Match("shop-late", "uniform", 0, 2), lambda _: None)["sums"].keys() == {2}


def test_the_table_pairs_seeds_with_the_best_rival() -> None:
    own, rival = [0.5, 0.7, 0.6], [0.6, 0.9, 0.6]
    rows = [line("a", "auto", seed, share) for seed, share in enumerate(own)]
    rows += [line("a", "linucb", seed, share) for seed, share in enumerate(rival)]
    rows += [line("a", "lin-ts", seed, 0.1) for seed in range(3)]
    text = "\n".join(tables(rows, (100, 300)))
    gaps = [mine - theirs for mine, theirs in zip(own, rival, strict=True)]
    assert f"0.600 ± {stdev(own) / 3**0.5:.3f} ({fmean(gaps):+.3f} ± {stdev(gaps) / 3**0.5:.3f})" in text
    assert "| average | 0.600 (-0.100) | 0.700 (+0.000) | 0.100 (-0.600) |" in text
    assert "| `auto` | 2.00 | 4.00 |" in text
    assert "300 requests" not in text
