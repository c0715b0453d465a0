"""Logs of the small problems, many side by side, and the contributions that estimators make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.coverage_problems import CONTEXTS, Floats, Ints, Overlap, Problem, Tables
from neuclust.evaluation.intervals import effective_sample_size, expected_sample_size

BATCH = 10  # rows between two updates of a learning logger
FLOORS = {"good": 0.6, "fair": 0.4, "poor": 0.15}  # of ε


@dataclass(frozen=True, slots=True)
class Logs:
    """L logs of n rows: rewards and weights of slates, slots and prefixes."""

    clicks: Floats  # (K, L, n)
    slate: Floats  # (L, n) weight of the slate
    slots: Floats  # (K, L, n)
    prefixes: Floats  # (K, L, n)
    moments: Floats | None = None  # (L, n) E[w² | past] of slates, of a learning logger
    slot_moments: Floats | None = None  # (L, n) the largest of the slots


@dataclass(frozen=True, slots=True)
class Contributions:
    """What an interval is made from: contributions (L, n), their weights of mean 1, ESS (L,), E[w² | past] (L, n)."""

    values: Floats
    weights: Floats
    ess: Floats
    moments: Floats | None
    scores: Floats  # not linearised
    expected: Floats  # (L,) sample size by designs
    ratio: bool = False  # whether the estimate is Σ scores / Σ weights


def fixed_logs(problem: Problem, tables: Tables, logs: int, rows: int, rng: np.random.Generator) -> Logs:
    """Independent rows: context, slate by the logger's chances, clicks by the slate's."""
    k = problem.slates.shape[1]
    ends = np.cumsum(tables.logged.ravel() / CONTEXTS)
    cells = np.searchsorted(ends / ends[-1], rng.random((logs, rows)), side="right")
    clicks = _clicks(problem, cells, rng)
    return Logs(
        clicks,
        tables.slate.ravel()[cells],
        np.stack([tables.slots.reshape(-1, k)[cells, place] for place in range(k)]),
        np.stack([tables.prefixes.reshape(-1, k)[cells, place] for place in range(k)]),
    )


def _clicks(problem: Problem, cells: Ints, rng: np.random.Generator) -> Floats:
    k = problem.slates.shape[1]
    chances = problem.clicks.reshape(-1, k)
    return np.stack([rng.random(cells.shape) < chances[cells, place] for place in range(k)]).astype(np.float64)


class LearningLogger:
    """Tabular ε-greedy, one coin per slate, L logs side by side: the greedy slate has the arms of the best mean clicks
    in each context, and ε falls as t^(−0.3) to a floor."""

    def __init__(self, problem: Problem, overlap: Overlap, target: Floats, logs: int) -> None:
        n, (s, k) = problem.arms, problem.slates.shape
        self.problem, self.target, self.floor = problem, target, FLOORS[overlap]
        self.sums = np.zeros((logs, CONTEXTS, n))
        self.counts = np.zeros((logs, CONTEXTS, n))
        self.index = np.full((n,) * k, -1, np.int64)
        self.index[tuple(problem.slates.T)] = np.arange(s)
        places = np.arange(k)
        self.slot_target = np.zeros((CONTEXTS, k, n))
        for place in places:
            for arm in range(n):
                self.slot_target[:, place, arm] = target[:, problem.slates[:, place] == arm, -1].sum(1)
        self.even = 1 / np.cumprod(n - places)  # chance of a prefix drawn evenly

    def greedy(self) -> Ints:
        """Slates (L, C); arms not seen yet count as one half clicked of one."""
        means = (self.sums + 0.5) / (self.counts + 1)
        best = np.argsort(-means, axis=2, kind="stable")[:, :, : self.problem.slates.shape[1]]
        return np.asarray(self.index[tuple(np.moveaxis(best, 2, 0))])

    def learn(self, contexts: Ints, slates: Ints, clicks: Floats) -> None:
        logs = np.broadcast_to(np.arange(len(contexts))[:, None], contexts.shape)
        for place, paid in enumerate(clicks):
            at = logs, contexts, self.problem.slates[slates, place]
            np.add.at(self.sums, at, paid)
            np.add.at(self.counts, at, 1.0)

    def play(self, epsilon: Floats, rng: np.random.Generator) -> Logs:
        """A batch of rows (L, b) with exact weights, then what they teach."""
        greedy, (s, _) = self.greedy(), self.problem.slates.shape
        shape = len(greedy), len(epsilon)
        contexts = rng.integers(0, CONTEXTS, shape)
        first = np.take_along_axis(greedy, contexts, 1)
        slates = np.where(rng.random(shape) < epsilon, rng.integers(0, s, shape), first)
        clicks = _clicks(self.problem, contexts * s + slates, rng)
        self.learn(contexts, slates, clicks)
        slots, prefixes = self.weights(contexts, slates, first, epsilon)
        moments = self.moments(greedy, epsilon)
        return Logs(clicks, prefixes[-1], slots, prefixes, *moments)

    def weights(self, contexts: Ints, slates: Ints, first: Ints, epsilon: Floats) -> tuple[Floats, Floats]:
        """Slot and prefix weights (K, L, b)."""
        arms, others, n = self.problem.slates[slates], self.problem.slates[first], self.problem.arms
        slots, prefixes, alike = [], [], np.ones(contexts.shape, np.bool_)
        for place, even in enumerate(self.even):
            same = arms[..., place] == others[..., place]
            alike = alike & same
            wanted = self.slot_target[contexts, place, arms[..., place]]
            slots.append(wanted / ((1 - epsilon) * same + epsilon / n))
            prefixes.append(self.target[contexts, slates, place] / ((1 - epsilon) * alike + epsilon * even))
        return np.stack(slots), np.stack(prefixes)

    def moments(self, greedy: Ints, epsilon: Floats) -> tuple[Floats, Floats]:
        """E[w² | past] of slates, and the largest of the slots, over contexts: (L, b) each."""
        every = np.arange(CONTEXTS)
        slate = _second_moment(self.target[..., -1], self.target[every, greedy, -1], epsilon)
        arms = self.problem.slates[greedy]  # (L, C, K)
        k = arms.shape[2]
        slots = [
            _second_moment(self.slot_target[:, place], self.slot_target[every, place, arms[..., place]], epsilon)
            for place in range(k)
        ]
        return slate, np.max(slots, axis=0)


def _second_moment(chances: Floats, of_greedy: Floats, epsilon: Floats) -> Floats:
    """Σ_s π(s)²/e(s) with e = ε/S, and 1 − ε more for the greedy one: (C, S) and (L, C) -> (L, b)."""
    even = epsilon / chances.shape[1]
    squares = (of_greedy**2)[:, :, None]
    every = (chances**2).sum(1)[None, :, None]
    return np.asarray(((every - squares) / even + squares / (even + 1 - epsilon)).mean(1))


def learning_logs(
    problem: Problem, tables: Tables, overlap: Overlap, size: tuple[int, int], rng: np.random.Generator
) -> Logs:
    """(L, n) rows of a logger that learns from them."""
    logs, rows = size
    logger = LearningLogger(problem, overlap, tables.target_prefixes, logs)
    epsilon = np.maximum(logger.floor, np.arange(1, rows + 1) ** -0.3)
    parts = [logger.play(epsilon[start : start + BATCH], rng) for start in range(0, rows, BATCH)]

    def joined(name: str) -> Floats:
        return np.concatenate([getattr(part, name) for part in parts], axis=-1)

    return Logs(*(joined(name) for name in ("clicks", "slate", "slots", "prefixes", "moments", "slot_moments")))


def second_moments(tables: Tables) -> dict[str, float]:
    """E[w²] of each estimator under a fixed logger, the largest of its slots."""
    slate, slots, prefixes = (
        float((tables.logged[:, :, None] * weights**2).sum((0, 1)).max() / CONTEXTS)
        for weights in (tables.slate[:, :, None], tables.slots, tables.prefixes)
    )
    return {"ips": slate, "snips": slate, "iips": slots, "rips": prefixes}


def contributions(logs: Logs, estimator: str, moment: float) -> Contributions:
    """ips Σr·w; snips the same, linearised; iips Σ_k w_k r_k with slot weights, rips with prefix weights.

    `moment` is E[w²] of a fixed logger; that of a learning one is known row by row.
    """
    moments = logs.slot_moments if estimator == "iips" else logs.moments
    expected = expected_sample_size(np.full_like(logs.slate, moment) if moments is None else moments)
    if estimator in ("ips", "snips"):
        w, ratio = logs.slate, estimator == "snips"
        scores = w * logs.clicks.sum(0)
        values = linearised(scores, w) if ratio else scores
        return Contributions(values, w, effective_sample_size(w), moments, scores, expected, ratio)
    parts = logs.slots if estimator == "iips" else logs.prefixes
    values = (parts * logs.clicks).sum(0)
    return Contributions(values, parts.mean(0), effective_sample_size(parts).min(0), moments, values, expected)


def linearised(values: Floats, weights: Floats) -> Floats:
    """ν̂ + w(r − ν̂)/w̄ of the self-normalised estimate ν̂ = Σwr/Σw, (L, n)."""
    scale = weights.mean(-1, keepdims=True)
    estimate = values.mean(-1, keepdims=True) / scale
    return np.asarray(estimate + (values - estimate * weights) / scale)


def limits(problem: Problem, tables: Tables, names: Sequence[str]) -> dict[str, float]:
    """What each estimator's mean is, exactly; the value of the target where its assumption holds."""
    value = float((tables.target[:, :, None] * problem.clicks).sum() / CONTEXTS)
    slots = float((tables.logged[:, :, None] * tables.slots * problem.clicks).sum() / CONTEXTS)
    prefixes = float((tables.logged[:, :, None] * tables.prefixes * problem.clicks).sum() / CONTEXTS)
    found = {"ips": value, "snips": value, "iips": slots, "rips": prefixes}
    return {name: found[name] for name in names}
