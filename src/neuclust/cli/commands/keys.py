"""`neuclust keys`: who may use the service, and for what."""

import enum
from dataclasses import dataclass
from datetime import UTC, datetime

import typer

from neuclust.cli.command import add_commands, argument, option
from neuclust.cli.service_database import db_option, installed, opened
from neuclust.errors import ConfigError


class Scope(enum.StrEnum):
    """What a key may be used for."""

    RECOMMEND = "recommend"
    FEEDBACK = "feedback"
    ADMIN = "admin"
    METRICS = "metrics"


@dataclass(frozen=True, slots=True)
class AddOptions:
    scope: list[Scope] = option(..., "recommend, feedback, admin or metrics; may be repeated.", "SCOPE")
    recommender: str | None = option(None, "For this recommender alone. Default: all.", "NAME")
    note: str = option("", "Whose it is, to be listed.", "TEXT")
    db: str | None = db_option()


def add(options: AddOptions) -> None:
    """Make a key and print its secret, once: only its hash is kept."""
    with installed():
        from neuclust.serve.api.auth import new_key

    secret, key = new_key([scope.value for scope in options.scope], options.recommender, options.note)
    with opened(options.db, make=True) as store:
        store.add_key(key)
    where = f"the recommender {key.recommender}" if key.recommender else "all recommenders"
    typer.echo(f"key {key.id} for {where}, scopes {', '.join(key.scopes)}; its secret is not shown again:", err=True)
    typer.echo(secret)


@dataclass(frozen=True, slots=True)
class ListOptions:
    db: str | None = db_option()


def list_keys(options: ListOptions) -> None:
    """List the keys, without their secrets."""
    with opened(options.db) as store:
        keys = store.keys()
    if not keys:
        typer.echo("no keys: the service listens on loopback only, and is open there", err=True)
    for key in sorted(keys, key=lambda each: each.created):
        made = datetime.fromtimestamp(key.created, UTC).isoformat(timespec="seconds")
        typer.echo("\t".join((key.id, ",".join(key.scopes), key.recommender or "*", made, key.note)).rstrip())


@dataclass(frozen=True, slots=True)
class RevokeOptions:
    id: str = argument(..., "The key's id, as listed.", "ID")
    db: str | None = db_option()


def revoke(options: RevokeOptions) -> None:
    """Take a key back; it is refused from now on."""
    with opened(options.db) as store:
        if not store.revoke_key(options.id):
            raise ConfigError(f"expected the id of a key, got {options.id!r:.100}; `neuclust keys list` shows them")
    typer.echo(f"revoked {options.id}", err=True)


app = typer.Typer(help="API keys of the service: make, list and revoke them.", no_args_is_help=True)
add_commands(app, add=add, list=list_keys, revoke=revoke)
