"""What the rewards of a log mean: as asked for, else as the log itself says, else a sum of rewards from 0 to 1."""

import math
from dataclasses import dataclass
from typing import Literal, Protocol

from neuclust.evaluation.results import Ends
from neuclust.evaluation.scoring import Log
from neuclust.evaluation.survey import Survey
from neuclust.recommender.feedback.rewards import Threshold, Total
from neuclust.recommender.log.rounds import RecommenderLog
from neuclust.recommender.options import Settings

Origin = Literal["asked", "log", "default"]
WORDS: dict[Origin, str] = {"asked": "as asked for", "log": "as the log says", "default": "by default"}
DEFAULT: Ends = (0.0, 1.0)


class Asked(Protocol):
    """What a question says of rewards; None: as the log says."""

    @property
    def reward(self) -> str | None: ...

    @property
    def reward_low(self) -> float | None: ...

    @property
    def reward_high(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Meaning:
    """The value of a slate by its name, the range of a slot's reward (of the slate's with `slate`), and who said so."""

    reward: str
    range: Ends
    reward_from: Origin
    range_from: Origin
    logged: str = ""  # the reward by the name it has in the log
    paid: str = ""  # the table by which slates of `neuclust run` were paid, where it is no multiple of the sum

    @property
    def own(self) -> bool:
        """Whether the slate's own logged reward counts."""
        return self.reward == "slate"

    def sentence(self) -> str:
        """What was used and where it came from."""
        said = f"reward: {self.reward}, {WORDS[self.reward_from]}"
        if self.logged and self.logged != self.reward:
            said += f" ({self.logged})" if self.reward_from == "log" else f"; the log says {self.logged}"
        if self.paid and self.reward_from == "default":
            said += f"; its slates were paid otherwise, the reward {self.paid} judges by that"
        if self.reward not in ("sum", "slate"):
            return f"{said}; counts slots of reward 1"
        what, (low, high) = "slate" if self.own else "slot", self.range
        return f"{said}; of a {what} from {low:g} to {high:g}, {WORDS[self.range_from]}"


def settings_of(log: Log) -> Settings | None:
    """The settings of a recommender's log; other logs say nothing of what their rewards mean."""
    return log.settings if isinstance(log, RecommenderLog) else None


def paid_by(log: Log) -> str:
    """The one table by which all runs of a log were paid, as `parse_slate_value` reads it; empty for a sum."""
    tables = {start.reward_values for start in getattr(log, "runs", {}).values()}
    table = tables.pop() if len(tables) == 1 else None
    if table is None or all(math.isclose(each, at * table[1]) for at, each in enumerate(table)):
        return ""
    return "table:" + ",".join(f"{each:g}" for each in table)


def meaning_of(asked: Asked, settings: Settings | None, held: Survey, paid: str = "") -> Meaning:
    """What rewards mean: what is asked for wins over what the log says."""
    logged = "" if settings is None else settings.reward.name
    name, origin = _reward(asked.reward, settings, held)
    (low, high), range_from = _stated_range(name, settings, held)
    if asked.reward_low is not None or asked.reward_high is not None:
        range_from = "asked"
    low = low if asked.reward_low is None else asked.reward_low
    high = high if asked.reward_high is None else asked.reward_high
    return Meaning(name, (low, high), origin, range_from, logged, paid)


def _reward(asked: str | None, settings: Settings | None, held: Survey) -> tuple[str, Origin]:
    if asked is not None:
        return asked, "asked"
    return ("sum", "default") if settings is None else (_named(settings, held), "log")


def _named(settings: Settings, held: Survey) -> str:
    """A recommender's reward in the words of `parse_slate_value`: `slate`, the logged one, where no count of rewarded
    slots says the same."""
    worth = settings.reward
    if isinstance(worth, Total):
        return "sum"
    if not isinstance(worth, Threshold) or not held.binary or settings.feedback.nothing != 0:
        return "slate"
    least, most = (max(1, math.ceil(worth.share * size)) for size in (held.shortest, held.longest))
    if least != most:
        return "slate"
    return "any" if most == 1 else f"threshold:{most}"


def _stated_range(name: str, settings: Settings | None, held: Survey) -> tuple[Ends, Origin]:
    if settings is None or (name == "slate" and settings.reward.needs_function):
        return DEFAULT, "default"
    low, high = settings.feedback.low, settings.feedback.high
    return (settings.reward.bounds(held.slate_size, low, high) if name == "slate" else (low, high)), "log"
