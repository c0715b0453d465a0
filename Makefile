# Each target sets up what it needs; `make run` and `make test` are the two to know.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.docs-installed
# 3.2.2 is whole in itself; version 4 fetches parts of its fonts from elsewhere while a page is read
MATHJAX := 3.2.2
# one more than the two cores the tests are made for: those of the command line wait for processes
WORKERS ?= 3

# compiled modules are kept, whatever the environment says: each of many processes would compile them anew
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test lint bench docs soak serve-demo serve-cluster venv clean

run: $(STAMP)
	$(BIN)/neuclust shop --requests 1500 --out results/shop
	$(BIN)/neuclust run --env movielens-twin --rounds 300 --seeds 3 --out results/demo \
		--policy neuclust --policy cn-ucb --policy auto --policy linucb --policy uniform --policy oracle
	$(BIN)/neuclust reproduce movielens --quick --out results/reproduction
	@echo "The paper's tables and figures made again, on one page: results/reproduction/index.html"

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not soak" -n $(WORKERS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m benchmarks

soak: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m soak --timeout=7200 --counts docs/records/reliability.json
	$(BIN)/python -m tools.reliability_page

docs: $(DOCS_STAMP) build/npm/$(MATHJAX)
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build --jobs auto --fail-on-warning --keep-going --quiet docs build/docs/html
	@echo "The documentation: build/docs/html/index.html"

serve-demo: $(STAMP)
	$(BIN)/python -m tools.serve_demo

serve-cluster: $(STAMP)
	$(BIN)/python -m tools.serve_demo --cluster

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# not all of `dev`: a machine that only builds the pages installs what they run
$(DOCS_STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

build/npm/$(MATHJAX):
	@command -v npm > /dev/null || { echo "make docs: expected npm, which brings MathJax, and it is not installed" >&2; exit 1; }
	rm -rf build/npm
	mkdir -p build/npm/static
	npm pack --silent --pack-destination build/npm mathjax@$(MATHJAX)
	tar --extract --gzip --file build/npm/mathjax-$(MATHJAX).tgz --directory build/npm package/es5
	mv build/npm/package/es5 build/npm/static/mathjax
	touch $@

clean:
	rm -rf $(VENV) results build dist .mypy_cache .ruff_cache .pytest_cache
