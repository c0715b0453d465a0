"""What `core.Policy` promises to threads: many may select while nobody updates, and a copy serves while it learns."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from small_problems import play, small_environment

from neuclust.core import Policy, Round
from neuclust.environments.slates import SlateEnvironment
from neuclust.registry import POLICIES, build_policy

THREADS = 4
# the oracles ask the environment, which keeps the truth of the last round and promises nothing to threads
EVERY: list[tuple[str, dict[str, str]]] = [(name, {}) for name in POLICIES if name not in ("oracle", "cluster-oracle")]
BOUNDED = [(name, {"confidence.pruning": "on"}) for name in ("neuclust", "cn-ucb")]
# what is kept between calls differs between these; `make soak` takes all of them
KEEPING = ("auto", "neuclust", "neuclust-online", "neuclust-across", "neural-linear", "linucb")
cases = pytest.mark.parametrize(("name", "overrides"), [*[(name, {}) for name in KEEPING], *BOUNDED])

Answer = tuple[list[int], list[float], list[float], int | None]


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """Threads take turns as often as they can, so that two meet inside one call."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def answer(policy: Policy, round: Round) -> Answer:
    slate = policy.select(round)
    return slate.positions.tolist(), slate.means.tolist(), slate.bonuses.tolist(), slate.cluster


def own_rounds(environment: SlateEnvironment, first: int, count: int) -> list[Round]:
    """Rounds with profiles of their own, each shown several times: what is kept of one must not serve for another."""
    rounds = [environment.round(t) for t in range(first, first + count)]
    return [
        replace(round, profiles=round.profiles * (1 + 0.1 * (i % 3))) if i % 2 else round
        for i, round in enumerate(rounds)
    ]


def built(name: str, overrides: dict[str, str], rounds: int) -> tuple[Policy, SlateEnvironment]:
    environment = small_environment()
    policy = build_policy(name, environment=environment, clusters=4, seed=1, overrides=overrides)
    play(policy, environment, range(1, rounds + 1))
    return policy, environment


def in_threads(work: Callable[[int], None]) -> None:
    start = Barrier(THREADS)

    def begin(number: int) -> None:
        start.wait()
        work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(begin, range(THREADS)))


def select_together(name: str, overrides: dict[str, str], rounds: int, times: int) -> int:
    """Threads that select in different orders from one policy get what one thread gets."""
    policy, environment = built(name, overrides, rounds)
    asked = own_rounds(environment, 20, 6)
    expected = [answer(copy.deepcopy(policy), round) for round in asked]

    def work(number: int) -> None:
        for turn in range(times):
            for i in range(len(asked)):
                place = (i * (1 + number) + turn) % len(asked)
                for _ in range(2):  # shown again, so that what is kept of it is used
                    assert answer(policy, asked[place]) == expected[place]

    in_threads(work)
    return THREADS * times * len(asked) * 2


@cases
@pytest.mark.parametrize("rounds", [0, 9])
def test_threads_select_what_one_thread_would(name: str, overrides: dict[str, str], rounds: int) -> None:
    select_together(name, overrides, rounds, 1)


@cases
def test_a_copy_serves_while_the_policy_learns(name: str, overrides: dict[str, str]) -> None:
    serve_while_learning(name, overrides, 3)


def serve_while_learning(name: str, overrides: dict[str, str], updates: int) -> int:
    """One thread updates the policy, the others select from a copy, which stays as it was."""
    policy, environment = built(name, overrides, 9)
    asked = own_rounds(environment, 30, 3)
    expected = [answer(policy, round) for round in asked]
    served = copy.deepcopy(policy)

    def work(number: int) -> None:
        if number == 0:
            play(policy, environment, range(10, 10 + updates))
            return
        for turn in range(updates):
            place = (turn + number) % len(asked)
            assert answer(served, asked[place]) == expected[place]

    in_threads(work)
    straight, _ = built(name, overrides, 9 + updates)
    assert [answer(policy, round) for round in asked] == [answer(straight, round) for round in asked]
    return (THREADS - 1) * updates


@pytest.mark.soak
def test_many_selections_from_threads(report_counts: Callable[..., None]) -> None:
    selected = served = 0
    for name, overrides in [*EVERY, *BOUNDED]:
        for rounds in (0, 9):
            selected += select_together(name, overrides, rounds, 5)
        served += serve_while_learning(name, overrides, 15)
    report_counts("threads", selected_together=selected, served_from_copies=served, differed=0)
