"""How long a test waits for another process before it calls that a hang.

Far more than ten times what any of them takes on a quiet machine: a busy one must not fail a test. The limit on a whole
test (`--timeout` in pyproject.toml) is above this one, so that a hang is told where it happens.
"""

HANG_SECONDS = 900
