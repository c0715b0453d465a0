"""A problem's rounds as arrays, so that an earlier version of the package can be played on problems it does not have.

    python -m benchmarks.frozen_rounds export --problem shop-tastes --seed 1008 --rounds 1500 rounds.npz
    python -m benchmarks.frozen_rounds export --problem tastes:beside --seed 3000 rounds.npz   # shops of click_rates
    PYTHONPATH=EARLIER/src python benchmarks/frozen_rounds.py play --policy auto --seed 1008 rounds.npz

Every arm's reward of every round is drawn beforehand: what a policy is paid does not depend on what others chose.
`play` prints the share of the possible gain over random slates and the regret, sums of arms' means.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch


def export(problem: str, seed: int, rounds: int, file: Path) -> None:
    """Contexts, ids, means and rewards of all arms, round by round."""
    from benchmarks.click_rates import Match, build
    from neuclust.core import Slate

    environment = build(Match(problem, "", seed, rounds))
    k = environment.slate_size
    contexts, ids, means, rewards = [], [], [], []
    for t in range(1, rounds + 1):
        round, nothing = environment.round(t), torch.zeros(k, dtype=torch.float64)
        n, paid = len(round.arm_ids), torch.zeros(len(round.arm_ids), dtype=torch.float64)
        for first in range(0, n, k):
            positions = torch.arange(k) + min(first, n - k)
            paid[positions] = environment.play(round, Slate(positions, nothing, nothing)).arm_rewards
        contexts.append(round.contexts.float().numpy())
        ids.append(round.arm_ids.numpy())
        means.append(environment.means(round).numpy())
        rewards.append(paid.numpy())
    x, names, mu, paid_by_arm = (np.stack(each) for each in (contexts, ids, means, rewards))
    np.savez(file, k=k, contexts=x, ids=names, means=mu, rewards=paid_by_arm)


def play(policy: str, seed: int, file: Path) -> str:
    """Share of the possible gain, and regret."""
    from neuclust.core import Feedback, Round
    from neuclust.registry import build_policy

    held = np.load(file)
    contexts, ids, means, rewards = (held[name] for name in ("contexts", "ids", "means", "rewards"))
    k = int(held["k"])
    player = build_policy(policy, dim=contexts.shape[2], slate_size=k, seed=seed)
    got = best = blind = 0.0
    for t in range(len(contexts)):
        round = Round(t + 1, torch.from_numpy(ids[t]), torch.from_numpy(contexts[t]).double(), None, k)
        slate = player.select(round)
        chosen = slate.positions.numpy()
        paid = torch.from_numpy(rewards[t][chosen])
        player.update(round, slate, Feedback(paid, paid.mean()))
        got += float(means[t][chosen].sum())
        best, blind = best + float(np.sort(means[t])[-k:].sum()), blind + k * float(means[t].mean())
    return f"{policy} {file.stem}: share {(got - blind) / (best - blind):.3f}, regret {best - got:.1f}"


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    exporting, playing = (commands.add_parser(name) for name in ("export", "play"))
    exporting.add_argument("--problem", required=True, help="of the catalogue, or a shop of benchmarks.click_rates")
    exporting.add_argument("--rounds", type=int, default=1500)
    playing.add_argument("--policy", default="auto")
    for one in (exporting, playing):
        one.add_argument("--seed", type=int, required=True)
        one.add_argument("file", type=Path)
    given = parser.parse_args(words)
    torch.set_num_threads(1)
    if given.command == "export":
        export(given.problem, given.seed, given.rounds, given.file)
    else:
        print(play(given.policy, given.seed, given.file))


if __name__ == "__main__":
    main()
