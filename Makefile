# The commands of this repository. `make help` lists the targets.

SHELL := /bin/bash
PREFIX ?= /usr/local
STRIP ?= strip
.DEFAULT_GOAL := help
.PHONY: help run test test-begins test-all remaining-tests remaining-states remaining-readers model build build-all release install uninstall dist reproducible deb deb-test soundness format docs bench bench-thresholds bench-peers latency \
	keyring-limits crash-test fuzz vectors clean

# Each configuration has one scratch path and one set of flags, because other flags would build everything again.
# `build` and `test` use those of a bare `swift build` and `swift test`.
# `build-all` optimizes the modules whose tests look at so many states of a file that this saves most of their time:
# `optimized` in Package.swift lists them. The other modules build as fast as for debugging.
# The trait is on there: TokenVaultOAuth is built and tested with the rest, and the programs link the same as in a build
# of all of them.
# The index of symbols takes an eighth of the time, but without it SwiftPM finds no tests and fails.
optimized := TOKENVAULT_OPTIMIZED=1
whole := --scratch-path .build-all --traits OAuth $(if $(ONE_BUILD),-debug-info-format none)
# Lazy binding leaves copies of vector registers on the stack, where the tests that search memory find them.
usual_tests = TOKENVAULT_TESTS=usual $(if $(ONE_BUILD),$(optimized_tests),LD_BIND_NOW=1 Scripts/test.sh swift test --skip-build --disable-xctest)
optimized_tests = LD_BIND_NOW=1 $(optimized) Scripts/test.sh swift test $(whole) --skip-build --disable-xctest
all_tests = TOKENVAULT_TESTS=all $(optimized_tests)
remaining_tests = TOKENVAULT_TESTS=remaining $(optimized_tests)
# Static links of the standard library warn about `mktemp` with any linker but lld.
# The Swift runtime uses libstdc++. It is linked statically too if the compiler has it, because loading it took a fifth
# of a command's time. The linker prefers this directory to the shared library.
release_libraries := $(CURDIR)/.build-release/libraries
# The C++ unwinder is linked statically too. No program looks up symbols in these programs, so they export none. Packed
# relocations are a hundredth of the bytes that the loader reads; glibc supports them since 2.36. Together this saves a
# sixth of a command's time.
packed_relocations := $(if $(shell getconf GNU_LIBC_VERSION 2>/dev/null | awk '$$2 >= 2.36'),-Xlinker -z -Xlinker pack-relative-relocs)
# The flags that Scripts/soundness/hardening.sh checks. They cannot be in Package.swift: a package with such flags
# cannot be a dependency.
hardening := --disable-local-rpath -Xlinker -z -Xlinker now -Xcc -fstack-protector-strong \
	$(if $(filter x86_64,$(shell uname -m)),-Xcc -fcf-protection)
# Nothing in the programs depends on the directory that they are built in: the same packages, no name of a directory, and no
# build ID. `install` would strip the debug information anyway. The compiler's choice of registers depends on the addresses
# of its own data. The same addresses in each run make the programs equal in most builds, but not yet in all.
same_addresses := $(shell setarch -R true 2>/dev/null && echo setarch -R)
reproducible_flags := -debug-info-format none -Xswiftc -file-prefix-map -Xswiftc $(CURDIR)=. -Xcc -ffile-prefix-map=$(CURDIR)=. \
	-Xlinker --build-id=none
release := $(hardening) $(reproducible_flags) --force-resolved-versions --scratch-path .build-release --traits OAuth --configuration release --static-swift-stdlib -Xswiftc -use-ld=lld \
	-Xswiftc -Xclang-linker -Xswiftc -static-libgcc -Xlinker --no-export-dynamic $(packed_relocations) \
	-Xlinker -L$(release_libraries)
vaultctl := .build-release/release/vaultctl

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(vaultctl).stamp ## Build vaultctl and walk through storing, reading and deleting a token
	@Scripts/demo.sh $(vaultctl)

