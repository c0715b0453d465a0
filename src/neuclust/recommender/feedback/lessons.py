"""Lessons: what a policy is given to learn of a decision."""

import math
from dataclasses import dataclass

from neuclust.errors import DataError
from neuclust.recommender.feedback.messages import FeedbackConfig
from neuclust.recommender.feedback.open_decision import Decision, Learned, Open
from neuclust.recommender.feedback.rewards import SlateValue, Values


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is to be learned of a decision, once: rewards (k,) in [0, 1] and the slate's; NaN: unseen, unknown.

    A revision has in `before` and `slate_before` what was given to learn earlier; both may hold NaN where the rewards
    do not, and the other way round. `problem` says why a function of the user's gave no slate reward.
    """

    decision: Decision
    rewards: Values
    slate_reward: float
    before: Values | None = None
    slate_before: float = math.nan
    problem: str = ""


def lesson_of(record: Open, values: Values, config: FeedbackConfig, reward: SlateValue) -> Lesson | None:
    """The lesson of values (k,) in the user's units.

    None where nothing is known of the slate, or nothing differs from what was learned of it.
    """
    slate_reward, problem = _slate_reward(record.said.slate, values, config, reward)
    learned, before = Learned(config.scaled(values), slate_reward), record.learned
    if learned.empty if before is None else learned.equals(before):
        return None
    if before is None:
        return Lesson(record.decision, learned.rewards, slate_reward, problem=problem)
    return Lesson(record.decision, learned.rewards, slate_reward, before.rewards, before.slate_reward, problem)


def _slate_reward(stated: float, values: Values, config: FeedbackConfig, reward: SlateValue) -> tuple[float, str]:
    """The slate's value on the scale of the policy, the stated one first, and why there is none."""
    if not math.isnan(stated):
        return reward.normalised(stated, len(values), config.low, config.high), ""
    try:
        return reward.value(values, config.low, config.high), ""
    except DataError as error:
        return math.nan, error.message
