"""Slot effects: how much slots differ in being looked at (position-based click model; Craswell et al., 2008).

An arm of predicted chance p in slot j is rewarded at the rate r̄ exp(α + β log(p/r̄) + s_j), r̄ the mean reward. Good arms
sit in good slots, so that predictions too timid or too bold (β ≠ 1) look like slot effects: β and s are estimated
together, from chances predicted before the rewards were seen, and s is used only while it forecasts rewards better than
α and β alone, in nats one step ahead with fixed share.
"""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.kernels.evidence import Floats, fixed_share, gaussian_weights
from neuclust.models.state import expect, take, take_count
from neuclust.policies.auto.change_point import log_likelihood
from neuclust.policies.auto.reward_range import Rescaling

AHEAD = 3.0  # nats of evidence that "all slots alike" starts with
FIRST = torch.softmax(torch.tensor([AHEAD, 0.0], dtype=torch.float64), 0)
SPREAD = 0.5  # prior standard deviation of α, β − 1 and s_j
FARTHEST = 3.0  # |log(p/r̄)| and |s_j| are at most this
CERTAIN = 1e-6  # forecasts stay this far from 0 and 1


class SlotEffects:
    """Poisson regression with slots (row 1) and without (row 0), linearised at the weights of the slate before. What
    slate s adds counts as a share s/t after slate t: predictions of an early, poor fit lose their weight."""

    def __init__(self, slate_size: int, possible: bool = True) -> None:
        self._possible = possible  # False: all slots count as alike whatever the evidence
        size = 2 + slate_size  # α, β, s_1 … s_K
        self._start = np.eye(1, size, 1)[0]
        self._gram, self._moment = np.zeros((2, size, size)), np.zeros((2, size))
        self._totals = np.zeros(2)  # Σr and the number of rewards
        self._slates = 0
        self._log_weights = torch.log(FIRST)

    @property
    def used(self) -> bool:
        """Whether slots differ."""
        return self._possible and bool(self._log_weights[1] > self._log_weights[0])

    @property
    def estimates(self) -> Tensor:
        """e_j = exp(s_j), divided by their mean, whether used or not: (K,)."""
        found = np.exp(self._weights()[1, 2:].clip(-FARTHEST, FARTHEST))
        return torch.from_numpy(found / found.mean())

    def exposures(self, slots: Tensor) -> Tensor:
        """e of slots (k,) counted from 0, (k,): ones while all slots count as alike."""
        return self.estimates[slots] if self.used else torch.ones(len(slots), dtype=torch.float64)

    def order(self, size: int) -> Tensor:
        """Which of `size` arms, best first, goes to each slot: the best to the slot most looked at, (size,)."""
        ranked = torch.argsort(self.exposures(torch.arange(size)), descending=True, stable=True)
        return torch.argsort(ranked)

    def observe(self, slots: Tensor, chances: Tensor, rewards: Tensor) -> None:
        """One slate: slots (k,), chances of the average slot predicted before its rewards were seen, rewards (k,)."""
        self._slates += 1
        share, clicks = 1 / self._slates, rewards.numpy()
        rate = self._rate
        x = self._columns(slots.numpy(), chances.numpy() / rate)
        linear = (x @ self._weights()[:, :, None])[:, :, 0]  # (2, k)
        forecasts = (rate * np.exp(linear.clip(-2 * FARTHEST, 2 * FARTHEST))).clip(CERTAIN, 1 - CERTAIN)
        evidence = log_likelihood(torch.from_numpy(forecasts), rewards)
        self._log_weights = fixed_share(self._log_weights, evidence, FIRST, min(0.5, share))
        weighted = x.transpose(0, 2, 1) * forecasts[:, None, :]  # (2, 2 + K, k)
        target = linear + clicks / forecasts - 1
        self._gram = (1 - share) * self._gram + weighted @ x
        self._moment = (1 - share) * self._moment + (weighted @ target[:, :, None])[:, :, 0]
        self._totals = self._totals + np.array([clicks.sum(), len(clicks)])

    @property
    def _rate(self) -> float:
        """r̄, from a prior of one arm that paid ½."""
        return float((self._totals[0] + 0.5) / (self._totals[1] + 1))

    def rescale(self, change: Rescaling) -> None:
        """Read all rewards on another range: every forecast changes by the factor that r̄ does."""
        before = self._rate
        self._totals[0] = change.slope * self._totals[0] + change.shift * self._totals[1]
        self._gram, self._moment = (sums * (self._rate / before) for sums in (self._gram, self._moment))

    def _columns(self, slots: NDArray[np.int64], lifts: Floats) -> Floats:
        """[1, log(p/r̄), zeros or slots] of k arms with lifts p/r̄, (2, k, 2 + K)."""
        x = np.zeros((2, len(slots), len(self._start)))
        x[:, :, 0] = 1.0
        x[:, :, 1] = np.log(lifts.clip(np.exp(-FARTHEST), np.exp(FARTHEST)))
        x[1, np.arange(len(slots)), 2 + slots] = 1.0
        return x

    def _weights(self) -> Floats:
        """θ = (α, β, s) of both regressions, (2, 2 + K)."""
        return gaussian_weights(self._gram, self._moment, self._start, SPREAD)

    def state_dict(self) -> dict[str, Tensor]:
        tables = {"gram": self._gram, "moment": self._moment, "totals": self._totals}
        state = {name: torch.from_numpy(table.copy()) for name, table in tables.items()}
        return state | {"slates": torch.tensor(self._slates), "log_weights": self._log_weights.clone()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        gram, moment, totals = (
            take(state, name, torch.from_numpy(table)).numpy()
            for name, table in (("gram", self._gram), ("moment", self._moment), ("totals", self._totals))
        )
        expect(bool((totals >= 0).all()), "totals of at least 0", totals.tolist())
        definite = bool((np.linalg.eigvalsh(gram + np.eye(len(self._start)) / SPREAD**2) > 0).all())
        expect(definite, "a gram matrix without negative eigenvalues", "others")
        self._log_weights, self._slates = take(state, "log_weights", self._log_weights), take_count(state, "slates")
        self._gram, self._moment, self._totals = gram, moment, totals
