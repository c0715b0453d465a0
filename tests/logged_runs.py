"""Small logs with known content: rounds with rules, features and late feedback, written by our own writer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuclust.core import Cap, Feedback, Policy, Round, Rules, Slate
from neuclust.logs import LogWriter, RunStart
from neuclust.policies.exploring import Exploring
from neuclust.randomness import stream
from neuclust.registry import build_policy
from neuclust.slates.propensities import Exploration

ARMS, DIM, K = 9, 4, 3
Event = dict[str, Any]


def profiles() -> torch.Tensor:
    return torch.from_numpy(stream(3, "logged profiles").normal(size=(ARMS, DIM)))


def rounds(count: int) -> list[Round]:
    """Rounds of every form: all arms, some of them, with a query, with features of their own, with rules."""
    rng, table = stream(4, "logged rounds"), profiles()
    ids, made = 10 + 7 * torch.arange(ARMS), []
    for t in range(1, count + 1):
        query = torch.from_numpy(rng.normal(size=DIM)) if t % 2 else None
        some = torch.from_numpy(np.sort(rng.choice(ARMS, 6, replace=False)))
        round = Round(t, ids, table, query, K)
        if t % 3 == 0:
            round = round.only(some, K)
        if t % 4 == 0:
            features = torch.from_numpy(rng.normal(size=(len(round.arm_ids), DIM)))
            round = Round(t, round.arm_ids, round.profiles, round.query, K, features)
        if t % 5 == 0:
            n = len(round.arm_ids)
            rules = Rules(round.arm_ids[:1], round.arm_ids[1:2], (Cap(torch.arange(n) % 3, 2),))
            round = Round(t, round.arm_ids, round.profiles, round.query, K, round.features, rules)
        made.append(round)
    return made


def feedback_of(t: int) -> Feedback:
    """Clicks by the round's number; the second slot is not seen in every third round."""
    clicks = torch.tensor([float(t % 2), float("nan") if t % 3 == 0 else 1.0, 0.0], dtype=torch.float64)
    return Feedback(clicks, clicks.nansum())


def explorer() -> Policy:
    return Exploring(build_policy("linucb", dim=DIM, slate_size=K), Exploration(share=0.5, pool=5), seed=1)


def write_run(path: Path, count: int = 20, policy: Policy | None = None) -> list[tuple[Round, Slate]]:
    """A log of one run; what was written."""
    policy = explorer() if policy is None else policy
    played = []
    with LogWriter(path) as log:
        log.start(RunStart("first", "linucb", K, DIM, learning=True, reward="mean", reward_values=(0, 1 / 3, 2 / 3, 1)))
        for round in rounds(count):
            slate, feedback = policy.select(round), feedback_of(round.t)
            log.decided(round, slate, feedback, time=0.5 * round.t, user=f"u{round.t % 4}", version=str(round.t))
            policy.update(round, slate, feedback)
            played.append((round, slate))
    return played


def changed(path: Path, number: int, change: Callable[[Event], None]) -> None:
    """Change the event of one line, counted from 1."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    event = json.loads(lines[number - 1])
    change(event)
    lines[number - 1] = json.dumps(event) + "\n"
    path.write_text("".join(lines), encoding="utf-8")


def line_of(path: Path, kind: str, place: int = 0) -> int:
    """The number of the line that holds the event of this kind and place."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if json.loads(line)["event"] == kind][place]
