"""Every error a user can meet; each message says what was expected, what came and what to do."""


class NeuclustError(Exception):
    """Root of the errors neuclust raises on purpose; `exit_code` is what the command line returns."""

    exit_code = 1


class ConfigError(NeuclustError):
    """An option, preset or parameter that cannot work (exit code 2, like any usage error)."""

    exit_code = 2


class DataError(NeuclustError):
    """Input data that is missing, malformed or inconsistent (exit code 65, EX_DATAERR)."""

    exit_code = 65


class StateError(NeuclustError):
    """A learned state that broke or does not fit: lost definiteness, a foreign or damaged save."""

    exit_code = 70


class LearningWarning(UserWarning):
    """Rewards that are legal and hardly teach anything; `warnings.simplefilter` turns it off, or into an error."""
