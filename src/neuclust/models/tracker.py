"""Arm profiles of the online variant, running means of ratings updated by the rewards of played arms."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, POSITIVE, checked
from neuclust.core import Feedback, Round, Slate
from neuclust.models.history import found_among
from neuclust.models.state import check_lengths, expect, take_ids, take_rows


@dataclass(frozen=True, slots=True)
@checked(weight=POSITIVE, pseudo_count=NON_NEGATIVE)
class TrackerConfig:
    """How a 0/1 reward moves a profile entry, a running mean of ratings.

    A reward r counts as `weight` ratings of disliked + (liked − disliked) r on every feature of the query. An entry
    starts with the given counts, or with `pseudo_count` ratings where it is not 0. By default a like rate μ becomes
    the rating −1 + 7μ, within 0.5 of the inverse of μ = tanh(s/4) for ratings s from 2 to 5; the mean ratings of likes
    and dislikes (4.4 and 2.8 on MovieLens) would pull every played arm towards the middle.

    Covariance and history take the contexts as they were shown (`order` after), or as the rewards have moved them
    (before, as Algorithm 1 is printed).
    """

    liked: float = 6.0
    disliked: float = -1.0
    weight: float = 0.5
    pseudo_count: float = 5.0
    order: Literal["after", "before"] = "after"


class ProfileTracker:
    """Sums and counts of the arms that were played; every other arm is as the round shows it."""

    def __init__(self, config: TrackerConfig, dim: int, counts: tuple[Tensor, Tensor] | None = None) -> None:
        self.config = config
        self._counts_of: dict[int, Tensor] = {}
        if counts is not None:
            self._counts_of = dict(zip(counts[0].tolist(), counts[1].to(torch.float64), strict=True))
        # shown profiles, arm ids and tracked profiles: one tensor for `select` and `update` of a round, for caches
        self._view: tuple[Tensor, Tensor, Tensor] | None = None
        self._ids = torch.zeros(0, dtype=torch.int64)
        self._sums = torch.zeros(0, dim, dtype=torch.float64)
        self._counts = torch.zeros(0, dim, dtype=torch.float64)

    def view(self, round: Round) -> Round:
        """The round as the policy sees it: tracked profiles in place of the shown ones."""
        view = self._view  # read once: another thread may look at another round
        if view is None or view[0] is not round.profiles or view[1] is not round.arm_ids:
            view = self._view = (round.profiles, round.arm_ids, self._tracked(round))
        return replace(round, profiles=view[2])

    def _tracked(self, round: Round) -> Tensor:
        rows, entries = found_among(self._ids, round.arm_ids)
        if len(rows) == 0:
            return round.profiles
        profiles, counts = round.profiles.clone(), self._counts[entries]
        tracked = torch.where(counts > 0, self._sums[entries] / counts.clamp(min=1e-12), 0.0)
        profiles[rows] = tracked.to(profiles.dtype)
        return profiles

    def observe(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        """Move the profiles of the played arms whose reward was seen, on the features that were asked for."""
        self._view = None
        asked = torch.ones(round.profiles.shape[1]) if round.query is None else (round.query != 0)
        asked = asked.to(torch.float64) * self.config.weight
        for position, reward in zip(slate.positions.tolist(), feedback.arm_rewards.tolist(), strict=True):
            if reward == reward:  # NaN: not observed
                entry = self._entry(int(round.arm_ids[position]), round.profiles[position])
                rating = self.config.disliked + (self.config.liked - self.config.disliked) * reward
                self._sums[entry] += asked * rating
                self._counts[entry] += asked

    def moment(self) -> tuple[Tensor, Tensor, Tensor]:
        """What `go_back` returns to."""
        return self._ids, self._sums.clone(), self._counts.clone()

    def go_back(self, moment: tuple[Tensor, Tensor, Tensor]) -> None:
        """Forget what was observed since."""
        self._ids, self._sums, self._counts = moment
        self._view = None

    def _entry(self, arm: int, shown: Tensor) -> int:
        """The arm's row, created from the profile the round shows when it is new."""
        place = torch.nonzero(self._ids == arm).flatten()
        if len(place):
            return int(place[0])
        shown = shown.to(torch.float64)
        counts = self._counts_of.get(arm, (shown != 0).to(torch.float64) * self.config.pseudo_count)
        self._ids = torch.cat([self._ids, torch.tensor([arm])])
        self._sums = torch.cat([self._sums, (shown * counts).unsqueeze(0)])
        self._counts = torch.cat([self._counts, counts.unsqueeze(0)])
        return len(self._ids) - 1

    def state_dict(self) -> dict[str, Tensor]:
        state = {"ids": self._ids, "sums": self._sums.clone(), "counts": self._counts.clone()}
        if self._counts_of:
            state["start_ids"] = torch.tensor(list(self._counts_of))
            state["start_counts"] = torch.stack(list(self._counts_of.values()))
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        row = tuple(self._sums.shape[1:])
        ids, sums, counts = take_ids(state, "ids"), take_rows(state, "sums", row), take_rows(state, "counts", row)
        check_lengths(ids=ids, sums=sums, counts=counts)
        expect(len(torch.unique(ids)) == len(ids), "every arm once in ids", "some twice")
        expect(bool((counts >= 0).all()), "counts of at least 0", "less")
        if "start_ids" in state:
            start_ids, start_counts = take_ids(state, "start_ids"), take_rows(state, "start_counts", row)
            check_lengths(start_ids=start_ids, start_counts=start_counts)
            self._counts_of = dict(zip(start_ids.tolist(), start_counts, strict=True))
        self._view, self._ids, self._sums, self._counts = None, ids, sums, counts
