"""Runs that check the paper: its protocol, readings of it, ours, numbers of clusters; shared runs are played once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from neuclust.configuration import entries
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.problem import Problem, open_problem
from neuclust.experiment.spec import SweepSpec
from neuclust.experiment.tasks import Task, tasks_of
from neuclust.registry import POLICIES, policy_config, policy_spec

PAPER_POLICIES = ("neuclust", "neuclust-online", "cn-ucb", "linucb-disjoint", "neural-mab", "cc-mab")
YARDSTICKS = ("linucb", "static", "uniform", "oracle")  # not in the paper's table; they say what its numbers mean
PAPER_ROUNDS, SLATE_SIZE = 1000, 5
OUR_SEEDS = 20
CLUSTER_NUMBERS = (1, 5, 10, 15, 20, 22, 25, 30, 40)
CLUSTER_SEEDS = 5
PAPER, READINGS, OURS, CLUSTERS = "paper", "readings", "ours", "clusters"
AUTHORS, TUNED, GRIDS = "authors", "tuned", "grids"
PHASE_TITLES = {
    PAPER: "the paper's protocol",
    READINGS: "readings of the paper",
    OURS: "our protocol",
    CLUSTERS: "number of clusters",
    AUTHORS: "the authors' settings",
    TUNED: "tuned, an equal budget for everybody",
    GRIDS: "the paper's grids",
}
NOTHING: Mapping[str, str] = MappingProxyType({})
WITHOUT_SLATE_NET = {"slate.weight": "0"}  # V = Σv: what is left of NeUClust's score without F
PRINTED_ALPHAS = ("0.01", "0.1", "1")  # of K-LinUCB: the appendix prints 0.01 to 1


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of what the paper leaves open: a preset, settings on top of it, and what they mean."""

    preset: str
    words: str
    settings: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    starts_at_zero: bool = True  # f(·; θ_0) = 0, as the paper's analysis requires


_READINGS = (
    Reading("paper", "the net starts at f = 0, contexts divided by 5, J steps from the last parameters"),
    Reading("paper-raw", "the net starts at f = 0, contexts as they are, J steps from the initial parameters"),
    Reading(
        "paper",
        "the block-symmetric start without the duplicated inputs it needs, so that f ≠ 0; otherwise as paper",
        MappingProxyType({"arms.network.init": "symmetric"}),
        starts_at_zero=False,
    ),
)


@dataclass(frozen=True, slots=True)
class Study:
    """One data set of the paper: the problem that stands in for it, and what the paper chose there."""

    name: str
    title: str
    twin: str  # environment played without a file
    clusters: int
    runs: int
    presets: tuple[str, ...]  # the paper's settings, the most fitting first
    authors: str  # preset of the authors' script
    readings: tuple[Reading, ...] = ()


STUDIES: Mapping[str, Study] = {
    "movielens": Study("movielens", "MovieLens 25M", "movielens-twin", 22, 10, ("paper",), "authors-ml", _READINGS),
    "yelp": Study("yelp", "Yelp", "yelp-twin", 20, 5, ("paper-yelp", "paper"), "authors-yelp"),
}


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is run; `left_out` and `settings` (by entry of a configuration) are what a quick look does without."""

    rounds: int | None = None  # None: 1000, or all of a shorter file
    runs: int = 10
    our_seeds: int = OUR_SEEDS
    cluster_seeds: int = CLUSTER_SEEDS
    cluster_numbers: tuple[int, ...] = CLUSTER_NUMBERS
    quick: bool = False
    left_out: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=lambda: NOTHING)


def full_scale(study: Study) -> Scale:
    """The paper's number of runs, 20 seeds, nine numbers of clusters."""
    return Scale(runs=study.runs, cluster_numbers=tuple(sorted({*CLUSTER_NUMBERS, study.clusters})))


