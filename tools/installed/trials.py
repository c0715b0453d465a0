"""The small thing that each extra is for, as a program for an environment that has this extra alone."""

# small.toml, which lies beside every program
SMALL = """
rounds = 20
slate_size = 3
seeds = 2
[[environment]]
env = "clusters"
arms_per_round = 20
[[policy]]
policy = "linucb"
[[policy]]
policy = "uniform"
"""

CORE = """
from pathlib import Path
import neuclust

rows = [{"id": f"i{n}", "price": n / 10, "kind": "ab"[n % 2]} for n in range(12)]
Path("users.csv").write_text("id,age\\nu1,30\\nu2,50\\n")
shop = neuclust.Recommender(rows, "id", users="users.csv", user_id="id", slate_size=3, log="log.jsonl")
for number in range(20):
    choice = shop.recommend("u1")
    shop.feedback(choice.id, {choice.items[0]: 1.0})
shop.save("saved")
again = neuclust.Recommender.load("saved")
assert again.recommend("u2").items == shop.recommend("u2").items

world = neuclust.build_environment("clusters", slate_size=3, horizon=20, seed=1)
for name in ("neuclust", "auto"):
    policy = neuclust.build_policy(name, environment=world, seed=0)
    for t in range(1, 21):
        asked = world.round(t)
        slate = policy.select(asked)
        policy.update(asked, slate, world.play(asked, slate))
print([record.rounds for record in neuclust.play(neuclust.tasks(["linucb"], "clusters", rounds=3))])
"""

LAB = """
import subprocess, sys
from pathlib import Path

def neuclust(*words):
    done = subprocess.run([str(Path(sys.executable).with_name("neuclust")), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout

neuclust("sweep", "small.toml", "--out", "swept", "--engine", "inline", "--quiet")
neuclust("report", "swept", "--out", "page")
assert list(Path("page").rglob("*.html"))
neuclust("tune", "--policy", "linucb", "--env", "clusters", "--rounds", "10", "--param", "alpha=0.1:1", "--trials", "2",
         "--tune-seeds", "9..9", "--report-seeds", "0..1", "--out", "tuned", "--quiet")
print(neuclust("--version"), end="")
"""

SERVE = """
import re, subprocess, sys
from pathlib import Path
from neuclust.client import Client

words = [str(Path(sys.executable).with_name("neuclust")), "serve", "--port", "0", "--db", "sqlite:service.db"]
service = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
try:
    said = []
    for line in service.stdout:
        said.append(line)
        if found := re.search(r"http://\\S+:\\d+", line):
            break
    else:
        raise SystemExit("".join(said))
    client = Client(found[0])
    books = client.create("books", slate_size=3)
    books.put_items([{"id": f"book-{n}", "genre": "abc"[n % 3], "price": 5.0 + n} for n in range(30)])
    answer = books.recommend("u17", context={"device": "phone"})
    books.feedback(answer.decision_id, {answer.items[0]: 1})
    import httpx
    page = httpx.get(found[0] + "/").text
    assert "<html" in page and httpx.get(found[0] + "/metrics").status_code == 200
    print(len(answer.items), answer.mode)
finally:
    service.terminate()
    service.wait(60)
"""

RAY = """
import neuclust

if __name__ == "__main__":
    tasks = neuclust.tasks(["linucb"], "clusters", rounds=3, seeds=range(2))
    print([record.rounds for record in neuclust.play(tasks, engine="ray", workers=1)])
"""

GYM = """
import gymnasium
from gymnasium.utils.env_checker import check_env
import neuclust.doors.gym

env = gymnasium.make("neuclust/clusters-v0", slate_size=3, horizon=5, arms_per_round=20)
check_env(env.unwrapped, skip_render_check=True)
env.reset(seed=0)
for _ in range(5):
    *_, truncated, info = env.step(env.action_space.sample())
print(truncated, sorted(info)[:2])
"""

MLFLOW = """
import neuclust
from neuclust.doors.mlflow.sweeps import MlflowSink
from neuclust.doors.mlflow.tracking import Tracking

tracking = Tracking.opened("sqlite:///mlflow.db", "neuclust")
sink = MlflowSink(tracking, "small", print)
tasks = neuclust.tasks(["linucb"], "clusters", rounds=3, seeds=range(2))
for task, record in zip(tasks, neuclust.play(tasks), strict=True):
    sink.send(task.key, record)
sink.close()
print(len(list(tracking.runs({"neuclust.kind": "run"}))))
"""

DOCS = """
import subprocess, sys
from pathlib import Path

Path("site").mkdir()
Path("site/conf.py").write_text(
    'project = "a page"\\nextensions = ["myst_nb", "sphinx_design", "sphinx_copybutton"]\\n'
    'html_theme = "pydata_sphinx_theme"\\nnb_execution_raise_on_error = True\\n')
Path("site/index.md").write_text(
    "---\\nfile_format: mystnb\\nkernelspec: {name: python3}\\n---\\n# A page that runs\\n\\n```{code-cell} python\\n"
    "import neuclust\\nprint(neuclust.build_policy('linucb', dim=2, slate_size=1, seed=0) is not None, 6 * 7)\\n```\\n")
words = [sys.executable, "-m", "sphinx", "-W", "-q", "site", "html"]
done = subprocess.run(words, capture_output=True, text=True)
assert done.returncode == 0, done.stdout + done.stderr
print("True 42" in Path("html/index.html").read_text())
"""

TRIALS = {
    "core": (CORE, "[3]\n"),
    "lab": (LAB, "neuclust 0.2.0\n"),
    "serve": (SERVE, "3 live\n"),
    "ray": (RAY, "[3, 3]\n"),
    "gym": (GYM, "True ['arm_rewards', 'arrival']\n"),
    "mlflow": (MLFLOW, "2\n"),
    "docs": (DOCS, "True\n"),
}  # by extra: the program and what it prints

# Commands of an environment that lacks what they need: the words, and the extra that their sentence names.
LACKING: dict[str, list[tuple[str, str]]] = {
    "core": [("--help", "lab"), ("policies", "lab"), ("serve", "lab")],
    "lab": [
        ("serve --port 0", "serve"),
        ("keys list", "serve"),
        ("sweep small.toml --out r --engine ray --quiet", "ray"),
        ("sweep small.toml --out m --engine inline --quiet --mlflow sqlite:///m.db", "mlflow"),
    ],
    "serve": [
        ("report .", "lab"),
        ("sweep small.toml --quiet", "lab"),
        ("tune --env clusters --rounds 2 --quiet", "lab"),
        ("shop --requests 2 --out shop --quiet", "lab"),
        ("run --env clusters --rounds 2 --policy linucb --quiet --plot a.png", "lab"),
    ],
}
# Modules that name their extra when they are imported, or when they are used.
NAMES = {
    "import neuclust.client": ("httpx", "serve"),
    "import neuclust.doors.gym": ("gymnasium", "gym"),
    "from neuclust.doors.mlflow.tracking import Tracking; Tracking.opened('sqlite:///m.db', 'x')": ("mlflow", "mlflow"),
    "from neuclust import play, tasks; list(play(tasks(['linucb'], 'clusters', rounds=3), engine='ray'))": (
        "ray",
        "ray",
    ),
    "import neuclust; neuclust.Recommender('items.parquet', 'id')": ("polars", "lab"),
}
OF = {name: (name,) for name in TRIALS} | {"all": ("lab", "gym", "mlflow")}
