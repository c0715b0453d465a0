"""Share of the possible gain over random slates that policies collect in shops, where clicks are rare or late.

    python -m benchmarks.click_rates play --out runs.jsonl --policy auto --policy linucb --policy auto:linear \
        --policy lin-ts --seeds 0:20 --workers 2
    python -m benchmarks.click_rates play --out runs.jsonl --policy auto --half development --seeds 0:2
    python -m benchmarks.click_rates table runs.jsonl

`play` keeps one line per run: the six cells (click rates of 0.7, 2 and 14 %, each prompt and with clicks 5 to 60
requests late of which 10 % are lost; `--rate` names others), or one half of the 50 declared shops, or problems of the
catalogue (`--shop shop-items`), or `shop-tastes` with contexts laid out in another way (`--shop tastes:product`). A
policy is NAME[:PRESET][@KEY=VALUE;KEY=VALUE]. What the file holds is not played again. `table` prints shares
(Σu − Σu_random) / (Σu* − Σu_random) after 100, 300, 1,000 and 1,500 requests.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, get_args

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # runs go side by side: a core each

if TYPE_CHECKING:
    from neuclust.environments.shop_truths import Layout
    from neuclust.environments.slates import SlateEnvironment
    from neuclust.experiment.engines.engine import Progress
    from neuclust.experiment.run import Tally

MARKS = (100, 300, 1000, 1500)
RATES = (0.007, 0.02, 0.14)
RIVALS = ("linucb", "auto:linear", "lin-ts")  # the best of them is what a policy is held against


@dataclass(frozen=True, slots=True)
class Match:
    """One run: a policy in a shop, as it is named in the file, with a seed."""

    shop: str  # `rate:0.02`, `rate:0.02:late`, `number:7`, `tastes:beside`, or a problem of the catalogue
    policy: str
    seed: int
    rounds: int


def build(match: Match) -> SlateEnvironment:
    """The shop of a match."""
    from neuclust.environments.catalogue import build_environment
    from neuclust.environments.problem import ProblemSpec
    from neuclust.environments.shops import LATE, RARE, TASTES, build_shop, draw_shop
    from neuclust.environments.slates import SlateEnvironment as Slates

    kind, _, rest = match.shop.partition(":")
    spec = ProblemSpec(horizon=match.rounds, seed=match.seed)
    if kind == "number":
        return build_shop(match.shop, draw_shop(int(rest)), spec)
    if kind == "rate":
        rate, _, late = rest.partition(":")
        return build_shop(match.shop, replace(LATE if late else RARE, click_rate=float(rate)), spec)
    if kind == "tastes":
        return build_shop(match.shop, replace(TASTES, layout=layout_of(rest)), spec)
    environment = build_environment(match.shop, spec)
    if not isinstance(environment, Slates):
        raise SystemExit(f"{match.shop}: expected a problem that neuclust ships, got one from outside")
    return environment


def layout_of(text: str) -> Layout:
    """A layout of the contexts of `shop-tastes` by its name."""
    from neuclust.environments.shop_truths import Layout

    found: dict[str, Layout] = {name: name for name in get_args(Layout)}
    if text not in found:
        raise SystemExit(f"tastes: expected one of {', '.join(found)}, got {text!r}")
    return found[text]


def random_reward(environment: SlateEnvironment, t: int) -> float:
    """Expected reward of a slate drawn evenly: exact where the slate's reward is linear in its arms' means."""
    round = environment.round(t)
    even = environment.means(round).mean().expand(environment.slate_size)
    values, chances = environment.pays.outcomes(even, environment.labels(round)[: environment.slate_size])
    return float(values @ chances)


def play(match: Match, on_progress: Callable[[Progress], None]) -> dict[str, Any]:  # noqa: ARG001
    """Sums of expected rewards of the policy, the best and random slates at the marks, and milliseconds per call."""
    from benchmarks.contest import contestant
    from neuclust.experiment.run import RunLabel, run

    environment, who = build(match), contestant(match.policy)
    points, blind = dict[int, list[float]](), 0.0

    def note(tally: Tally) -> None:
        nonlocal blind
        blind += random_reward(environment, tally.rounds)
        if tally.rounds in MARKS or tally.rounds == match.rounds:
            points[tally.rounds] = [round(sums, 5) for sums in (tally.expected_reward, blind, tally.best_expected)]

    policy = who.build(environment, match.seed)
    record = run(policy, environment, match.rounds, match.seed, label=RunLabel(match.policy), on_round=note)
    spent = {"select": record.select_seconds, "update": record.update_seconds}
    return {
        **asdict(match),
        "sums": points,
        **{f"{name}_ms": round(1e3 * seconds / match.rounds, 3) for name, seconds in spent.items()},
    }


def matches(arguments: argparse.Namespace) -> Iterator[Match]:
    """Seed by seed, so that an interrupted contest has something of everything."""
    first, _, last = arguments.seeds.partition(":")
    for seed in range(int(first), int(last)):
        for shop in shops(arguments):
            for policy in arguments.policy:
                yield Match(shop, policy, seed, arguments.rounds)


def shops(arguments: argparse.Namespace) -> list[str]:
    """Names of the shops asked for; the six cells by default."""
    if arguments.shop:
        return list(arguments.shop)
    if arguments.half:
        from neuclust.environments.shops import SHOPS

        return [f"number:{number}" for number in range(arguments.half == "reported", SHOPS, 2)]
    return [f"rate:{rate:g}{late}" for rate in arguments.rate or RATES for late in ("", ":late")]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    playing = commands.add_parser("play", help="play what the file does not hold")
    playing.add_argument("--out", type=Path, required=True)
    playing.add_argument("--policy", action="append", required=True)
    playing.add_argument("--half", choices=("development", "reported"), help="of the 50 declared shops")
    playing.add_argument("--rate", type=float, action="append", help="click rate of two cells, prompt and late")
    playing.add_argument(
        "--shop", action="append", help="a problem of the catalogue, number:N, rate:RATE[:late], tastes:LAYOUT"
    )
    playing.add_argument("--seeds", default="0:1", help="FIRST:END")
    playing.add_argument("--rounds", type=int, default=MARKS[-1])
    playing.add_argument("--workers", type=int, default=os.cpu_count())
    reading = commands.add_parser("table", help="shares per shop and policy, and paired differences")
    reading.add_argument("file", type=Path)
    reading.add_argument("--at", type=int, action="append", help="requests; 100, 300, 1000 and 1500 by default")
    arguments = parser.parse_args(words)
    from neuclust.experiment.sinks import read_lines

    rows = read_lines(arguments.out if arguments.command == "play" else arguments.file)
    if arguments.command == "table":
        sys.stdout.write("\n".join(tables(rows, arguments.at or MARKS)) + "\n")
    else:
        contest(arguments, {Match(row["shop"], row["policy"], row["seed"], row["rounds"]) for row in rows})


def contest(arguments: argparse.Namespace, held: set[Match]) -> None:
    """Play what is not held, and write a line per run."""
    from neuclust.experiment.engines.engine import Failure
    from neuclust.experiment.engines.processes import ProcessEngine
    from neuclust.experiment.sinks import JsonLines

    todo = [match for match in matches(arguments) if match not in held]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an end by force would leave its workers playing on
    with JsonLines(arguments.out) as lines:
        for match, row in ProcessEngine(arguments.workers).map(play, todo, lambda: False):
            if isinstance(row, Failure):
                sys.stderr.write(f"{match.shop} {match.policy} seed {match.seed}: {row.error}\n")
            else:
                lines.write(row)


Shares = dict[tuple[str, str], dict[int, float]]  # by shop and policy, of every seed


def shares(rows: Iterable[dict[str, Any]], at: int) -> Shares:
    """(Σu − Σu_random) / (Σu* − Σu_random) in the first `at` requests."""
    found: Shares = {}
    for row in rows:
        if str(at) in row["sums"]:
            got, blind, best = row["sums"][str(at)]
            found.setdefault((row["shop"], row["policy"]), {})[row["seed"]] = (got - blind) / (best - blind)
    return found


def tables(rows: Sequence[dict[str, Any]], marks: Sequence[int]) -> Iterator[str]:
    """A table of shares for every mark, and one of milliseconds."""
    for at in marks:
        found = shares(rows, at)
        if found:
            yield from table(found, at)
    yield from ("", "| policy | select ms | update ms |", "|---|---|---|")
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = [row for row in rows if row["policy"] == policy]
        means = " | ".join(f"{fmean(row[name] for row in own):.2f}" for name in ("select_ms", "update_ms"))
        yield f"| `{policy}` | {means} |"


def table(found: Shares, at: int) -> Iterator[str]:
    """Mean ± standard error per shop and policy; in brackets the paired difference to the shop's best rival.

    The last row averages over shops that every policy of the table has played.
    """
    names, policies = (list(dict.fromkeys(key[place] for key in found)) for place in (0, 1))
    yield from ("", f"After {at} requests", "")
    yield from (
        "| shop | " + " | ".join(f"`{policy}`" for policy in policies) + " |",
        "|---" * (len(policies) + 1) + "|",
    )
    for shop in names:
        rival = best_rival(found, shop)
        cells = (
            cell(found.get((shop, policy)), None if policy == rival else found.get((shop, rival)))
            for policy in policies
        )
        yield f"| {shop} | " + " | ".join(cells) + " |"
    whole = [shop for shop in names if all((shop, policy) in found for policy in policies)]
    if whole:
        rivals = fmean(fmean(found[shop, best_rival(found, shop)].values()) for shop in whole)
        averages = [fmean(fmean(found[shop, policy].values()) for shop in whole) for policy in policies]
        yield "| average | " + " | ".join(f"{own:.3f} ({own - rivals:+.3f})" for own in averages) + " |"


def best_rival(found: Shares, shop: str) -> str:
    """The rival of the largest mean share, or the best policy where no rival has played."""
    own = {policy: fmean(seeds.values()) for (name, policy), seeds in found.items() if name == shop}
    return max({policy: share for policy, share in own.items() if policy in RIVALS} or own, key=own.__getitem__)


def cell(own: dict[int, float] | None, rival: dict[int, float] | None) -> str:
    """`0.61 ± 0.02 (−0.03 ± 0.01)`; the difference over seeds that both played."""
    if own is None:
        return "–"
    both = [own[seed] - rival[seed] for seed in own if seed in rival] if rival else []
    return spread(list(own.values())) + (f" ({spread(both, '+')})" if both else "")


def spread(values: Sequence[float], sign: str = "") -> str:
    """Mean ± standard error; the mean alone of a single value."""
    error = f" ± {stdev(values) / len(values) ** 0.5:.3f}" if len(values) > 1 else ""
    return f"{fmean(values):{sign}.3f}{error}"


if __name__ == "__main__":
    main()
