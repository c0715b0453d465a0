"""The slates that feedback is checked against without reading the log: the last ones, and none of an erased user."""

from __future__ import annotations

from neuclust.serve.api.feedbacks import Facts, Recent


def test_the_last_decisions_are_known_and_old_ones_are_dropped() -> None:
    """Fails when one of the last `most` is lost, or when more than twice as many stay."""
    recent = Recent(most=10)
    for n in range(100):
        recent.note(1, f"d{n}", Facts((f"i{n}",), None))
    known = [n for n in range(100) if recent.find(1, f"d{n}") is not None]
    assert set(range(90, 100)) <= set(known)
    assert len(known) <= 20
    assert recent.find(1, "d99") == Facts(("i99",), None)
    assert recent.find(2, "d99") is None


def test_a_user_and_a_recommender_are_forgotten() -> None:
    """Fails when facts of an erased user stay in either generation, or those of others go."""
    recent = Recent(most=4)
    for n in range(6):
        recent.note(n % 2, f"d{n}", Facts((), "ann" if n < 4 else "bob"))
    recent.forget(0, "ann")
    assert [n for n in range(6) if recent.find(n % 2, f"d{n}") is not None] == [1, 3, 4, 5]
    recent.forget(1)
    assert [n for n in range(6) if recent.find(n % 2, f"d{n}") is not None] == [4]
