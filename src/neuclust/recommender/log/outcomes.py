"""What a logged decision was worth, in the user's units, after everything that came back for it."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neuclust.recommender.feedback.messages import FeedbackConfig
from neuclust.recommender.feedback.rewards import SlateValue, Total, Values
from neuclust.recommender.log.history import Past, joined

ROUNDING = 1e-9  # of a sum, on its way to [0, 1] and back


@dataclass(frozen=True, slots=True)
class Outcome:
    """Rewards (k,) and the slate's in the user's units; NaN: not observed. `shown` (k,), None: nothing was said."""

    rewards: Values
    slate_reward: float
    shown: NDArray[np.bool_] | None


def outcome(past: Past, config: FeedbackConfig, reward: SlateValue) -> Outcome:
    """What was last learned of a decision, and messages that came after it was closed.

    A decision of which nothing was learned has no rewards, also where some items were named while it was open: its
    other items are not known yet, and items that are named first are those that were clicked.
    """
    k, closed = len(past.items), any(each.late for each in past.heard)
    if past.rewards is None and not closed:
        return Outcome(np.full(k, math.nan), math.nan, _shown(past))
    if past.rewards is None:
        scaled, worth = joined([math.nan] * k, past.heard, config, reward)
    else:
        scaled, worth = past.lesson(config, reward)
    values = config.low + (config.high - config.low) * scaled
    return Outcome(values, _stated(values, worth, config, reward), _shown(past))


def _stated(values: Values, worth: float, config: FeedbackConfig, reward: SlateValue) -> float:
    """The slate's reward in the user's units; the sum itself where it is one, free of rounding."""
    stated, total = reward.restated(worth, len(values), config.low, config.high), float(values.sum())
    span = len(values) * (config.high - config.low)
    is_sum = isinstance(reward, Total) and math.isclose(stated, total, rel_tol=0.0, abs_tol=ROUNDING * span)
    return total if is_sum else stated


def _shown(past: Past) -> NDArray[np.bool_] | None:
    """Slots that any message said were seen; None where none said it."""
    said = [each.shown for each in past.heard if each.shown is not None]
    if not said:
        return None
    seen = frozenset().union(*said)
    return np.array([slot in seen for slot in range(len(past.items))], dtype=np.bool_)
