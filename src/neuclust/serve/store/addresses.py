"""Addresses of databases as people write them, and as they may be shown."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from neuclust.errors import ConfigError, brief, close_names

SQLITE, POSTGRES = "sqlite", ("postgresql", "postgres")
FORMS = "sqlite:FILE or postgresql://USER@HOST/DATABASE"
_SECRET = ("password", "sslpassword")
_ENCODE = "write special characters of a password as %40 for @, %2F for /, %3F for ? and %23 for #"


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """`whole` is what the driver gets; `shown` has no password."""

    whole: str
    shown: str
    secrets: tuple[str, ...] = ()

    def without_secrets(self, text: str) -> str:
        """A message of the driver without the password, should it tell it."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def read_address(address: str) -> Path | PostgresAddress:
    """A file for SQLite, or an address for PostgreSQL; `ConfigError` for anything else."""
    kind, colon, rest = address.partition(":")
    if colon and kind == SQLITE:
        return _file(rest)
    if colon and kind in POSTGRES and rest.startswith("//"):
        return _server(address)
    raise ConfigError(f"expected {FORMS}, got {_harmless(address)}{_meant(kind, colon)}", field="db")


def _file(rest: str) -> Path:
    if not rest or rest.startswith((":memory:", "file:")) or rest.endswith("/") or "\0" in rest:
        raise ConfigError(f"expected sqlite:FILE with the name of a file, got {brief('sqlite:' + rest)}", field="db")
    file = Path(rest).expanduser()
    if file.is_dir():
        raise ConfigError(f"expected a file, got the folder {file}; name a file in it", field="db")
    if not file.absolute().parent.is_dir():
        raise ConfigError(
            f"expected a file in a folder that is there, got {file}; make the folder {file.parent} first", field="db"
        )
    return file


def _server(address: str) -> PostgresAddress:
    parts = urlsplit(address)
    login, at, hosts = parts.netloc.rpartition("@")
    if "@" in login or "@" in parts.path + parts.query or parts.fragment:
        raise ConfigError(f"expected {FORMS}, got one that cannot be taken apart; {_ENCODE}", field="db")
    user, _, password = login.partition(":")
    options = parse_qsl(parts.query, keep_blank_values=True)
    secrets = {password, unquote(password), *(value for name, value in options if name in _SECRET)} - {""}
    query = urlencode([(name, value) for name, value in options if name not in _SECRET])
    shown = urlunsplit((parts.scheme, f"{user}{at}{hosts}", parts.path, query, ""))
    return PostgresAddress(address, shown, tuple(secrets))


def _harmless(address: str) -> str:
    """An address that was not understood, as far as it cannot hold a password."""
    return f"{address.partition(':')[0]:.20}:…" if "@" in address else brief(address)


def _meant(kind: str, colon: str) -> str:
    if not colon:
        return f"; did you mean sqlite:{kind:.80}?" if Path(kind).suffix or "/" in kind else ""
    close = close_names(kind, (SQLITE, *POSTGRES), most=1)
    return f"; did you mean {close[0]}:?" if close else ""
