"""Exposures of single arms as logged decisions: slates of one, with the pool as the eligible arms."""

from collections.abc import Iterator

import numpy as np
import torch

from neuclust.core import Round
from neuclust.data.exposures import Exposures
from neuclust.logs.decisions import Design, Kind, LoggedDecision


def exposure_decisions(exposures: Exposures) -> Iterator[LoggedDecision]:
    """One decision per exposure, in its order: contexts are profiles ⊙ query, (|pool|, d).

    The design is uniform where every arm of the pool was equally likely, else unknown with the propensity logged.
    Ids are numbers of lines in the raw file; rounds of one pool share their tensors.
    """
    pools = [
        (torch.from_numpy(exposures.arm_ids[rows]), torch.from_numpy(exposures.profiles[rows]))
        for rows in exposures.pools
    ]
    queries = torch.from_numpy(exposures.queries)
    kind: Kind = "uniform" if exposures.uniform else "unknown"
    users = None if exposures.user is None else exposures.user.tolist()
    for row, position in enumerate(exposures.positions.tolist()):
        ids, profiles = pools[int(exposures.pool[row])]
        reward = float(exposures.reward[row])
        yield LoggedDecision(
            id=str(int(exposures.line[row])),
            run=exposures.run(int(exposures.pool[row])),
            round=Round(row + 1, ids, profiles, queries[int(exposures.query[row])], slate_size=1),
            slate=np.array([position], np.int64),
            propensities=exposures.propensity[row : row + 1],
            design=Design(kind, sizes=(len(ids),)),
            rewards=np.array([reward]),
            slate_reward=reward,
            time=float(exposures.time[row]),
            user=None if users is None else users[row],
            version=exposures.logger,
        )
