"""Why each item of a slate was chosen: records, as text for a terminal, as a table for a notebook, as JSON."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from neuclust.recommender.feedback.rewards import stated
from neuclust.recommender.tables.values import Id

MOST_SHOWN = 8  # contributions of an item in text and tables; JSON has all
AVERAGE = "an average item for an average user"


@dataclass(frozen=True, slots=True)
class Contribution:
    """What a column, or two together, add to the expected reward of an item: `amount`, with the values they have."""

    columns: tuple[str, ...]
    values: tuple[str, ...]
    amount: float

    def __str__(self) -> str:
        pairs = zip(self.columns, self.values, strict=True)
        return " with ".join(f"{column} = {value}" for column, value in pairs)


@dataclass(frozen=True, slots=True)
class Counted:
    """How often an item was shown, and the sum of its rewards."""

    shown: int
    rewards: float

    def __str__(self) -> str:
        times, rewards = ("time" if self.shown == 1 else "times"), ("reward" if self.rewards == 1 else "rewards")
        return f"shown {self.shown:,} {times}, {self.rewards:,.6g} {rewards}"


@dataclass(frozen=True, slots=True)
class Reason:
    """One item: what the policy expected when it chose it (mean and bonus), what it expects now, and why.

    now = base + Σ contributions + rest, where `base` is what the policy expects where all columns are average. Largest
    contributions first. `counted` takes their place where a policy reads no features.
    """

    item: Id
    slot: int  # from 1
    mean: float
    bonus: float
    now: float
    propensity: float | None = None
    explored: bool = False
    required: bool = False
    base: float = 0.0
    contributions: tuple[Contribution, ...] = ()
    rest: float = 0.0  # what no column or pair has alone
    counted: Counted | None = None

    def stated(self, low: float, high: float) -> "Reason":
        """The same on the range of rewards in the place of 0 to 1."""
        mean, now, base = stated((self.mean, self.now, self.base), low, high)
        bonus, rest, *amounts = stated(
            (self.bonus, self.rest, *(each.amount for each in self.contributions)), 0.0, high - low
        )
        parts = tuple(replace(each, amount=amount) for each, amount in zip(self.contributions, amounts, strict=True))
        counted = self.counted
        if counted is not None:
            counted = replace(counted, rewards=counted.shown * low + (high - low) * counted.rewards)
        return replace(
            self, mean=mean, now=now, base=base, bonus=bonus, rest=rest, contributions=parts, counted=counted
        )

    @property
    def headline(self) -> str:
        """Expected reward, bonus and how the slot was filled, in words."""
        words = [f"expected {_number(self.mean)}"]
        if self.bonus:
            words.append(f"bonus {_number(self.bonus)}")
        if not math.isclose(self.now, self.mean, rel_tol=1e-3, abs_tol=1e-6):
            words.append(f"now {_number(self.now)}")
        if self.propensity is not None and self.propensity != 1:
            words.append(f"propensity {self.propensity:.4g}")
        marks = ["required"] * self.required + ["drawn to explore"] * self.explored
        return ", ".join([*words, *marks])

    def lines(self) -> list[tuple[float, str]]:
        """Amounts and what they stand for, the largest ones by name."""
        if self.counted is not None or not self.contributions:
            return []
        named, others = self.contributions[:MOST_SHOWN], self.contributions[MOST_SHOWN:]
        lines = [(each.amount, str(each)) for each in named]
        if others:
            lines.append((sum(each.amount for each in others), f"{len(others)} smaller ones"))
        if abs(self.rest) >= 5e-5 * max(abs(self.now), 1e-3):
            lines.append((self.rest, "several columns together"))
        return [*lines, (self.base, AVERAGE)]

    def to_json(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite are None."""
        plain = {name: _finite(getattr(self, name)) for name in ("mean", "bonus", "now", "propensity", "base", "rest")}
        contributions = [
            {"columns": list(each.columns), "values": list(each.values), "amount": _finite(each.amount)}
            for each in self.contributions
        ]
        counted = None if self.counted is None else {"shown": self.counted.shown, "rewards": self.counted.rewards}
        said = {"item": self.item, "slot": self.slot, "explored": self.explored, "required": self.required}
        return {**said, **plain, "contributions": contributions, "counted": counted}


@dataclass(frozen=True)
class Explanation:
    """Why each item of a choice, slot 1 first."""

    id: str
    policy: str
    user: Id | None
    reasons: tuple[Reason, ...]
    note: str = ""  # about all of them

    def stated(self, low: float, high: float) -> "Explanation":
        """The same in the units of the rewards."""
        return replace(self, reasons=tuple(reason.stated(low, high) for reason in self.reasons))

    def __iter__(self) -> Iterator[Reason]:
        return iter(self.reasons)

    def __len__(self) -> int:
        return len(self.reasons)

    @property
    def title(self) -> str:
        user = "" if self.user is None else f" for {_printable(self.user)}"
        return f"choice {_printable(self.id)}{user}, by {self.policy}"

    def __str__(self) -> str:
        lines = [self.title]
        for reason in self.reasons:
            lines.append(f"{reason.slot}. {_printable(reason.item)}: {reason.headline}")
            if reason.counted is not None:
                lines.append(f"     {reason.counted}")
            lines += [f"     {_signed(amount):>9}  {text}" for amount, text in reason.lines()]
        return "\n".join([*lines, *([self.note] if self.note else [])])

    def _repr_html_(self) -> str:
        rows = "".join(_html_rows(reason) for reason in self.reasons)
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return f"<p>{escape(self.title)}</p><table><tbody>{rows}</tbody></table>{note}"

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values."""
        reasons = [reason.to_json() for reason in self.reasons]
        return {"id": self.id, "policy": self.policy, "user": self.user, "items": reasons, "note": self.note}


def _html_rows(reason: Reason) -> str:
    head = f"<tr><th>{reason.slot}. {escape(_printable(reason.item))}</th><th>{escape(reason.headline)}</th></tr>"
    counted = "" if reason.counted is None else f"<tr><td></td><td>{escape(str(reason.counted))}</td></tr>"
    lines = [f"<tr><td>{_signed(amount)}</td><td>{escape(text)}</td></tr>" for amount, text in reason.lines()]
    return head + counted + "".join(lines)


def _number(value: float) -> str:
    return "not known" if not math.isfinite(value) else f"{value:.4g}"


def _signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "−") if math.isfinite(value) else "?"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _printable(text: object) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in str(text)[:100])
