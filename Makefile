# Everything that people and CI do with this repository.  `make help` lists it.

PYTHON ?= python3
VENV ?= .venv
# what to pass on: make lab ARGS=--no-browser
ARGS ?=

# hundreds of interpreters are started here; none should compile modules that another has compiled
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
# Jupyter does not start as root unless told so; in a container everybody is root
ROOTED := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: help lab update test test-ci test-all quick check notebooks site imgs bench gpu hangs lock lint format repeat mutants kills attack torch release own clean

help: ## what there is to make
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:[^#]*## /: /'

$(VENV)/.course: requirements.lock requirements.txt pyproject.toml headcount/pyproject.toml tools/install.py
	$(PYTHON) tools/install.py $(VENV)
	@touch $@
	@# once, and not at every start: it takes as long as JupyterLab itself
	$(BIN)/python -m grader doctor

$(VENV)/.tools: $(VENV)/.course
	$(PYTHON) tools/install.py $(VENV) --tools
	@touch $@

lab: $(VENV)/.course ## open the course in JupyterLab
	@# the server's root is the course: chapters show ../imgs, and link to ../docs
	$(BIN)/python -m tools.lab $(ROOTED) --ServerApp.root_dir="$(CURDIR)" \
		--LabApp.default_url=/lab/tree/notebooks/00_ranks_and_groups.ipynb $(ARGS)

update: $(VENV)/.course ## take a newer edition of the course with git, and keep your answers
	$(BIN)/python -m tools.update

test: $(VENV)/.tools ## the tests that a change has to pass, in about eight minutes on two cores
	$(BIN)/python -m tools.tests $(ARGS)

test-ci: $(VENV)/.tools ## the tests that CI runs, with all solved notebooks, in about fifty minutes on two cores
	$(BIN)/python -m tools.tests --ci

test-all: $(VENV)/.tools ## every test and every known answer: what runs each night
	$(BIN)/python -m tools.tests --all

quick: $(VENV)/.tools ## the tests that are nearest to what you have changed, in about a minute
	$(BIN)/python -m tools.quick $(ARGS)

check: $(VENV)/.tools ## prove the course: solutions pass, stubs and wrong answers do not
	$(BIN)/python -m tools.course $(ARGS)

repeat: $(VENV)/.tools ## the same twenty times, to find a verdict that differs
	$(BIN)/python -m tools.course --repeat 20 $(ARGS)

mutants: $(VENV)/.tools ## break every solution in every way; is each one rejected?
	$(BIN)/python -m tools.mutants $(ARGS)

torch: ## the engine's tests on another torch: make torch VERSION=2.11, or nightly
	$(PYTHON) -m tools.versions $(VERSION) $(ARGS)

kills: $(VENV)/.tools ## kill the grading of a class twenty times; does it end the same?
	$(BIN)/python -m tools.kills $(ARGS)

attack: $(VENV)/.tools ## hand in attacks, each anew; does one succeed? make attack ARGS="--seconds 1200"
	$(BIN)/python -m tools.attack $(ARGS)

notebooks: $(VENV)/.tools ## build both editions of the chapters: make notebooks ARGS=02
	$(BIN)/python -m tools.notebooks $(ARGS)

site: $(VENV)/.tools ## build the course as web pages, in build/site/html
	$(BIN)/python -m tools.site $(ARGS)

imgs: $(VENV)/.tools ## draw the pictures
	$(BIN)/python -m tools.pictures $(ARGS)

bench: $(VENV)/.tools ## measure what there are goals for, the ring beside gloo, memory
	$(BIN)/python -m benchmarks $(ARGS)
	$(BIN)/python -m benchmarks.ring
	$(BIN)/python -m benchmarks.memory

gpu: $(VENV)/.tools ## run on GPUs what needs them, and write docs/recorded/<device>.md
	$(BIN)/python -m tools.gpu $(ARGS)

hangs: $(VENV)/.tools ## programs that hang or disagree: is each found, and no right one accused?
	cd headcount && $(abspath $(BIN))/python -m benchmarks.hangs $(ARGS)

lock: ## write requirements.lock anew, with the newest versions that work together; needs uv
	uv pip compile --quiet --universal --upgrade --python-version 3.10 --all-extras \
		--no-annotate --no-header --no-emit-package gather-round --no-emit-package headcount \
		--output-file $@.tmp requirements.txt headcount/pyproject.toml pyproject.toml
	(sed '/^[^#]/,$$d' requirements.lock; cat $@.tmp) > $@.new
	mv $@.new requirements.lock
	rm $@.tmp

lint: $(VENV)/.tools ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.sizes

format: $(VENV)/.tools ## mend the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

release: ## build what is published and try it; ARGS=--tag tags it as well. It pushes nothing
	$(PYTHON) -m tools.release $(ARGS)

own: ## fill in the address of the repository on GitHub: make own OWNER=name/repository
	@$(PYTHON) -m tools.address $(OWNER)

clean: ## remove the environment and caches
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