# Tests that wait for one another run first. Tests that keep every core busy for minutes run after them.
# With ONE_BUILD=1 the tests run in the build of `test-all`. That saves one of two clean builds.
test: test-begins $(if $(ONE_BUILD),build-all,build) ## Build and run the tests, except slow ones and those of OAuth; FILTER=REGEX for some
	@Scripts/setup --tests
ifdef FILTER
	$(usual_tests) --filter '$(FILTER)'
else
	$(usual_tests) --skip '^FileVaultTests'
	$(usual_tests) --filter '^FileVaultTests'
	@mv $(tested).begun $(tested)
endif

# A file that changes during the build or the tests counts as changed.
test-begins:
	@mkdir -p .build && touch $(tested).begun

# Tests that `make test` passed with the same files need not run twice.
tested := .build/tested.stamp
$(tested): Makefile $(shell find Package.swift Sources Tests Scripts Examples -type f)
	@$(MAKE) --no-print-directory test FILTER= ONE_BUILD=$(ONE_BUILD)

endurance := ^AgentTests.(LoadTests|SuddenEndTests)
ifdef FILTER
test-all: build-all ## Run every test, with OAuth, endurance, all crash states, the model; FILTER=REGEX for some
	@Scripts/setup --tests
	$(all_tests) --filter '$(FILTER)'
else
test-all: $(tested) remaining-tests model
endif

# The test targets for which `make test` is complete. The tests of wiping run again: the optimizer may remove a wipe.
complete := ^(BackendConformanceTests|PublicAPITests|TokenVaultAuthTests|TokenVaultTests)
remaining-tests: build-all
	@Scripts/setup --tests
	$(remaining_tests) --skip '^FileVaultTests' --skip '$(endurance)' --skip '$(complete)'
	$(remaining_tests) --filter '$(endurance)'
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target remaining-states remaining-readers $(if $(ONE_BUILD),release)

# 108,000 random steps of three devices; `.ci/run` takes a third of them.
FRESHNESS_RUNS ?= 12
remaining-states:
	TOKENVAULT_FRESHNESS_RUNS=$(FRESHNESS_RUNS) TOKENVAULT_FRESHNESS_STEPS=9000 $(remaining_tests) --filter '^FileVaultTests'

# These run in one thread, so they run beside the others.
remaining-readers:
	.build-oauth-server/bin/python -B -m unittest discover --start-directory Tests/Support/OAuth
	VAULTCTL=$(CURDIR)/.build-all/debug/vaultctl /usr/bin/python3 -B -m unittest discover --start-directory Tests/IndependentReader

build: ## Build everything with its tests for debugging, except OAuth
	@Scripts/setup
	swift build --build-tests

build-all: ## Build everything with its tests and OAuth, optimized where that saves time
	@Scripts/setup
	$(optimized) swift build $(whole) --build-tests

release: $(vaultctl).stamp $(vaultctl)-benchmark.stamp $(vaultctl)-oauth.stamp ## Build vaultctl and its programs, for `install`

# Stamps, so that `sudo make install` after `make release` copies and builds nothing. The programs that sign in and that
# measure are built separately: the first needs an HTTP client and TLS, which take minutes to build.
$(vaultctl).stamp $(vaultctl)-benchmark.stamp $(vaultctl)-oauth.stamp: Makefile Scripts/pins.py Scripts/tested-versions.txt $(shell find Package.swift Sources)
$(vaultctl).stamp:
	@Scripts/setup
	@/usr/bin/python3 -I -B Scripts/pins.py write
	@mkdir -p $(release_libraries)
	@library=$$(clang -print-file-name=libstdc++.a); [[ ! -e $$library ]] || ln -sf "$$library" $(release_libraries)/
	$(same_addresses) swift build $(release) --product vaultctl
	$(same_addresses) swift build $(release) --product vaultctl-agent
	@touch $@

