"""Rounds to develop on that no report plays: the T after the reported T, or the later half of recorded rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from neuclust.core import Feedback, Round, Slate
from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.offers import Offers
from neuclust.environments.problem import RoundScore
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError
from neuclust.experiment.plan import DEFAULT_ROUNDS, Problem, RewardSource, open_problem, reward_source


class LaterRounds:
    """An environment from round `skipped` + 1 on: its round t is the other's round `skipped` + t."""

    def __init__(self, environment: SlateEnvironment, skipped: int) -> None:
        self.environment, self._skipped = environment, skipped
        self.name, self.dim, self.slate_size = environment.name, environment.dim, environment.slate_size
        self.horizon = environment.horizon - skipped

    def round(self, t: int) -> Round:
        return self.environment.round(self._skipped + t)

    def play(self, round: Round, slate: Slate) -> Feedback:
        return self.environment.play(round, slate)

    def arrival(self, t: int) -> int | None:
        """In the other's count of rounds, as `Round.t` is."""
        return self.environment.arrival(t)

    def expected_reward(self, round: Round, slate: Slate) -> float:
        return self.environment.expected_reward(round, slate)

    def best_expected_reward(self, round: Round) -> float:
        return self.environment.best_expected_reward(round)

    def score(self, round: Round, slate: Slate, feedback: Feedback) -> RoundScore:
        return self.environment.score(round, slate, feedback)


@dataclass(frozen=True, slots=True)
class Split:
    """A problem twice, by seed: rounds to develop on and rounds to report, none of them in both."""

    rounds: int
    development: Callable[[int], LaterRounds]
    report: Callable[[int], LaterRounds]
    note: str
    report_label: Mapping[str, str] = field(default_factory=dict)  # where reports are not those of `neuclust run`
    rewards: RewardSource = "built-in"


def split_problem(problem: Problem) -> Split:
    """Open a problem for tuning; `rounds` None = 1000, or half of what a shorter file holds."""
    if problem.data is None:
        return _split_in_time(problem, None, DEFAULT_ROUNDS if problem.rounds is None else problem.rounds)
    dataset = load_dataset(problem.data)
    half = len(dataset.rounds) // 2
    rounds = min(DEFAULT_ROUNDS, half) if problem.rounds is None else problem.rounds
    if not 1 <= rounds <= half:
        raise ConfigError(
            f"{problem.data}: expected at most {half} rounds, half of the {len(dataset.rounds)} it holds, since tuning "
            f"needs as many that are not reported, got {rounds}; ask for fewer rounds"
        )
    if dataset.offers is None:
        return _split_in_time(problem, dataset, rounds)
    return _split_records(problem, dataset, dataset.offers, rounds)


def _split_in_time(problem: Problem, dataset: ProfileDataset | None, rounds: int) -> Split:
    twice, _ = open_problem(replace(problem, rounds=2 * rounds), dataset)
    once, _ = open_problem(replace(problem, rounds=rounds), dataset)
    return Split(
        rounds,
        lambda seed: LaterRounds(twice(seed), rounds),
        lambda seed: LaterRounds(once(seed), 0),
        f"tuned on rounds {rounds + 1} to {2 * rounds}, reported on rounds 1 to {rounds}",
        rewards=reward_source(problem, dataset),
    )


def _split_records(problem: Problem, dataset: ProfileDataset, offers: Offers, rounds: int) -> Split:
    """A replay deals recorded rounds in an order of the seed, so only different records are different rounds."""
    half = len(dataset.rounds) // 2
    asked = replace(problem, rounds=rounds)
    early, _ = open_problem(asked, _records(dataset, offers, 0, half))
    late, _ = open_problem(asked, _records(dataset, offers, half, len(dataset.rounds)))
    return Split(
        rounds,
        lambda seed: LaterRounds(late(seed), 0),
        lambda seed: LaterRounds(early(seed), 0),
        f"tuned on {rounds} of the later {len(dataset.rounds) - half} recorded rounds, reported on {rounds} of the "
        f"earlier {half}",
        {"recorded_rounds": "earlier half"},
        rewards="replayed",
    )


def _records(dataset: ProfileDataset, offers: Offers, start: int, stop: int) -> ProfileDataset:
    """The recorded rounds `start` to `stop` alone."""
    first, last = offers.starts[start], offers.starts[stop]
    kept = Offers(offers.starts[start : stop + 1] - first, offers.arms[first:last], offers.rewards[first:last])
    return replace(dataset, rounds=dataset.rounds[start:stop], round_ids=dataset.round_ids[start:stop], offers=kept)
