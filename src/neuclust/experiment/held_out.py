"""Rounds to develop on that no report plays: the T after the reported T, or the later half of recorded rounds."""

from dataclasses import dataclass, replace
from typing import Literal

from neuclust.core import Round
from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.offers import Offers
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError
from neuclust.experiment.problem import DEFAULT_ROUNDS, OpenProblem, Problem, open_problem

Part = Literal["development", "report"]
LABELLED = {"held_out": "tuning"}  # keeps development runs apart from reported ones wherever records are read together


class LaterRounds:
    """An environment from round `skipped` + 1 on: its round t is the other's round `skipped` + t."""

    def __init__(self, environment: SlateEnvironment, skipped: int) -> None:
        self.environment, self._skipped = environment, skipped
        self.name, self.dim, self.slate_size = environment.name, environment.dim, environment.slate_size
        self.horizon = environment.horizon - skipped
        # `Round.t` stays the other's count of rounds, and so do the arguments of these
        self.play, self.arrival, self.score = environment.play, environment.arrival, environment.score
        self.expected_reward, self.best_expected_reward = environment.expected_reward, environment.best_expected_reward

    def round(self, t: int) -> Round:
        return self.environment.round(self._skipped + t)


@dataclass(frozen=True, slots=True)
class Split:
    """A problem twice: rounds to develop on and rounds to report, none of them in both."""

    development: OpenProblem
    report: OpenProblem
    note: str

    @property
    def rounds(self) -> int:
        return self.report.rounds

    def part(self, name: Part) -> OpenProblem:
        return self.development if name == "development" else self.report


def split_problem(problem: Problem, dataset: ProfileDataset | None = None) -> Split:
    """Open a problem for tuning; `rounds` None = 1000, or half of what a shorter file holds."""
    if problem.data is None:
        return _split_in_time(problem, None, DEFAULT_ROUNDS if problem.rounds is None else problem.rounds)
    dataset = load_dataset(problem.data) if dataset is None else dataset
    half = len(dataset.rounds) // 2
    rounds = min(DEFAULT_ROUNDS, half) if problem.rounds is None else problem.rounds
    if not 1 <= rounds <= half:
        wanted = f"at most {half} rounds, half of the {len(dataset.rounds)} it holds, the others being for tuning"
        raise ConfigError(f"{problem.data}: expected {wanted}, got {rounds}; ask for fewer rounds")
    if dataset.offers is None:
        return _split_in_time(problem, dataset, rounds)
    return _split_records(replace(problem, rounds=rounds), dataset, dataset.offers)


def _split_in_time(problem: Problem, dataset: ProfileDataset | None, rounds: int) -> Split:
    twice = open_problem(replace(problem, rounds=2 * rounds), dataset)
    return Split(
        replace(twice, rounds=rounds, skipped=rounds, label=LABELLED),
        open_problem(replace(problem, rounds=rounds), dataset),
        f"tuned on rounds {rounds + 1} to {2 * rounds}, reported on rounds 1 to {rounds}",
    )


def _split_records(problem: Problem, dataset: ProfileDataset, offers: Offers) -> Split:
    """A replay deals recorded rounds in an order of the seed, so only different records are different rounds."""
    held, half = len(dataset.rounds), len(dataset.rounds) // 2
    early = open_problem(problem, _records(dataset, offers, 0, half))
    late = open_problem(problem, _records(dataset, offers, half, held))
    note = f"tuned on {problem.rounds} of the later {held - half} recorded rounds, reported on {problem.rounds} of the"
    report = replace(early, label={"recorded_rounds": "earlier half"})
    return Split(replace(late, label=LABELLED), report, f"{note} earlier {half}")


def _records(dataset: ProfileDataset, offers: Offers, start: int, stop: int) -> ProfileDataset:
    """The recorded rounds `start` to `stop` alone."""
    first, last = offers.starts[start], offers.starts[stop]
    kept = Offers(offers.starts[start : stop + 1] - first, offers.arms[first:last], offers.rewards[first:last])
    return replace(dataset, rounds=dataset.rounds[start:stop], round_ids=dataset.round_ids[start:stop], offers=kept)
