"""Whose values the schema's levels of users and requests are, so that an erasure takes the texts of one user along."""

from collections.abc import Mapping
from typing import Any

from neuclust.errors import StateError
from neuclust.recommender.encoders.levels import CategoryEncoder, TagsEncoder
from neuclust.recommender.schema import Schema
from neuclust.recommender.tables.values import Value

MOST = 8  # users of one level that are told apart; what more users have, or somebody unknown, tells of nobody


class LevelOwners:
    """Users by column and level, None where they are too many or unknown. Levels that were declared are nobody's."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], list[str] | None] = {}

    def note(self, schema: Schema | None, values: Mapping[str, Value], user: str | None) -> None:
        """Take in the values of a user, by column, after the schema has seen them."""
        for encoder in () if schema is None else schema.user.encoders:
            value = values.get(encoder.name)
            if value is None or not isinstance(encoder, CategoryEncoder | TagsEncoder):
                continue
            if isinstance(encoder.kind.levels, int):
                for text in encoder.texts(value):
                    if text in encoder.levels:
                        self._add((encoder.name, text), user)

    def _add(self, level: tuple[str, str], user: str | None) -> None:
        known = self._owners.setdefault(level, [])
        if known is None or user in known:
            return
        if user is None or len(known) >= MOST:
            self._owners[level] = None
        else:
            known.append(user)

    def erase(self, user: str) -> dict[str, list[str]]:
        """Forget a user; the levels, by column, that nobody else had."""
        gone: dict[str, list[str]] = {}
        for (column, text), users in list(self._owners.items()):
            if users is not None and user in users:
                users.remove(user)
                if not users:
                    del self._owners[column, text]
                    gone.setdefault(column, []).append(text)
        return gone

    def to_json(self) -> list[Any]:
        return [[column, text, users] for (column, text), users in self._owners.items()]

    @classmethod
    def from_json(cls, saved: Any) -> "LevelOwners":
        """What `to_json` wrote."""
        made = cls()
        try:
            for column, text, users in saved:
                made._owners[str(column), str(text)] = None if users is None else [str(user) for user in users]
        except (TypeError, ValueError):
            raise StateError(f"levels: expected columns, texts and users, got {saved!r:.100}; damaged?") from None
        return made
