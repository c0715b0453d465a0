"""Item effects: what an arm's id tells of its reward beyond its context, by partial pooling.

An item shifts the log-odds of a predicted chance p by b_i ~ N(0, τ²). Its posterior follows from the rewards and from
the chances predicted *before* they were seen, so that features explain what they can and the item gets the rest. τ is
one of `SPREADS`, weighted by one-step-ahead log-likelihood with fixed share; while τ = 0 leads, items have no effect.
"""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.kernels.evidence import Floats, fixed_share, shift_posterior, shifted_chances
from neuclust.models.state import expect, take, take_count, take_ids
from neuclust.policies.auto.change_point import log_likelihood
from neuclust.policies.auto.reward_range import Rescaling

SPREADS = (0.0, 0.35, 0.7, 1.4)  # τ
AHEAD = 3.0  # nats of evidence that τ = 0 starts with
FIRST = torch.softmax(torch.tensor([AHEAD, *[0.0] * (len(SPREADS) - 1)], dtype=torch.float64), 0)
BONUS = 0.5  # standard deviations added to b: an item never seen is tried
RAREST = 0.05  # of the mean reward: smaller predictions say nothing about odds (and the same for the complement)
ROOM = 1_024  # items that a table has room for at first
MOST, KEPT = 50_000, 45_000  # items in the table, and how many of them are kept when it is full


class ItemEffects:
    """Sums of rewards, predicted chances and numbers of observations by item, those of slate s counted s times: read
    as a share s/t after slate t, so that predictions of an early, poor fit lose their weight, and so do items not seen
    for long. Of a full table the items of the smallest counts are forgotten."""

    def __init__(self, possible: bool = True) -> None:
        self._possible = possible  # False: items have no effect whatever the evidence
        self._row_of: dict[int, int] = {}  # by id: its column of the sums
        self._sums = np.zeros((3, ROOM))
        self._total = np.zeros(3)  # of all items, forgotten ones too
        self._slates = 0
        self._log_weights = torch.log(FIRST)

    @property
    def spread(self) -> float:
        """The leading τ; 0: items have no effect."""
        return SPREADS[int(self._log_weights.argmax())] if self._possible else 0.0

    def gains(self, ids: Tensor, chances: Tensor, all_zero: bool = False) -> Tensor:
        """σ(logit p + b + bonus) − p of items (n,) with predicted chances (n,), (n,); 0 while items have no effect.
        While every reward so far was 0 (`all_zero`), what an item was shown counts against it: then widths alone rank
        arms, in units of rewards that nobody has seen, and no number of zeros would ever end their favourites."""
        if all_zero and self._possible:
            return -torch.from_numpy(self._of(ids.numpy())[2])
        if self.spread == 0:
            return torch.zeros_like(chances)
        p = self._clipped(chances)
        modes, widths = shift_posterior(self._of(ids.numpy()), self.spread)
        return torch.from_numpy(shifted_chances(p, modes + BONUS * widths) - p)

    def shifted(self, ids: Tensor, chances: Tensor) -> Tensor:
        """σ(logit p + b) of items and chances (k,), (k,); the chances themselves while items have no effect."""
        if self.spread == 0:
            return chances
        modes, _ = shift_posterior(self._of(ids.numpy()), self.spread)
        return torch.from_numpy(shifted_chances(self._clipped(chances), modes))

    def observe(self, ids: Tensor, chances: Tensor, rewards: Tensor) -> None:
        """One slate: items, chances predicted before its rewards were seen, and rewards (k,)."""
        self._slates += 1
        items, share = ids.numpy(), 1 / self._slates
        # calibrated over all items first: otherwise every item would have the effect of a prediction too high
        sums = np.concatenate([self._of(items), self._total[:, None] * share], 1)
        modes, _ = shift_posterior(sums, np.array([[*[spread] * len(items), 1.0] for spread in SPREADS[1:]]))
        raw = self._clipped(chances)
        p = shifted_chances(raw, modes[0, -1])
        forecasts = torch.from_numpy(shifted_chances(p, np.concatenate([np.zeros((1, len(p))), modes[:, :-1]])))
        evidence = log_likelihood(forecasts, rewards)
        self._log_weights = fixed_share(self._log_weights, evidence, FIRST, min(0.5, share))
        clicks, ones = rewards.numpy(), np.ones(len(p))
        self._total = self._total + self._slates * np.stack([clicks, raw, ones]).sum(1)
        self._add(items, self._slates * np.stack([clicks, p, ones]))

    def rescale(self, change: Rescaling) -> None:
        """Read all rewards, and the chances predicted for them, on another range."""
        for sums in (self._table, self._total):
            sums[:2] = change.slope * sums[:2] + change.shift * sums[2]

    def _clipped(self, chances: Tensor) -> Floats:
        """Chances (n,) away from 0 and 1, in units of the mean reward so far."""
        rewards, _, number = (self._total / max(1, self._slates)).tolist()
        rate = (rewards + 0.5) / (number + 1)
        return np.asarray(chances.numpy().clip(RAREST * rate, 1 - RAREST * (1 - rate)))

    def _of(self, items: NDArray[np.int64]) -> Floats:
        """Sums of items (n,) as they count now, (3, n)."""
        rows = np.array([self._row_of.get(item, -1) for item in items.tolist()], np.int64)
        return self._sums[:, rows] * (rows >= 0) / max(1, self._slates)

    def _add(self, items: NDArray[np.int64], sums: Floats) -> None:
        new = [item for item in items.tolist() if item not in self._row_of]
        if len(self._row_of) + len(new) > MOST:
            kept = np.sort(np.argsort(-self._table[2], kind="stable")[:KEPT])
            self._keep(np.array(list(self._row_of), np.int64)[kept], self._table[:, kept])
        for item in items.tolist():
            self._row_of.setdefault(item, len(self._row_of))
        while len(self._row_of) > self._sums.shape[1]:  # twice the room, so that a new item costs the same on average
            self._sums = np.pad(self._sums, ((0, 0), (0, self._sums.shape[1])))
        self._sums[:, [self._row_of[item] for item in items.tolist()]] += sums

    @property
    def _table(self) -> Floats:
        """Sums of all items, (3, n)."""
        return self._sums[:, : len(self._row_of)]

    def _keep(self, ids: NDArray[np.int64], sums: Floats) -> None:
        """These items alone, with room for more."""
        self._row_of = {item: row for row, item in enumerate(ids.tolist())}
        self._sums = np.pad(sums, ((0, 0), (0, max(ROOM, len(ids)))))

    def state_dict(self) -> dict[str, Tensor]:
        tables = {"ids": np.array(list(self._row_of), np.int64), "sums": self._table, "total": self._total}
        state = {name: torch.from_numpy(table.copy()) for name, table in tables.items()}
        return state | {"slates": torch.tensor(self._slates), "log_weights": self._log_weights.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        ids = take_ids(state, "ids")
        sums = take(state, "sums", torch.zeros(3, len(ids), dtype=torch.float64))
        total = take(state, "total", torch.zeros(3, dtype=torch.float64))
        weights = take(state, "log_weights", self._log_weights)
        expect(len(ids) <= MOST and len(set(ids.tolist())) == len(ids), f"at most {MOST} ids, each once", "others")
        expect(bool((sums >= 0).all() and (total >= 0).all()), "sums of at least 0", "less")
        self._slates = take_count(state, "slates")
        expect(self._slates > 0 or len(ids) == 0, "slates above 0 where items were seen", self._slates)
        self._keep(ids.numpy(), sums.numpy())
        self._total, self._log_weights = total.numpy(), weights
