"""Slot effects: how much slots differ in being looked at (position-based click model; Craswell et al., 2008).

An arm of chance p is rewarded in slot j with chance e_j p, where p is that of the average slot. e_j is estimated from
the chances predicted before the rewards were seen, since good arms sit in good slots. Used only while it predicts
better than "all slots alike", in nats one step ahead with fixed share.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from neuclust.kernels.pooling import fixed_share
from neuclust.models.state import expect, take, take_count
from neuclust.policies.auto.change_point import log_likelihood

AHEAD = 3.0  # nats of evidence that "all slots alike" starts with
FIRST = torch.softmax(torch.tensor([AHEAD, 0.0], dtype=torch.float64), 0)
PSEUDO = 4.0  # expected rewards that a prior of e_j = 1 counts for (gamma prior of standard deviation 1/2)
LEAST, MOST = 0.05, 20.0  # of e_j
CERTAIN = 1e-6  # forecasts stay this far from 0 and 1


class SlotEffects:
    """Σr and Σp by slot, those of slate s counted s times and read as a share s/t after slate t, (2, K)."""

    def __init__(self, slate_size: int) -> None:
        self._sums = torch.zeros(2, slate_size, dtype=torch.float64)
        self._slates = 0
        self._log_weights = torch.log(FIRST)

    @property
    def used(self) -> bool:
        """Whether slots differ."""
        return bool(self._log_weights[1] > self._log_weights[0])

    @property
    def estimates(self) -> Tensor:
        """e_j = (c + Σ_j r)/(c + ρ Σ_j p) with ρ = Σr/Σp over all slots, whether used or not: (K,), mean about 1."""
        return relative_rates(self._sums / max(1, self._slates))

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
        rewarded, expected = self._sums.sum(1).tolist()
        alike = chances.clamp(min=CERTAIN) * (rewarded / expected if rewarded > 0 else 1.0)
        forecasts = torch.stack([alike, alike * self.estimates[slots]]).clamp(CERTAIN, 1 - CERTAIN)
        evidence, share = log_likelihood(forecasts, rewards), min(0.5, 1 / self._slates)
        self._log_weights = fixed_share(self._log_weights, evidence, FIRST, share)
        new = torch.stack([rewards, chances.clamp(min=CERTAIN)]) * self._slates
        self._sums = self._sums.index_add(1, slots, new)

    def state_dict(self) -> dict[str, Tensor]:
        weights = self._log_weights.clone()
        return {"sums": self._sums.clone(), "slates": torch.tensor(self._slates), "log_weights": weights}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        sums, weights = take(state, "sums", self._sums), take(state, "log_weights", self._log_weights)
        expect(bool((sums >= 0).all()), "sums of at least 0", "less")
        self._sums, self._slates, self._log_weights = sums, take_count(state, "slates"), weights


def relative_rates(sums: Tensor) -> Tensor:
    """(c + Σ_j r)/(c + ρ Σ_j p), ρ = Σr/Σp over all j, clipped: (2, K) -> (K,); 1 while nothing was rewarded."""
    rewarded, expected = sums
    if float(rewarded.sum()) == 0:
        return torch.ones_like(rewarded)
    return ((PSEUDO + rewarded) / (PSEUDO + expected * (rewarded.sum() / expected.sum()))).clamp(LEAST, MOST)
