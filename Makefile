# What a person would otherwise type. `make help` lists the targets.

SHELL := /bin/bash
PREFIX ?= /usr/local
STRIP ?= strip
.DEFAULT_GOAL := help
.PHONY: help run test test-begins test-all remaining-tests remaining-states remaining-readers model build build-all release install uninstall soundness format docs bench bench-thresholds bench-peers latency \
	keyring-limits crash-test fuzz vectors clean

# One scratch path and one set of flags per configuration: other flags would build everything anew. What `build` and `test` use
# is what a bare `swift build` and `swift test` use.
# `build-all` has the modules optimized whose tests look at so many states of a file that it saves most of their time:
# `optimized` in Package.swift says which. The other modules build as fast as for debugging.
# The trait is on there: TokenVaultOAuth is built and tested with the rest, and what the programs link is what it is for those
# who build all of them.
# The index of symbols takes an eighth of the time, but without it SwiftPM finds no tests and fails.
optimized := TOKENVAULT_OPTIMIZED=1
whole := --scratch-path .build-all --traits OAuth
# Lazy binding leaves copies of vector registers on the stack, where the tests that search memory find them.
usual_tests = TOKENVAULT_TESTS=usual $(if $(ONE_BUILD),$(optimized_tests),LD_BIND_NOW=1 Scripts/test.sh swift test --skip-build --disable-xctest)
optimized_tests = LD_BIND_NOW=1 $(optimized) Scripts/test.sh swift test $(whole) --skip-build --disable-xctest
all_tests = TOKENVAULT_TESTS=all $(optimized_tests)
remaining_tests = TOKENVAULT_TESTS=remaining $(optimized_tests)
# Static links of the standard library warn about `mktemp` with any linker but lld.
# libstdc++, which the Swift runtime uses, is linked statically too where the compiler has it: a fifth of the time of a
# command was the loading of it. The linker takes what it finds in this directory before the shared library.
release_libraries := $(CURDIR)/.build-release/libraries
# So is what unwinds C++. Nothing looks for a symbol in the programs, so none is exported. Packed relocations are a hundredth of
# the bytes that the loader reads; glibc knows them since 2.36. Together a sixth of the time of a command.
packed_relocations := $(if $(shell getconf GNU_LIBC_VERSION 2>/dev/null | awk '$$2 >= 2.36'),-Xlinker -z -Xlinker pack-relative-relocs)
# What Scripts/soundness/hardening.sh checks. Package.swift cannot say it: a package with such flags is no dependency.
hardening := --disable-local-rpath -Xlinker -z -Xlinker now -Xcc -fstack-protector-strong \
	$(if $(filter x86_64,$(shell uname -m)),-Xcc -fcf-protection)
release := $(hardening) --scratch-path .build-release --traits OAuth --configuration release --static-swift-stdlib -Xswiftc -use-ld=lld \
	-Xswiftc -Xclang-linker -Xswiftc -static-libgcc -Xlinker --no-export-dynamic $(packed_relocations) \
	-Xlinker -L$(release_libraries)
vaultctl := .build-release/release/vaultctl

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(vaultctl).stamp ## Build vaultctl and walk through storing, reading and deleting a token
	@Scripts/demo.sh $(vaultctl)

# Tests that wait for one another go first; those that keep every core busy for minutes come one kind after the other.
# With ONE_BUILD=1 the tests run in the build of `test-all`. That saves one of two clean builds.
test: test-begins $(if $(ONE_BUILD),build-all,build) ## Build and run the tests but those that take minutes and OAuth's; FILTER=REGEX for some
	@Scripts/setup --tests
ifdef FILTER
	$(usual_tests) --filter '$(FILTER)'
else
	$(usual_tests) --skip '^FileVaultTests'
	$(usual_tests) --filter '^FileVaultTests'
	@mv $(tested).begun $(tested)
endif

# What is changed while it is built or tested counts as changed.
test-begins:
	@mkdir -p .build && touch $(tested).begun

# What `make test` passed with the same files passes again: it need not run twice.
tested := .build/tested.stamp
$(tested): Makefile $(shell find Package.swift Sources Tests Scripts Examples -type f)
	@$(MAKE) --no-print-directory test FILTER= ONE_BUILD=$(ONE_BUILD)

endurance := ^AgentTests.(LoadTests|SuddenEndTests)
ifdef FILTER
test-all: build-all ## Run every test, with OAuth, endurance, every state of a crash, the model; FILTER=REGEX for some
	@Scripts/setup --tests
	$(all_tests) --filter '$(FILTER)'
else
test-all: $(tested) remaining-tests model
endif

# The targets whose tests have no more to do than in `make test`. Those of wiping have: the optimizer may remove a wipe.
complete := ^(BackendConformanceTests|PublicAPITests|TokenVaultAuthTests|TokenVaultTests)
remaining-tests: build-all
	@Scripts/setup --tests
	$(remaining_tests) --skip '^FileVaultTests' --skip '$(endurance)' --skip '$(complete)'
	$(remaining_tests) --filter '$(endurance)'
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target remaining-states remaining-readers

# 108,000 random steps of three devices; `.ci/run` takes a third of them.
FRESHNESS_RUNS ?= 12
remaining-states:
	TOKENVAULT_FRESHNESS_RUNS=$(FRESHNESS_RUNS) TOKENVAULT_FRESHNESS_STEPS=9000 $(remaining_tests) --filter '^FileVaultTests'

