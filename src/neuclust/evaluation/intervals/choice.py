"""Which interval a result uses where none is asked for, and the sentence that says why."""

from neuclust.errors import ConfigError, one_of
from neuclust.evaluation.intervals.interval import EQUAL, KINDS, Kind

ENOUGH = 100  # of effective rows, from which asymptotic forms hold (docs/evaluation_intervals.md)
LEAST = 10  # below it a log cannot tell, whatever the interval
CANNOT_TELL = "this log cannot tell"
_LEARNED = "the logger learned, so that rows depend on those before them"


def choose_interval(
    learning: bool, bounded: bool, ess: float, n: int, wanted: str | None = None, varies: bool = True
) -> tuple[Kind, str]:
    """The kind of interval for a log of n rows with this effective sample size, and one sentence on why.

    `ess` is the smaller of `effective_sample_size` and, where designs are known, `expected_sample_size`.

    Fixed logger: asymptotic from 100 effective rows on; learning logger: martingale. Below, for both, the confidence
    sequence, which needs no bound and is narrower than empirical Bernstein. `bounded`: bounds of the contributions are
    known, which only an empirical Bernstein interval needs. `varies`: some contributions differ; without a click, say,
    they do not, and only a finite-sample form can say how many may have been missed.
    """
    rows = f"{ess:,.0f} effective rows of {n:,}"
    if wanted is not None:
        return _wanted(wanted, learning, bounded, rows if ess >= LEAST else f"{rows}: {CANNOT_TELL}", ess)
    who = _LEARNED if learning else "the logger stayed the same"
    if ess >= ENOUGH and not varies:
        return "confidence-sequence", f"confidence-sequence: {EQUAL}, over {rows}"
    if ess >= ENOUGH:
        kind: Kind = "martingale" if learning else "asymptotic"
        return kind, f"{kind}: {who}, and there are {rows}"
    reason = f"confidence-sequence: {who}, and {rows} are too few for a normal approximation, so the interval is wide"
    return "confidence-sequence", reason if ess >= LEAST else f"{reason}; {CANNOT_TELL}"


def _wanted(wanted: str, learning: bool, bounded: bool, rows: str, ess: float) -> tuple[Kind, str]:
    """A kind that was asked for, with a warning where its assumption does not hold here."""
    if wanted not in KINDS:
        raise ConfigError(one_of(wanted, KINDS), field="interval")
    kind = next(each for each in KINDS if each == wanted)
    if kind == "empirical-bernstein" and not bounded:
        said = "expected contributions with known bounds for empirical-bernstein, got none"
        raise ConfigError(f"{said}; use confidence-sequence", field="interval")
    doubts = []
    if learning and kind in ("asymptotic", "bootstrap", "empirical-bernstein"):
        doubts.append(f"it is made for a logger that stays the same, and {_LEARNED}")
    if ess < ENOUGH and kind in ("asymptotic", "bootstrap", "martingale"):
        doubts.append(f"it needs {ENOUGH} effective rows to hold")
    doubt = f"; beware: {', and '.join(doubts)}" if doubts else ""
    return kind, f"{kind}: it was asked for; there are {rows}{doubt}"
