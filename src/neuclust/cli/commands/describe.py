"""`neuclust policies`, `envs` and `clusters`: what can be named, and whether the arms of a problem form clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import typer

from neuclust.cli.command import argument, option
from neuclust.cli.options import deliver, json_option
from neuclust.cli.outputs import Outputs
from neuclust.errors import ConfigError, one_of
from neuclust.presets.listing import LISTED, Listed

if TYPE_CHECKING:
    from torch import Tensor

    from neuclust.presets.catalogue import PolicySpec

POLICY_HEADS = ("policy", "what it does", "presets")
SETTING_HEADS = ("setting", "value", "takes", "meaning")

WIDE = 120  # columns of a terminal from which the settings fit into a table


@dataclass(frozen=True, slots=True)
class PoliciesOptions:
    name: str | None = argument(None, "One policy: every setting, for --set.", "NAME[:PRESET]")
    json: str | None = json_option("The list")


def policies(options: PoliciesOptions) -> None:
    """List the policies and their presets, or the settings of one."""
    Outputs(json=options.json).check()
    rows: list[tuple[str, ...]]
    if options.name is None:
        heads: tuple[str, ...] = POLICY_HEADS
        rows = [(each.name, each.summary, ", ".join(each.presets)) for each in _known()]
        show = partial(_print_rows, heads, rows)
    else:
        from neuclust.reference import settings

        heads = SETTING_HEADS
        rows = [(each.name, each.default, each.takes, each.meaning) for each in settings(options.name)]
        show = partial(_print_settings, rows)
    deliver(options.json, _listed(heads, rows), show)


def _listed(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    from json import dumps

    return dumps([dict(zip(heads, row, strict=True)) for row in rows], indent=2, ensure_ascii=False) + "\n"


def _print_settings(rows: Sequence[Sequence[str]]) -> None:
    """A table where it is wide enough, else a few lines for each setting."""
    from neuclust.cli.console import make_console

    console = make_console()
    if console.width >= WIDE:
        _print_rows(SETTING_HEADS, rows)
        return
    for name, value, takes, meaning in rows:
        broken = [wrap(text, console.width - 4, break_on_hyphens=False) for text in (takes, meaning)]
        words = [f"{name} = {value}", *broken[0], *broken[1]]
        console.print("\n    ".join(words), markup=False, soft_wrap=True)


def _known() -> Iterable[Listed | PolicySpec]:
    """Every policy; torch, which takes seconds, is loaded only where installed packages bring policies of theirs."""
    from importlib.metadata import entry_points

    if not entry_points(group="neuclust.policies"):
        return LISTED
    from neuclust.registry import policies

    return policies().values()


def envs() -> None:
    """List the problems that can be named."""
    from neuclust.environments.catalogue import environments

    _print_rows(("problem", "what it is"), [(spec.name, spec.summary) for spec in environments().values()])


def _print_rows(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from neuclust.cli.console import make_console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, heading in enumerate(headings):
        table.add_column(heading, no_wrap=index == 0)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    make_console().print(table)


@dataclass(frozen=True, slots=True)
class ClustersOptions:
    env: str | None = option(None, "A built-in problem (see `neuclust envs`).")
    data: Path | None = option(None, "A prepared problem instead.", "FILE.npz")
    choose: str = option("stability", "silhouette, elbow, stability or likelihood.")
    most: int = option(30, "The largest number looked at.", "M", min=2)
    seed: int = option(0, "Draws the sample and the comparison data.", min=0)
    json: str | None = json_option("The numbers")
    plot: Path | None = option(None, "Elbow, silhouette and stability as .png or .svg.", "FILE")

    def profiles(self) -> tuple[str, Tensor]:
        """The problem's name and its arms' profiles (N, d)."""
        if self.data is not None:
            import torch

            from neuclust.data.dataset import load_dataset

            dataset = load_dataset(self.data)
            return dataset.name, torch.from_numpy(dataset.arms)
        from neuclust.environments.catalogue import build_environment
        from neuclust.environments.problem import HasArms

        assert self.env is not None  # one of the two is given
        environment = build_environment(self.env, slate_size=1, horizon=1, seed=self.seed)
        if not isinstance(environment, HasArms):
            raise ConfigError("expected a problem that shows all its arms (arm_ids and profiles)", field="env")
        return self.env, environment.profiles


def clusters(options: ClustersOptions) -> None:
    """Say how many clusters the arms form, by four criteria, and whether they form any."""
    if (options.data is None) == (options.env is None):
        raise ConfigError("expected a built-in problem (--env) or a file (--data), one of them; give one")
    Outputs(json=options.json, plot=options.plot).check()
    from neuclust.slates.cluster_choice import CRITERIA, choose_clusters

    if options.choose not in CRITERIA:
        raise ConfigError(one_of(options.choose, CRITERIA), field="choose")
    from json import dumps

    from neuclust.report.cluster_choice import figure, record, text
    from neuclust.report.drawing import save_figure

    name, profiles = options.profiles()
    report = choose_clusters(profiles, options.choose, options.most, options.seed)
    if options.plot is not None:
        save_figure(figure(name, report), options.plot)
    numbers = dumps(record(name, report), indent=2) + "\n"
    deliver(options.json, numbers, lambda: typer.echo(text(name, report), nl=False))