# In one thread, so they run beside the others.
remaining-readers:
	.build-oauth-server/bin/python -B -m unittest discover --start-directory Tests/Support/OAuth
	VAULTCTL=$(CURDIR)/.build-all/debug/vaultctl /usr/bin/python3 -B -m unittest discover --start-directory Tests/IndependentReader

build: ## Build everything but OAuth with its tests, for debugging
	@Scripts/setup
	swift build --build-tests

build-all: ## Build everything with its tests and OAuth, optimized where that saves time
	@Scripts/setup
	$(optimized) swift build $(whole) --build-tests

release: $(vaultctl).stamp $(vaultctl)-benchmark.stamp $(vaultctl)-oauth.stamp ## Build vaultctl and its programs, for `install`

# Stamps, so that `sudo make install` after `make release` copies and builds nothing. What signs in and what measures are built
# by themselves: the first brings an HTTP client and TLS, minutes of building that nobody else waits for.
$(vaultctl).stamp $(vaultctl)-benchmark.stamp $(vaultctl)-oauth.stamp: $(shell find Package.swift Sources)
$(vaultctl).stamp:
	@Scripts/setup
	@mkdir -p $(release_libraries)
	@library=$$(clang -print-file-name=libstdc++.a); [[ ! -e $$library ]] || ln -sf "$$library" $(release_libraries)/
	swift build $(release) --product vaultctl
	swift build $(release) --product vaultctl-agent
	@touch $@

$(vaultctl)-benchmark.stamp: $(vaultctl).stamp
	swift build $(release) --product vaultctl-benchmark
	@touch $@

$(vaultctl)-oauth.stamp: $(vaultctl).stamp
	swift build $(release) --product vaultctl-oauth
	@touch $@

install: release ## Install vaultctl, its programs and units, completions and manual under PREFIX (/usr/local), below DESTDIR
	@STRIP='$(STRIP)' DESTDIR='$(DESTDIR)' Scripts/install.sh $(vaultctl) '$(PREFIX)'

uninstall: ## Remove what `install` installed
	@DESTDIR='$(DESTDIR)' Scripts/install.sh --remove '$(PREFIX)'

soundness: build-all release ## Check format, warnings, imports, linkage, documentation, README, versions
	@Scripts/setup --tests
	@Scripts/soundness/all.sh

format: ## Format the sources in place
	swift format --in-place --parallel --recursive Package.swift Sources Tests Fuzzing Benchmarks

docs: build-all ## Build the documentation into .build-all/documentation
	@Scripts/docs.sh .build-all/documentation
	@Scripts/docs.sh .build-all/documentation-auth Sources/TokenVaultAuth/Documentation.docc TokenVaultAuth
	@Scripts/docs.sh .build-all/documentation-oauth Sources/TokenVaultOAuth/Documentation.docc TokenVaultOAuth
	@Scripts/docs.sh .build-all/documentation-testing Sources/TokenVaultTesting/Documentation.docc TokenVaultTesting
	@Scripts/docs.sh .build-all/documentation-agent Sources/VaultAgent/Documentation.docc VaultAgent

# FILTER='file-.*' measures some operations only.
benchmarks := .build-benchmarks/release
build_benchmarks = swift build --configuration release --package-path Benchmarks --scratch-path .build-benchmarks
bench: $(vaultctl).stamp ## Measure each operation against its thresholds and what has a limit against that; FILTER=REGEX
	@Scripts/setup --benchmarks
	$(build_benchmarks)
	@FILTER='$(FILTER)' Scripts/private-desktop.sh Scripts/bench.sh $(benchmarks) $(vaultctl)

bench-thresholds: $(vaultctl).stamp ## Write the thresholds of the operations anew, as they are on this machine; FILTER=REGEX for some
	@Scripts/setup --benchmarks
	$(build_benchmarks)
	@FILTER='$(FILTER)' Scripts/private-desktop.sh Scripts/bench.sh $(benchmarks) $(vaultctl) update

bench-peers: $(vaultctl).stamp ## Measure side by side with libsecret, gnome-keyring, secret-tool, pass and Python's keyring; ITEMS='200'
	@Scripts/setup --peers
	$(build_benchmarks)
	@Scripts/private-desktop.sh Scripts/bench-peers.sh $(benchmarks) $(vaultctl) .build-benchmarks/peers/bin/python $(ITEMS)

latency: release ## Measure the vault and a gnome-keyring by size and draw the README's picture anew; takes some minutes
	@Scripts/setup --tests
	Scripts/measure-latency.sh $(vaultctl)

keyring-limits: build-all ## Hold the keyring on the disk against the check of thousands of items, which takes it minutes
	@Scripts/setup --tests
	TOKENVAULT_KEYRING_LIMITS=1 $(all_tests) --filter '^DesktopTests.KeyringSizeTests'

crash-test: release ## Kill a real writer thousands of times and check what is left; ROUNDS=10000 for more
	@Scripts/crash-test.sh $(vaultctl)
	$(optimized) swift build $(whole) --product CrashWriter
	.build-all/debug/CrashWriter $(or $(ROUNDS),2000)

fuzz: release ## Fuzz the parsers of the vault's format and the agent's protocol for a minute each; SECONDS_TO_RUN=600 for longer
	@Scripts/fuzz.sh $(vaultctl)

model: ## Check the model of freshness: what it promises holds, and each way to break it has a counter-example
	@Scripts/model.sh

vectors: ## Write the test vectors of the file format anew; the same bytes come of it
	@Scripts/setup --tests
	/usr/bin/python3 -B Tests/Vectors/make.py

clean: ## Remove what was built
	rm -rf .build .build-all .build-release .build-fuzz .build-benchmarks .build-model .build-oauth-server
