"""A small grid of readings as a file, for tests that play it."""

from __future__ import annotations

from pathlib import Path

GRID = """
name = "small"
preset = "paper"
rounds = 4
slate_size = 3
seeds = { first = 5, count = 2 }

[reading.start]
question = "Does the network start at f = 0?"
preferred = "duplicated"
why = "The analysis asks for it."
[reading.start.options.duplicated]
words = "f = 0"
settings = { "arms.network.init" = "mirrored" }
[reading.start.options.plain]
words = "f is not 0"
settings = { "arms.network.init" = "symmetric" }

[reading.biases]
question = "Does F have biases?"
preferred = "none"
why = "90 parameters are printed."
[reading.biases.options.none]
words = "no"
settings = { "slate.biases" = "none" }
[reading.biases.options.zero]
words = "yes"
settings = { "slate.biases" = "trained" }

[reading.kmeans]
question = "Which k-means?"
preferred = "one"
why = "Users are clustered once."
[reading.kmeans.options.one]
words = "one"
settings = { "clustering.count" = 4, "clustering.seed" = 0, "clustering.n_init" = 1 }
[reading.kmeans.options.own]
words = "one for every run"
settings = { "clustering.count" = 4, "clustering.seed" = "none", "clustering.n_init" = 1 }

[[block]]
cross = { start = ["duplicated", "plain"], biases = ["none", "zero"] }

[[block]]
engine = "processes"
cross = { kmeans = ["own"] }
"""


def grid_file(folder: Path, text: str = GRID) -> Path:
    """The grid as a file of that folder."""
    file = folder / "grid.toml"
    file.write_text(text)
    return file
