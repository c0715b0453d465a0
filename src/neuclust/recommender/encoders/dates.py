"""Dates: days on a running scale, and the weekday and hour as angles where the column has them."""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from neuclust.errors import DataError
from neuclust.recommender.encoders.encoder import Matrix, described, encode_rows, refusal, saved_entry
from neuclust.recommender.encoders.scales import RunningScale
from neuclust.recommender.tables.columns import Date, day_of
from neuclust.recommender.tables.values import Value

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400.0  # seconds


class DateEncoder:
    """[days since the mean date on a running scale, missing?, sin and cos of the weekday?, sin and cos of the hour?].

    The weekday is there where the column has datetimes, the hour where one of them has a time of day. Datetimes without
    a time zone are taken as UTC; a date without a time of day has the hour (0, 0).
    """

    def __init__(self, name: str, kind: Date, scale: RunningScale, parts: tuple[bool, bool, bool]) -> None:
        self.name, self.kind, self.scale = name, kind, scale
        self.missing, self.weekday, self.hour = parts
        marks = [" missing"] * self.missing + [" weekday sin", " weekday cos"] * self.weekday
        marks += [" hour sin", " hour cos"] * self.hour
        self.labels = (name, *(name + mark for mark in marks))
        self.width, self.levels = len(self.labels), None

    @classmethod
    def fit(cls, name: str, kind: Date, values: Sequence[Value]) -> "DateEncoder":
        found = [_moment(value, name, kind, row) for row, value in enumerate(values)]
        days = np.array([_days(moment) for moment, _ in found if moment is not None], dtype=np.float64)
        timed = [moment for moment, timed in found if moment is not None and timed]
        hour = any(moment.time() != datetime.min.time() for moment in timed)
        missing = any(moment is None for moment, _ in found)
        return cls(name, kind, RunningScale.fit(days), (missing, bool(timed), hour))

    @property
    def settled(self) -> bool:
        return self.scale.frozen

    def encode(self, values: Sequence[Value]) -> Matrix:
        return encode_rows(self, values)

    def write(self, value: Value, out: Matrix, row: int | None = None) -> None:
        moment, timed = _moment(value, self.name, self.kind, row)
        if moment is None:
            if self.missing:
                out[1] = 1.0
            return
        out[0] = self.scale.apply_one(_days(moment))
        if self.weekday:
            at = 1 + self.missing
            out[at], out[at + 1] = _angle(moment.weekday() / 7)
        if self.hour and timed:
            hours = moment.hour + moment.minute / 60 + moment.second / 3600
            out[-2], out[-1] = _angle(hours / 24)

    def observe(self, values: Iterable[Value]) -> None:
        if not self.scale.frozen:
            moments = [_moment(value, self.name, self.kind)[0] for value in values]
            self.scale.observe(_days(moment) for moment in moments if moment is not None)

    def describe(self) -> str:
        state = "frozen" if self.scale.frozen else f"running, {self.scale.count} values"
        mean = (EPOCH + timedelta(days=self.scale.mean)).date()
        parts = ", weekday" * self.weekday + ", hour" * self.hour
        return f"days around {mean}, deviation {self.scale.std:.4g} ({state}){parts}"

    def to_json(self) -> dict[str, Any]:
        parts = {"missing": self.missing, "weekday": self.weekday, "hour": self.hour}
        return described(self) | {"scale": self.scale.to_json()} | parts

    @classmethod
    def from_json(cls, name: str, kind: Date, saved: Any) -> "DateEncoder":
        scale = RunningScale.from_json(saved_entry(saved, "scale", dict))
        parts = [saved_entry(saved, part, bool) for part in ("missing", "weekday", "hour")]
        return cls(name, kind, scale, (parts[0], parts[1], parts[2]))


def _moment(value: Value, name: str, kind: Date, row: int | None = None) -> tuple[datetime | None, bool]:
    """A date in UTC, None where it is missing, and whether it came with a time of day."""
    if value is None or (isinstance(value, str) and value in kind.missing):
        return None, False
    found = day_of(value) if isinstance(value, str) else value
    if isinstance(found, datetime):
        return _utc(found, name), True
    if isinstance(found, date):
        return datetime(found.year, found.month, found.day, tzinfo=UTC), False
    raise refusal(name, "a date, a datetime or ISO text such as 2024-05-31", value, row)


def _utc(moment: datetime, name: str) -> datetime:
    try:
        return moment.replace(tzinfo=UTC) if moment.utcoffset() is None else moment.astimezone(UTC)
    except (OverflowError, ValueError):
        wanted = "expected a date of the years 1 to 9999 in UTC"
        raise DataError(f"column {name!r:.100}: {wanted}, got {moment.isoformat()}") from None


def _days(moment: datetime) -> float:
    return (moment - EPOCH).total_seconds() / DAY


def _angle(share: float) -> tuple[float, float]:
    return math.sin(2 * math.pi * share), math.cos(2 * math.pi * share)
