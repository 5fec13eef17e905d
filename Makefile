# `make crawl URL=https://example.com` and `make test`: each sets up .venv by itself when it is missing or setup.cfg or pyproject.toml has changed.
# Needed: Python >= 3.11 with pip, make, and a package index.

PYTHON ?= python3
BIN = .venv/bin
export URL
# Without what was compiled each process of the tests would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

help:  ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## */  make \1\t/p' Makefile | expand -t 20

crawl: .venv/ready  ## URL=https://example.com: crawl the site into items.jsonl; without URL: crawl the demo site
	@if [ -n "$$URL" ]; then $(BIN)/scrapy crawl site -a "url=$$URL" -O items.jsonl; else $(BIN)/scrapy demo --crawl; fi

# More at once than there are cores: many tests wait for a server or a clock.
TESTS = pytest -n 4 --dist worksteal

test: style  ## every check, and the tests but for what takes long (its end says what)
	@$(MAKE) --no-print-directory --jobs=2 types quick

PHASES = set-up lint test-in-full test-oldest fuzz-briefly

test-all: editors  ## every test in full, the tests with the oldest dependencies, and a minute of fuzzing, with the same inputs each time
	@set -e; trap 'printf "$$times"' EXIT; for phase in $(PHASES); do \
		begin=$$(date +%s); \
		$(MAKE) --no-print-directory $$phase; \
		times="$$times$$(($$(date +%s) - begin)) s: $$phase\n"; \
	done

set-up: .venv/ready-for-engines .venv/compiled .venv-oldest/ready-to-test .venv/code-server/ready

test-in-full: .venv/compiled .venv/ready-for-engines
	$(BIN)/$(TESTS) --all

fuzz-briefly: .venv/ready-to-test
	$(BIN)/python tests/fuzz/run.py --minutes 1 --seed every-change

# What the tests of editors/, of completion, of captures by other programs, and of examples/cluster,
# take that pip cannot install.
editors:
	@command -v nvim >/dev/null && command -v emacs >/dev/null && command -v npm >/dev/null && command -v wget >/dev/null && command -v curl >/dev/null && command -v fish >/dev/null && command -v zsh >/dev/null && \
	command -v docker-compose >/dev/null && command -v systemd-analyze >/dev/null || \
		{ echo "make test-all needs editors, shells and wget: apt-get install neovim emacs-nox elpa-eglot npm wget curl fish zsh docker-compose systemd" >&2; exit 1; }

VSIX = dist
EXTENSION = editors/vscode

vsix:  ## the extension for Visual Studio Code, as dist/comity-VERSION.vsix
	mkdir -p $(VSIX)
	cd $(EXTENSION) && npm ci --no-audit --no-fund && npm run package -- --out $(abspath $(VSIX))/

# Visual Studio Code as a server, for the test of its extension. Version 4.100 is the last for Node.js 20.
# Its own scripts would download programs that the test does not need. Only argon2 has to be compiled.
CODE_SERVER = .venv/code-server
NPM_INSTALL = npm install --ignore-scripts --no-audit --no-fund --silent

$(CODE_SERVER)/ready: | .venv/bin/python
	$(NPM_INSTALL) --prefix $(CODE_SERVER) code-server@4.100.3
	cd $(CODE_SERVER)/node_modules/code-server/lib/vscode && $(NPM_INSTALL) --omit=dev
	cd $(CODE_SERVER) && npm_config_nodedir=$$(dirname $$(dirname $$(command -v node))) npm rebuild --silent argon2
	@touch $@

quick: .venv/compiled
	$(BIN)/$(TESTS)

lint: style types  ## style, types, import rules

style: .venv/ready-to-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/ready-to-test
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/ready-to-test  ## lay out the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: .venv/ready-to-test  ## write the generated parts of README.md and docs/, the JSON Schema of the tag, the list of public names, docs/conformance.md and pictures
	$(BIN)/python -m tests.generated
	$(BIN)/python -m tests.public_api
	$(BIN)/python -m tests.test_conformance
	$(BIN)/python -m tests.authoring.workbench.screenshots
	$(BIN)/python -m tests.report.screenshots

SITE_VERSION = $(shell $(BIN)/python -c 'import comity; print(comity.__version__)')

site: .venv/ready-for-site  ## build docs/ as a site in build/site/VERSION, and the list of all versions there; warnings and broken links are errors
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env -d build/site-doctrees -c docs/site docs build/site/$(SITE_VERSION)
	@echo "Open build/site/index.html."

bench: .venv/ready-to-test  ## measure all that has a target, and print one table, in five minutes
	$(BIN)/python benchmarks

fuzz: .venv/ready-to-fuzz  ## MINUTES=60: look for input that breaks something, on all cores; it goes on where the last run ended
	$(BIN)/python tests/fuzz/run.py --minutes $(or $(MINUTES),60)

mutants: .venv/ready-for-mutants  ## MODULE=comity.policies.answers.combining: make mistakes in it (in all modules) and look whether tests see them
	$(BIN)/python -m tests.mutants.run $(MODULE)

words:  ## FILES=comity/guard: show where the English is hard to read (in all files: leave FILES out)
	@$(PYTHON) tests/words/run.py $(FILES)

SCRAPY_SUITE = $(or $(TMPDIR),/tmp)/comity-scrapy-suite

