"""Policies in the simulated shop on the command line: progress, files, table, exit code."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from neuclust.analysis.shop import summarised
from neuclust.cli.console import make_console
from neuclust.cli.interrupt import STOPPED, patient_interrupt
from neuclust.cli.outputs import require_writable
from neuclust.experiment.shop import ShopRun, SimulatedShop, Watch, check_policy, open_shop, play_shop
from neuclust.files import write_text

TABLE, REQUESTS, PICTURE = "table.txt", "requests.csv", "shop"
REFRESH_SECONDS = 0.1


def play_policies(policies: Sequence[str], requests: int, seed: int, out: Path, quiet: bool) -> int:
    """Every policy in the shop of a seed, its files in `out`; the exit code is 0, or 130 after Ctrl-C."""
    for name in policies:
        check_policy(name)
    require_writable("--out", out, make=True)
    shop = SimulatedShop.of(seed)
    shop.write(out)
    runs: list[ShopRun] = []
    with _watched(quiet, requests) as view, patient_interrupt(view.stop) as stopped:
        view.say(f"{len(shop.items)} items and {len(shop.users)} users are in {out}: items.csv and users.csv.")
        for name in policies:
            recommender = open_shop(out, name, seed)
            begun = monotonic()
            run = play_shop(shop, recommender, requests, view.watching(name, stopped))
            runs.append(run)
            view.say(f"{name}: {len(run)} requests in {monotonic() - begun:.1f} s, {int(run.clicks.sum())} clicks")
            if stopped():
                break
    _write(runs, out)
    _show(runs)
    if stopped():
        view.say(f"Stopped by Ctrl-C: what was played until then is in {out}.")
        return STOPPED
    view.say(f"The picture: {out / PICTURE}.png")
    return 0


class _View:
    """A moving row on a terminal, one line per policy elsewhere, nothing when quiet."""

    def __init__(self, console: Console, rows: Progress | None, quiet: bool, requests: int) -> None:
        self._console, self._rows, self._quiet, self._requests = console, rows, quiet, requests

    def say(self, text: str) -> None:
        if not self._quiet:
            self._console.print(text, markup=False, soft_wrap=True)

    def stop(self) -> None:
        self.say("Ctrl-C: stopping after this request; press it again to stop at once.")

    def watching(self, name: str, stopped: Callable[[], bool]) -> Watch:
        """Shows how far a policy is; it goes on until Ctrl-C."""
        if self._rows is None:
            return lambda *_: not stopped()
        rows, row, shown = (
            self._rows,
            self._rows.add_task(name.replace("[", "\\["), total=self._requests, state=""),
            0.0,
        )

        def watch(request: int, clicks: float) -> bool:
            nonlocal shown
            if monotonic() - shown >= REFRESH_SECONDS or request == self._requests:
                shown = monotonic()
                rows.update(row, completed=request, state=f"{clicks / request:.2f} clicks per request")
            return not stopped()

        return watch


@contextmanager
def _watched(quiet: bool, requests: int) -> Iterator[_View]:
    console = make_console(stderr=True)
    if quiet or not console.is_terminal or console.is_dumb_terminal:
        yield _View(console, None, quiet, requests)
        return
    far = TextColumn("request {task.completed:.0f}/{task.total:.0f}"), TextColumn("{task.fields[state]}")
    left = TimeRemainingColumn(compact=True), TextColumn("left")
    first = TextColumn("{task.description}")
    with Progress(first, BarColumn(bar_width=20), *far, *left, console=console, transient=True) as rows:
        yield _View(rows.console, rows, quiet, requests)


def _write(runs: Sequence[ShopRun], out: Path) -> None:
    from neuclust.report.drawing import save_figures
    from neuclust.report.shop import requests_csv, shop_figure, text_table

    write_text(out / TABLE, text_table([summarised(run) for run in runs]))
    write_text(out / REQUESTS, requests_csv(runs))
    save_figures({PICTURE: shop_figure(runs)}, out)


def _show(runs: Sequence[ShopRun]) -> None:
    """The table on stdout."""
    from neuclust.report.shop import HEADINGS, summary_rows, text_table
    from neuclust.report.tables import terminal_table

    summaries, console = [summarised(run) for run in runs], make_console()
    if console.is_terminal:
        best = max(range(len(summaries)), key=lambda at: summaries[at].gain)
        console.print(terminal_table(HEADINGS, summary_rows(summaries), ["policy"], bold=[(best, 4)]))
    else:
        sys.stdout.write(text_table(summaries))
