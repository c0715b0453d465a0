"""Recorded runs, and how one of them is played once more: the policy, problem and seed that its record names."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuclust.environments.catalogue import environments
from neuclust.errors import ConfigError, DataError, one_of
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.problem import Problem
from neuclust.experiment.records import RunRecord
from neuclust.theory.growth import Curve

TWIN = " (twin)"
CLOSE = 1e-6  # to which the regret of a replay must agree with the record


@dataclass(frozen=True, slots=True)
class Recorded:
    """Runs of one policy on one problem, smallest seed first; the first is the one to play again."""

    runs: tuple[RunRecord, ...]

    @property
    def first(self) -> RunRecord:
        return self.runs[0]

    @property
    def contestant(self) -> Contestant:
        """The policy as it was made."""
        settings = dict(self.first.settings)
        explore = float(settings.pop("explore", 0.0))
        return Contestant(self.first.policy, self.first.preset, self.first.clusters, settings, explore)

    @property
    def curves(self) -> list[Curve]:
        """Regret curves of the whole runs of equal length."""
        return [run.curve for run in self.runs if run.rounds == self.first.rounds and len(run.curve) > 1]

    def problem(self, data: Path | None) -> Problem:
        """The problem as it was played; a file has to be given again, since records hold its name alone."""
        record = self.first
        name = record.env.removesuffix(TWIN)
        options: dict[str, Any] = {
            key: record.problem.get(key) for key in ("slate_reward", "arms_per_round", "start_ratings")
        }
        options |= {"slate_size": record.slate_size or 5, "rounds": record.rounds_asked or record.rounds}
        if record.rewards in ("simulated", "replayed") or name not in environments():
            if data is None:
                wanted = f"the prepared file {record.env}.npz that the runs were played on"
                raise ConfigError(f"expected {wanted}, since records do not hold it; name it", field="data")
            if data.stem != record.env:
                raise ConfigError(
                    f"expected a file named {record.env}.npz, as the records say, got {data}", field="data"
                )
            return Problem(data=data, **options)
        return Problem(name, data=data, **options)

    def agrees(self, regret: float) -> bool:
        """Whether a replay came to the recorded regret."""
        return abs(regret - self.first.expected_regret) <= CLOSE * max(1.0, abs(self.first.expected_regret))


def choose(records: Sequence[RunRecord], env: str | None, policy: str | None) -> Recorded:
    """The runs to look at: of the named problem and policy, else of the first problem, and NeUClust where it played."""
    whole = [each for each in records if each.rounds > 0 and "held_out" not in each.problem]
    if not whole:
        raise DataError("expected at least one run that was played, got none; name another folder")
    problems = list(dict.fromkeys(each.env for each in whole))
    if env is not None and env not in problems:
        raise ConfigError(one_of(env, problems), field="env")
    asked = problems[0] if env is None else env
    here = [each for each in whole if each.env == asked]
    titles = list(dict.fromkeys(map(title, here)))
    if policy is not None and policy not in titles:
        raise ConfigError(one_of(policy, titles), field="policy")
    wanted = policy or next((each for each in titles if each.partition(":")[0] == "neuclust"), titles[0])
    runs = [each for each in here if title(each) == wanted]
    same = [each for each in runs if _made(each) == _made(runs[0])]
    return Recorded(tuple(sorted(same, key=lambda each: each.seed)))


def title(record: RunRecord) -> str:
    return record.policy if record.preset == "default" else f"{record.policy}:{record.preset}"


def _made(record: RunRecord) -> tuple[object, ...]:
    """What makes runs comparable beside their seeds."""
    return record.clusters, tuple(sorted(record.settings.items())), tuple(sorted(map(str, record.problem.items())))
