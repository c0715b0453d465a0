import torch
from small_problems import not_none, random_round, slate_of

from neuclust.core import Feedback, Round, Slate
from neuclust.environments.beyond import delayed, missing
from neuclust.environments.synthetic import clusters
from neuclust.experiment.delayed_feedback import DelayedFeedback
from neuclust.experiment.run import RunLabel, run
from neuclust.policies.reference import ReferenceConfig, Uniform
from neuclust.registry import build_policy


class Listener(Uniform):
    """A policy that plays the first arms and writes down which update comes when."""

    def __init__(self) -> None:
        super().__init__(ReferenceConfig(), 1, 1)
        self.now = 0
        self.heard: list[tuple[int, int]] = []  # (round of the update, round in which it came)

    def select(self, round: Round) -> Slate:
        self.now = round.t
        return slate_of(*range(round.slate_size))

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        self.heard.append((round.t, self.now))


def test_updates_are_due_in_their_round_and_in_the_order_of_play() -> None:
    pending = DelayedFeedback()
    updates = [(random_round(t, 3, 2, 1), slate_of(0), Feedback(torch.zeros(1), torch.zeros(()))) for t in range(5)]
    for update, due in zip(updates, (5, None, 5, 7, 6), strict=True):
        pending.add(update, due)
    assert list(pending.due(4)) == []
    assert [update[0].t for update in pending.due(5)] == [0, 2]
    assert list(pending.due(5)) == []
    assert [update[0].t for update in pending.due(9)] == [4, 3]


def test_the_loop_updates_when_feedback_arrives() -> None:
    environment, policy = delayed(horizon=120, seed=1), Listener()
    run(policy, environment, 120, 1, label=RunLabel("listener"))
    assert {now - t for t, now in policy.heard} == {0, 50}
    due = [t for t in range(1, 121) if not_none(environment.arrival(t)) <= 120]
    assert sorted(t for t, _ in policy.heard) == due


def test_lost_feedback_is_never_learned() -> None:
    environment, policy = missing(horizon=80, seed=1), Listener()
    record = run(policy, environment, 80, 1, label=RunLabel("listener"))
    assert [t for t, _ in policy.heard] == [t for t in range(1, 81) if environment.arrival(t) is not None]
    assert record.rounds == 80


def test_feedback_at_once_stays_as_it_was() -> None:
    environment, policy = clusters(horizon=10), Listener()
    run(policy, environment, 10, 0, label=RunLabel("listener"))
    assert policy.heard == [(t, t) for t in range(1, 11)]


def test_learners_stand_late_and_missing_feedback() -> None:
    for problem in (delayed, missing):
        for name in ("linucb", "neuclust", "cn-ucb"):
            environment = problem(horizon=60, seed=0, arms_per_round=100)
            policy = build_policy(name, environment=environment, clusters=4)
            assert run(policy, environment, 60, 0, label=RunLabel(name)).rounds == 60
