"""Gymnasium: problems of neuclust as `gymnasium.Env`, and back (docs/doors/gymnasium.md).

Importing this package registers every problem as `neuclust/NAME-v0`.
"""

from neuclust.extras import require

require("gymnasium", "the door to Gymnasium")

from neuclust.doors.gym.environment import GymEnvironment, from_gymnasium  # noqa: E402
from neuclust.doors.gym.registration import register_all  # noqa: E402
from neuclust.doors.gym.slate_env import SlateEnv, to_gymnasium  # noqa: E402

register_all()

__all__ = ["GymEnvironment", "SlateEnv", "from_gymnasium", "register_all", "to_gymnasium"]
