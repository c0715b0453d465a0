"""`neuclust clusters`: how many clusters the arms of a problem form, if any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuclust.cli.outputs import STDOUT, Outputs, check_outputs
from neuclust.errors import ConfigError, one_of

if TYPE_CHECKING:
    from torch import Tensor


def clusters(
    env: Annotated[str | None, typer.Option(help="A built-in problem (see `neuclust envs`).")] = None,
    data: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="A prepared problem instead.")] = None,
    choose: Annotated[str, typer.Option(help="silhouette, elbow, stability or likelihood.")] = "stability",
    most: Annotated[int, typer.Option(metavar="M", min=2, help="The largest number looked at.")] = 30,
    seed: Annotated[int, typer.Option(min=0, help="Draws the sample and the comparison data.")] = 0,
    json: Annotated[
        str | None, typer.Option(metavar="FILE", help="The numbers as JSON; - is stdout, with nothing else on it.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Elbow, silhouette and stability as .png or .svg.")
    ] = None,
) -> None:
    """Say how many clusters the arms form, by four criteria, and whether they form any."""
    if (data is None) == (env is None):
        raise ConfigError("expected a built-in problem (--env) or a file (--data), one of them; give one")
    check_outputs(Outputs(json=json, plot=plot))
    from neuclust.slates.cluster_choice import CRITERIA, choose_clusters

    if choose not in CRITERIA:
        raise ConfigError(f"--choose: {one_of(choose, CRITERIA)}")
    import sys
    from json import dumps

    from neuclust.files import write_text
    from neuclust.report.cluster_choice import figure, record, text
    from neuclust.report.figures import save_figure

    name, profiles = _profiles(env, data, seed)
    report = choose_clusters(profiles, choose, most, seed)
    numbers = dumps(record(name, report), indent=2) + "\n"
    if plot is not None:
        save_figure(figure(name, report), plot)
    if json is not None and json != STDOUT:
        write_text(Path(json), numbers)
    sys.stdout.write(numbers if json == STDOUT else text(name, report))


def _profiles(env: str | None, data: Path | None, seed: int) -> tuple[str, Tensor]:
    """The problem's name and its arms' profiles (N, d)."""
    import torch

    if data is not None:
        from neuclust.data.dataset import load_dataset

        dataset = load_dataset(data)
        return dataset.name, torch.from_numpy(dataset.arms)
    from neuclust.environments.catalogue import build_environment
    from neuclust.environments.problem import HasArms

    assert env is not None  # one of the two is given
    environment = build_environment(env, slate_size=1, horizon=1, seed=seed)
    if not isinstance(environment, HasArms):
        raise ConfigError("expected a problem that shows all its arms (arm_ids and profiles)", field="env")
    return env, environment.profiles
