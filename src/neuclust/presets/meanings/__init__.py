"""What every setting means, as data beside the presets: by class of configuration, then by field.

A test counts them: no setting without a meaning, no meaning without a setting. A class from outside writes its own,
`field(metadata={"meaning": "..."})`.
"""

from collections.abc import Mapping

from neuclust.presets.meanings.auto import AUTO
from neuclust.presets.meanings.models import MODELS
from neuclust.presets.meanings.policies import POLICIES
from neuclust.presets.meanings.slates import SLATES

Meanings = Mapping[str, Mapping[str, str]]

MEANINGS: Meanings = {**AUTO, **MODELS, **POLICIES, **SLATES}