$(vaultctl)-benchmark.stamp: $(vaultctl).stamp
	$(same_addresses) swift build $(release) --product vaultctl-benchmark
	@touch $@

$(vaultctl)-oauth.stamp: $(vaultctl).stamp
	$(same_addresses) swift build $(release) --product vaultctl-oauth
	@touch $@

install: release ## Install vaultctl, its programs, units, completions and manual: PREFIX (/usr/local), DESTDIR
	@STRIP='$(STRIP)' DESTDIR='$(DESTDIR)' Scripts/install.sh $(vaultctl) '$(PREFIX)'

uninstall: ## Remove what `install` installed
	@DESTDIR='$(DESTDIR)' Scripts/install.sh --remove '$(PREFIX)'

dist: release ## Write a release's archives, bill of materials and checksums into .build-release/dist
	@Scripts/setup --dist
	@Scripts/dist.sh $(vaultctl) .build-release/dist

reproducible: release ## Build all programs in a second directory and compare them byte for byte
	@Scripts/reproducible.sh --self-test
	@PROGRAMS='vaultctl vaultctl-agent vaultctl-oauth vaultctl-benchmark' Scripts/reproducible.sh

deb: release ## Build a Debian package into .build-release/deb
	@Scripts/setup --dist
	@Scripts/deb.sh $(vaultctl) .build-release/deb

deb-test: deb ## Install, use and purge the Debian package in a system of its own; needs root
	@Scripts/deb-test.sh .build-release/deb/*.deb

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
bench: $(vaultctl).stamp ## Measure each operation against its threshold and its limit, if any; FILTER=REGEX
	@Scripts/setup --benchmarks
	$(build_benchmarks)
	@FILTER='$(FILTER)' Scripts/private-desktop.sh Scripts/bench.sh $(benchmarks) $(vaultctl)

bench-thresholds: $(vaultctl).stamp ## Measure the thresholds again on this machine and store them; FILTER=REGEX for some
	@Scripts/setup --benchmarks
	$(build_benchmarks)
	@FILTER='$(FILTER)' Scripts/private-desktop.sh Scripts/bench.sh $(benchmarks) $(vaultctl) update

bench-peers: $(vaultctl).stamp ## Compare with libsecret, gnome-keyring, secret-tool, pass and Python's keyring; ITEMS='200'
	@Scripts/setup --peers
	$(build_benchmarks)
	@Scripts/private-desktop.sh Scripts/bench-peers.sh $(benchmarks) $(vaultctl) .build-benchmarks/peers/bin/python $(ITEMS)

latency: release ## Measure the vault and a gnome-keyring by size, and redraw the README's picture; takes minutes
	@Scripts/setup --tests
	Scripts/measure-latency.sh $(vaultctl)

keyring-limits: build-all ## Run the check of thousands of items with a keyring on the disk; takes minutes
	@Scripts/setup --tests
	TOKENVAULT_KEYRING_LIMITS=1 $(all_tests) --filter '^DesktopTests.KeyringSizeTests'

crash-test: release ## Kill a real writer thousands of times and check the vault after each; ROUNDS=10000 for more
	@Scripts/crash-test.sh $(vaultctl)
	$(optimized) swift build $(whole) --product CrashWriter
	.build-all/debug/CrashWriter $(or $(ROUNDS),2000)

fuzz: release ## Fuzz the parsers of the vault and of the agent's protocol, a minute each; SECONDS_TO_RUN=600
	@Scripts/fuzz.sh $(vaultctl)

model: ## Check the model of freshness: its promises hold, and each broken variant has a counter-example
	@Scripts/model.sh

vectors: ## Write the test vectors of the file format again, with the same bytes
	@Scripts/setup --tests
	/usr/bin/python3 -B Tests/Vectors/make.py

clean: ## Remove all build products
	rm -rf .build .build-all .build-release .build-fuzz .build-benchmarks .build-model .build-oauth-server