def quick_scale(study: Study) -> Scale:
    """Every table and figure in two minutes. On Yelp's 52,268 arms k-means starts once, not ten times, and the online
    variant, which clusters every round, is left out."""
    if study.name == "yelp":
        settings = {"clustering.n_init": "1", "clustering.max_iter": "20"}
        left_out = ("neuclust-online",)
        return Scale(20, 2, 1, 1, (1, 10, 20, 40), quick=True, left_out=left_out, settings=settings)
    return Scale(80, 2, 2, 2, (1, 10, 22, 40), quick=True)


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the reproduction: its tasks, under a name that stands in the results."""

    name: str
    tasks: tuple[Task, ...]

    @property
    def title(self) -> str:
        return PHASE_TITLES[self.name]

    @property
    def contestants(self) -> tuple[Contestant, ...]:
        found: list[Contestant] = []  # not hashable
        for task in self.tasks:
            if task.contestant not in found:
                found.append(task.contestant)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Layout:
    """A study on an opened problem, with the number of rounds that are played and an environment to look at."""

    study: Study
    problem: Problem
    scale: Scale
    rounds: int
    environment: SlateEnvironment

    def phase(self, name: str, contestants: Iterable[Contestant], seeds: int) -> Phase:
        """Each contestant on seeds 0 … seeds − 1."""
        chosen = tuple(contestants)
        for contestant in chosen:
            contestant.check(self.environment)
        if not chosen:
            return Phase(name, ())
        spec = SweepSpec(name, (self.problem,), (self.rounds,), chosen, tuple(range(seeds)))
        return Phase(name, tasks_of(spec))

    def contestant(
        self, policy: str, preset: str = "default", clusters: int | None = None, settings: Mapping[str, str] = NOTHING
    ) -> Contestant:
        """The contestant with what a quick look changes, where its configuration has such an entry."""
        known = entries(policy_config(policy, preset))
        wanted = {key: value for key, value in self.scale.settings.items() if key in known}
        return Contestant(policy, preset, clusters, {**wanted, **settings})


def open_study(study: Study, problem: Problem, scale: Scale) -> Layout:
    """Open the problem; what cannot be played is refused here."""
    problem = replace(problem, rounds=scale.rounds)
    opened = open_problem(problem)
    environment = opened.environment(0)
    if scale.cluster_numbers and max(scale.cluster_numbers) > environment.n_arms:
        wanted, got = f"at most as many clusters as the {environment.n_arms} arms", max(scale.cluster_numbers)
        raise ConfigError(f"expected {wanted}, got {got}; name smaller numbers", field="clusters")
    return Layout(study, problem, scale, opened.rounds, environment)


def paper_preset(policy: str, study: Study) -> str:
    """The paper's settings of a policy, `default` where the paper does not set any."""
    presets = policy_spec(policy).presets
    return next((preset for preset in study.presets if preset in presets), "default")


def phases(layout: Layout, *, authors: bool = False, policies: Sequence[str] = ()) -> list[Phase]:
    """The parts that need no tuning; `policies` restricts ours, all there are otherwise."""
    found = [_paper(layout), _readings(layout), _ours(layout, policies), _clusters(layout)]
    return [*found, _authors(layout)] if authors else found


def _paper(layout: Layout) -> Phase:
    names = [name for name in PAPER_POLICIES if name in POLICIES and name not in layout.scale.left_out]
    theirs = [layout.contestant(name, paper_preset(name, layout.study)) for name in names]
    yardsticks = [layout.contestant(name) for name in YARDSTICKS]
    return layout.phase(PAPER, [*theirs, *yardsticks], layout.scale.runs)


def _readings(layout: Layout) -> Phase:
    """NeUClust with and without F beside CN-UCB under every reading, and K-LinUCB over the printed range of α."""
    readings = layout.study.readings
    chosen = [
        layout.contestant(policy, reading.preset, settings={**reading.settings, **settings})
        for reading in readings
        for policy, settings in (("neuclust", {}), ("cn-ucb", {}), ("neuclust", WITHOUT_SLATE_NET))
    ]
    alphas = [layout.contestant("linucb-disjoint", settings={"alpha": alpha}) for alpha in PRINTED_ALPHAS]
    return layout.phase(READINGS, [*chosen, *alphas] if readings else (), layout.scale.our_seeds)


def our_policies(layout: Layout, policies: Sequence[str] = ()) -> list[str]:
    """Those asked for, or all there are."""
    for name in policies:
        policy_spec(name)
    return [name for name in policies or POLICIES if name not in layout.scale.left_out]


def _ours(layout: Layout, policies: Sequence[str]) -> Phase:
    chosen = [layout.contestant(name) for name in our_policies(layout, policies)]
    return layout.phase(OURS, chosen, layout.scale.our_seeds)


def _clusters(layout: Layout) -> Phase:
    """NeUClust with the paper's settings, and the best that slates inside one cluster could do."""
    preset, numbers = paper_preset("neuclust", layout.study), layout.scale.cluster_numbers
    players = (("neuclust", preset), ("cluster-oracle", "default"))
    chosen = [layout.contestant(policy, preset, number) for number in numbers for policy, preset in players]
    return layout.phase(CLUSTERS, chosen, layout.scale.cluster_seeds)


def _authors(layout: Layout) -> Phase:
    """The authors have no script of the online variant."""
    preset = layout.study.authors
    names = [name for name in PAPER_POLICIES if name in POLICIES and name != "neuclust-online"]
    chosen = [layout.contestant(name, preset) for name in names if preset in policy_spec(name).presets]
    return layout.phase(AUTHORS, chosen, layout.scale.our_seeds)


def all_tasks(found: Iterable[Phase]) -> tuple[Task, ...]:
    """Every run of these phases once, the first phase first."""
    unique: dict[str, Task] = {}
    for task in (task for phase in found for task in phase.tasks):
        unique.setdefault(task.key, task)
    return tuple(unique.values())
