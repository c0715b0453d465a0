"""What the pages name exists: links, files, tests, functions, options and dependencies."""

import fnmatch
import importlib
import re
import tomllib
from pathlib import Path

import pytest
from site_pages import DOCS as FOLDER
from site_pages import anchors, contents

from neuclust.configuration import keys, with_setting
from neuclust.registry import POLICIES, policy_config
from tools.site import command_pages

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "neuclust"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*DOCS, *sorted(ROOT.glob("*.md"))]
BELOW = ["kernels", "models", "slates", "theory", "policies", "environments", "data"]
ROOMS = [*BELOW, "logs", "recommender", "experiment", "evaluation", "analysis", "report"]
MODULES = [*ROOMS, *["core", "randomness", "configuration", "persistence", "registry"]]
FOLDERS = tuple(
    f"{folder}/" for folder in ["src", "tests", "docs", "benchmarks", "tools", "experiments", "cli", *ROOMS]
)


def relative(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def codes(page: Path) -> list[str]:
    """Everything between single backticks."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def link_targets(page: Path) -> list[str]:
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    return [target for target in targets if not re.match(r"[a-z]+:|#", target)]


def named_files(page: Path) -> list[str]:
    """`path/to/file` and `path/to/file.py::test`, wherever one begins with a folder of ours."""
    return [code for code in codes(page) if code.startswith(FOLDERS) and not re.search(r"[\s<>=]", code)]


def exists(path: str) -> bool:
    """In the repository or in the package; a pattern must match something."""
    return any(next(folder.glob(path.rstrip("/")), None) is not None for folder in (ROOT, PACKAGE))


def has_test(reference: str) -> bool:
    """`tests/room/test_file.py::test_name` names a function of that file."""
    path, _, name = reference.partition("::")
    file = ROOT / path
    return file.is_file() and re.search(rf"^def {re.escape(name)}\(", file.read_text(), re.MULTILINE) is not None


def find_object(name: str) -> object:
    """The object behind a dotted name inside the package; AttributeError or ImportError where there is none."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module("neuclust." + ".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            found = getattr(found, attribute)
        return found
    raise ImportError(name)


def named_functions(page: Path) -> list[str]:
    return [code for code in codes(page) if re.fullmatch(rf"({'|'.join(MODULES)})(\.\w+)+", code) and "/" not in code]


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_relative_links_lead_somewhere(page: Path) -> None:
    missing = [target for target in link_targets(page) if not (page.parent / target.partition("#")[0]).exists()]
    assert missing == []


def anchors_on(page: Path) -> set[str]:
    """What `#…` may name on a page, with the parts that are made when the site is built."""
    made = anchors(page)
    if (name := page.relative_to(FOLDER).as_posix()) == "reference/policies.md":
        made |= {f"policy-{policy}" for policy in POLICIES}
    elif name == "reference/commands.md":
        made |= {command_pages.anchor(words) for words in command_pages.commands()}
    return made


@pytest.mark.parametrize("page", DOCS, ids=relative)
def test_anchors_of_links_are_headings(page: Path) -> None:
    """Fails when a link names a section that its page does not have."""
    found = re.findall(r"\]\(([^)\s#:]*)#([^)\s]+)\)", prose(page))
    meant = [((page.parent / target).resolve() if target else page, anchor) for target, anchor in found]
    assert [f"{relative(on)}#{anchor}" for on, anchor in meant if anchor not in anchors_on(on)] == []


def test_every_page_is_in_the_navigation() -> None:
    """Fails when no table of contents leads from the start page to a page."""
    reached, open_pages = set(), {FOLDER / "index.md"}
    while open_pages:
        page = open_pages.pop()
        reached.add(page)
        open_pages |= contents(page) - reached
    assert [relative(page) for page in DOCS if page not in reached] == []


@pytest.mark.parametrize("page", DOCS, ids=relative)
def test_named_files_and_tests_exist(page: Path) -> None:
    references = named_files(page)
    assert [name for name in references if "::" not in name and not exists(name)] == []
    assert [name for name in references if "::" in name and not has_test(name)] == []


@pytest.mark.parametrize("page", DOCS, ids=relative)
def test_named_functions_exist(page: Path) -> None:
    missing = []
    for name in named_functions(page):
        if name.endswith((".py", ".json", ".md")):
            continue
        try:
            find_object(name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []


def equation_rows() -> list[str]:
    lines = prose(ROOT / "docs" / "equations.md").splitlines()
    return [line for line in lines if line.startswith("|") and "`" in line]


def test_every_equation_has_a_function_and_a_test() -> None:
    rows = equation_rows()
    assert len(rows) > 30
    assert [row for row in rows if not re.search(rf"`({'|'.join(MODULES)})\.", row)] == []
    assert [row for row in rows if not re.search(r"`tests/[^`]+::test_\w+`", row)] == []


def test_options_of_the_readings_exist() -> None:
    page = (ROOT / "docs" / "decisions" / "0005-readings-of-the-paper.md").read_text()
    last_cells = [line.rstrip("|").rpartition("|")[2] for line in page.splitlines() if line.startswith("|")]
    options = [name for cell in last_cells for name in re.findall(r"`([^`]+)`", cell)]
    config = policy_config("neuclust-online", "paper")
    known = [f".{key}" for key in keys(config)]
    assert len(options) > 20
    for option in options:
        name, _, value = option.partition("=")
        meant = fnmatch.filter(known, f"*.{name}")
        assert meant, option
        for key in meant if value else ():
            assert with_setting(config, key.removeprefix("."), value) != config, option


def test_every_dependency_has_its_reason() -> None:
    page = (ROOT / "docs" / "decisions" / "0006-dependencies.md").read_text()
    table = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    wanted = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(n for e in extras for n in e),
    ]
    names = {re.split(r"[<>=\[ ;]", requirement)[0] for requirement in wanted} - {"neuclust"}  # its own extras
    assert [name for name in sorted(names) if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", table)] == []


def test_decisions_are_numbered_and_have_three_parts() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert all(f"**{part}.**" in text for part in ("Context", "Decision", "Consequence")), page.name