test-scrapy: .venv-scrapy/ready-to-test  ## the tests of Scrapy itself, with the add-on on: what differs, and why (half an hour at first)
	$(PYTHON) -m pip --python .venv-scrapy/bin/python install --quiet --force-reinstall --no-deps .
	$(CURDIR)/.venv-scrapy/bin/python tests/scrapy_suite/run.py "$(SCRAPY_SUITE)"

test-oldest: .venv-oldest/ready-to-test  ## the tests with the oldest versions that setup.cfg promises
	.venv-oldest/bin/$(TESTS)

# The minor versions of Scrapy that setup.cfg promises.
SCRAPIES = 2.17 2.18 2.19

test-scrapies: $(SCRAPIES:%=.venv-scrapy-%/ready-to-test)  ## the tests of crawls, with each minor version of Scrapy that setup.cfg promises
	@set -e; for version in $(SCRAPIES); do \
		echo "Scrapy $$version"; .venv-scrapy-$$version/bin/$(TESTS) tests/live tests/crawler; \
	done

test-projects: .venv/ready-to-test  ## FOLDER=/tmp/projects: the projects of others in it, as tests/projects/projects.toml describes them, without and with comity
	$(BIN)/python -m tests.projects.run "$(FOLDER)"

floors:  ## the oldest versions that setup.cfg promises, as constraints of pip; what only the tests need promises none
	@sed -n '/^install_requires/,/^.tool:/s/^ *\([a-z0-9.-]*\) >= \([0-9.]*\).*/\1 == \2/p' setup.cfg

release: .venv/ready-to-test  ## TAG=yes: make and try the wheel and the source distribution in dist/, make the tag; it publishes nothing (half an hour)
	$(BIN)/python -m tests.release.run $(if $(TAG),--tag)

clean:  ## remove what was set up
	rm -rf .venv .venv-oldest .venv-scrapy .venv-scrapy-*

# pip works from outside: Debian's Python comes without ensurepip, which a pip inside would need.
%/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "comity needs Python 3.11 or later: say which with \`make PYTHON=python3.12 ...\`" >&2; exit 1; }
	@$(PYTHON) -m pip --version >/dev/null || { echo "comity's set-up needs pip: install it for $(PYTHON)" >&2; exit 1; }
	$(PYTHON) -m venv --clear --without-pip $*

# The tests of html5lib for trees of HTML are in the source distribution of tinyhtml5.
TREE_TESTS = $(@D)/bin/pip download --quiet --no-deps --no-binary tinyhtml5 --dest $(@D)/tree-tests 'tinyhtml5 == 2.1.0'

# pip 25.1 is the first that installs the dependency groups of pyproject.toml. -qq: pip warns about
# every editable installation.
%/bin/pip: | %/bin/python
	$(PYTHON) -m pip --python $*/bin/python install --quiet 'pip >= 25.1'

.venv/ready: setup.cfg pyproject.toml | .venv/bin/pip
	$(BIN)/pip install -qq --editable .
	@touch $@

.venv/ready-to-test: setup.cfg pyproject.toml | .venv/bin/pip
	$(BIN)/pip install -qq --editable . --group test
	$(TREE_TESTS)
	@touch .venv/ready $@

.venv/ready-for-site: setup.cfg pyproject.toml | .venv/bin/pip
	$(BIN)/pip install -qq --editable . --group site
	@touch .venv/ready $@

# The tests are compiled once, and Hypothesis finds out once which characters there are, before each worker would do it all.
.venv/compiled: .venv/ready-to-test $(shell find tests -name '*.py')
	@$(BIN)/pytest --collect-only -qq >/dev/null || $(BIN)/pytest --collect-only -qq
	@$(BIN)/python -c 'from hypothesis.strategies import text; text().validate()'
	@touch $@

# Ray, Dask, Spark with a Java of its own, and a store of objects: a gigabyte.
.venv/ready-for-engines: setup.cfg pyproject.toml | .venv/bin/pip
	$(BIN)/pip install -qq --editable . --group test-all
	$(TREE_TESTS)
	@touch .venv/ready .venv/ready-to-test $@

# Without atheris, which not every Python has, fuzzing goes by chance.
.venv/ready-to-fuzz: .venv/ready-to-test
	-$(BIN)/pip install -qq --editable . --group fuzz
	@touch $@

.venv/ready-for-mutants: .venv/ready-to-test
	$(BIN)/pip install -qq --editable . --group mutants
	@touch $@

.venv-oldest/ready-to-test: setup.cfg pyproject.toml Makefile | .venv-oldest/bin/pip
	$(MAKE) --silent floors > .venv-oldest/floors.txt
	.venv-oldest/bin/pip install -qq --editable . --group test --constraint .venv-oldest/floors.txt
	$(TREE_TESTS)
	@touch $@

.venv-scrapy/ready-to-test: setup.cfg pyproject.toml Makefile tests/scrapy_suite/requirements.txt | .venv-scrapy/bin/python
	$(PYTHON) -m pip --python .venv-scrapy/bin/python install --quiet pip . -r tests/scrapy_suite/requirements.txt
	@touch $@

.venv-scrapy-%/ready-to-test: setup.cfg pyproject.toml Makefile | .venv-scrapy-%/bin/pip
	.venv-scrapy-$*/bin/pip install -qq --editable . --group test 'scrapy == $*.*'
	$(TREE_TESTS)
	@touch $@

.PHONY: help crawl test test-all set-up test-in-full fuzz-briefly editors quick style types test-oldest test-scrapy test-scrapies test-projects floors lint format docs site bench fuzz mutants words release clean vsix
.PRECIOUS: %/bin/python %/bin/pip
