"""The errors and warnings of neuclust, close names for a misspelt one, and why a place cannot be written.

Each message says what was expected, what came and what to do.
"""

import difflib
import errno
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class NeuclustError(Exception):
    """Root of the errors neuclust raises on purpose; `exit_code` is what the command line returns.

    `field` is the argument or setting that was refused and begins the text; the command line replaces it by its option
    of that name, or by the option of its `group` (such as the settings) followed by the field.
    """

    exit_code = 1

    def __init__(self, message: str, *, field: str | None = None, group: str | None = None) -> None:
        super().__init__(message if field is None else f"{field}: {message}")
        self.message, self.field, self.group = message, field, group


class ConfigError(NeuclustError):
    """An option, preset or parameter that cannot work (exit code 2, like any usage error)."""

    exit_code = 2


class DataError(NeuclustError):
    """Input data that is missing, malformed or inconsistent (exit code 65, EX_DATAERR)."""

    exit_code = 65


class StateError(NeuclustError):
    """A learned state that broke or does not fit: lost definiteness, a foreign or damaged save."""

    exit_code = 70


class SaveError(StateError):
    """A save that cannot be written or read back: damaged, foreign, of another version, or at a refused place."""

    exit_code = 65


class LearningWarning(UserWarning):
    """Rewards or columns that are legal and hardly teach anything; `warnings.simplefilter` turns it off."""


class LogWarning(UserWarning):
    """A log that was repaired, cannot be written now, or has less than what was learned."""


class RenamedWarning(FutureWarning):
    """A setting that was given under an earlier name."""


@contextmanager
def plain_warnings(say: Callable[[str], None]) -> Iterator[None]:
    """Inside, warnings of neuclust go to `say` as one sentence, without a line of source; others as usual."""
    with warnings.catch_warnings():
        default = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if issubclass(category, LearningWarning | LogWarning | RenamedWarning):
                say(str(message))
            else:
                default(message, category, *where)

        shown: Any = warnings
        shown.showwarning = show
        yield


# --- names that were probably meant ---------------------------------------------------------------------------

CLOSE, CLOSE_SHORT, SHORT = 0.65, 0.8, 4  # a short word is like many others by chance
PREFIX = 3  # letters from which on the beginning of a name is enough


def brief(value: object, most: int = 100) -> str:
    """A value as a message shows it: at most `most` characters, whatever it is."""
    try:
        return repr(value)[:most]
    except Exception:  # Python refuses to write whole numbers of thousands of digits, and objects may fail to
        return "a whole number of very many digits" if type(value) is int else f"a {type(value).__name__:.50}"


def close_names(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names that `name` was probably meant to be, the most similar first; none where it is like no other."""
    plain = {_plain(each): each for each in known}
    word = _plain(name)
    if word in plain:
        return [plain[word]]  # but for capitals or a dash
    cutoff = CLOSE if len(word) >= SHORT else CLOSE_SHORT
    alike = difflib.get_close_matches(word, plain, n=most, cutoff=cutoff)
    begun = [each for each in plain if len(word) >= PREFIX and each.startswith(word)]
    return [plain[each] for each in dict.fromkeys([*alike, *begun])][:most]


def suggestion(name: object, known: Iterable[str]) -> str:
    """`did you mean A or B?`, or all that is known where no name is close."""
    names = list(known)
    close = close_names(name, names) if isinstance(name, str) else []
    return f"did you mean {' or '.join(close)}?" if close else f"expected one of {', '.join(names)}"


def one_of(name: object, known: Iterable[str]) -> str:
    """`expected one of A, B, got 'C'`, and the one that was probably meant; for names that are few."""
    names = list(known)
    close = close_names(name, names, most=1) if isinstance(name, str) else []
    return f"expected one of {', '.join(names)}, got {brief(name)}" + (f"; did you mean {close[0]}?" if close else "")


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-")


# --- places that cannot be written ----------------------------------------------------------------------------

ANOTHER = "name another place"
_REASONS = {
    errno.ENOSPC: ("no room is left on its disk", f"make room, or {ANOTHER}"),
    errno.EDQUOT: ("your share of its disk is used up", f"make room, or {ANOTHER}"),
    errno.EFBIG: ("the file would be too large for it", f"raise the limit on file sizes, or {ANOTHER}"),
    errno.EROFS: ("its disk is read-only", "name a place on another disk"),
    errno.EACCES: ("permission denied", f"ask for the permission, or {ANOTHER}"),
    errno.EPERM: ("the system does not permit it", ANOTHER),
    errno.EISDIR: ("it is a folder", "name a file in it"),
    errno.ENAMETOOLONG: ("its name is too long", "shorten the name"),
}


def why_not_written(error: OSError, place: Path) -> tuple[str, str]:
    """Why `place` could not be written, and what to do about it."""
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return f"{_first(place, lambda part: part.exists() and not part.is_dir()) or place} is no folder", ANOTHER
    if error.errno == errno.ENOENT:
        missing = _first(place.parent, lambda part: not part.exists())
        if missing is not None:
            return f"the folder {missing} does not exist", f"make it first, or {ANOTHER}"
        return "nothing can be made there", ANOTHER
    return _REASONS.get(error.errno or 0, (error.strerror or str(error) or type(error).__name__, ANOTHER))


def not_written(place: Path, error: OSError, option: str = "", kind: str = "place") -> str:
    """The whole sentence; `option` is the one that named the place, where one did."""
    reason, advice = why_not_written(error, place)
    start = f"{option}: expected a {kind} that can be written, got {place}"
    return f"{start if option else f'{place}: expected a {kind} that can be written'} ({reason}); {advice}"


def _first(place: Path, is_it: Callable[[Path], bool]) -> Path | None:
    """The first part of a path, from the root, of which something holds."""
    return next((part for part in (*reversed(place.parents), place) if is_it(part)), None)


class NotWritten(OSError):
    """An error of the system while `filename` was written."""


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Inside, an error of the system names `place`, and not the scratch file beside it or nothing at all."""
    try:
        yield
    except OSError as error:
        raise NotWritten(error.errno, error.strerror or str(error), str(place)) from None
