"""What a policy loses in shops where tastes turn slowly, and in one where they stay.

    python -m benchmarks.drifting_shops play --policy auto --seeds 6001:6003 --label now --out drifting.jsonl
    PYTHONPATH=EARLIER/src python benchmarks/drifting_shops.py play --label before --out drifting.jsonl
    python -m benchmarks.drifting_shops table docs/records/drifting_shops.jsonl

2,500 requests a shop; the coefficients turn by a right angle in 4,000 or 8,000 of them. One line per run, with the
expected regret every 500 requests. Runs that the file holds under the same label are not played again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

REQUESTS, STRIDE = 2_500, 500
SHOPS: dict[str, dict[str, Any]] = {
    "turns in 4,000, d = 12, 3 %": {
        "click_rate": 0.03, "dim": 12, "items": 800, "eligible": 80, "turnover": 0.05, "drift": 4_000,
    },
    "turns in 8,000, d = 30, 10 %": {"click_rate": 0.10, "dim": 30, "items": 1_000, "eligible": 100, "drift": 8_000},
    "stays, d = 24, 4 %": {"click_rate": 0.04, "dim": 24, "items": 800, "eligible": 80, "turnover": 0.05},
    "turns in 4,000, d = 60, 5 %": {
        "click_rate": 0.05, "dim": 60, "items": 800, "eligible": 80, "turnover": 0.05, "drift": 4_000,
    },
    "stays, d = 60, 5 %": {"click_rate": 0.05, "dim": 60, "items": 800, "eligible": 80, "turnover": 0.05},
}  # fmt: skip


def play(policy: str, shop: str, seed: int) -> dict[str, Any]:
    """Expected regret every 500 requests, and who led at the end."""
    from neuclust.environments.problem import ProblemSpec
    from neuclust.environments.shops import ShopSpec, build_shop
    from neuclust.registry import build_policy

    environment = build_shop(shop, ShopSpec(**SHOPS[shop]), ProblemSpec(slate_size=5, horizon=REQUESTS, seed=seed))
    player: Any = build_policy(policy, environment=environment, seed=seed)
    lost, points, begun = 0.0, {}, time.process_time()
    for t in range(1, REQUESTS + 1):
        round = environment.round(t)
        slate = player.select(round)
        lost += environment.best_expected_reward(round) - environment.expected_reward(round, slate)
        player.update(round, slate, environment.play(round, slate))
        if t % STRIDE == 0:
            points[t] = lost
    leader = player.explain().leader if hasattr(player, "explain") else None
    found = {"policy": policy, "shop": shop, "seed": seed, "regret": {t: _short(v) for t, v in points.items()}}
    return {**found, "leader": leader, "seconds": _short(time.process_time() - begun)}


def _short(value: float) -> float:
    return float(f"{value:.3f}")


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Regret of all requests and of the last 500, mean over seeds, by shop and label."""
    by_cell: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_cell[row["shop"], f"`{row['policy']}` {row['label']}"].append(row["regret"])
    lines = ["| shop | | seeds | regret | of the last 500 |", "|---|---|---:|---:|---:|"]
    for (shop, who), regrets in by_cell.items():
        whole = fmean(each[str(REQUESTS)] for each in regrets)
        last = fmean(each[str(REQUESTS)] - each[str(REQUESTS - STRIDE)] for each in regrets)
        lines.append(f"| {shop} | {who} | {len(regrets)} | {whole:.1f} | {last:.1f} |")
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    playing = commands.add_parser("play")
    playing.add_argument("--policy", default="auto", help="NAME[:PRESET]")
    playing.add_argument("--seeds", default="6001:6003", help="FIRST:END")
    playing.add_argument("--label", default="now")
    playing.add_argument("--out", type=Path, required=True)
    commands.add_parser("table").add_argument("file", type=Path)
    arguments = parser.parse_args(words)
    if arguments.command == "table":
        print(table([json.loads(line) for line in arguments.file.read_text().splitlines()]))
        return
    lines = arguments.out.read_text().splitlines() if arguments.out.exists() else []
    keys = ("label", "policy", "shop", "seed")
    held = {tuple(row[key] for key in keys) for row in map(json.loads, lines)}
    first, _, last = arguments.seeds.partition(":")
    for seed in range(int(first), int(last)):
        for shop in SHOPS:
            if (arguments.label, arguments.policy, shop, seed) in held:
                continue
            row = {"label": arguments.label, **play(arguments.policy, shop, seed)}
            with arguments.out.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
