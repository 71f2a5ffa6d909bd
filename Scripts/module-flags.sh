# Sourced from the package's root. Sets `module_flags`, with which the compiler and its tools find the modules of the
# full build, and the C modules behind them.
[[ -e .build-all/debug/Modules/TokenVault.swiftmodule ]] || { echo "run make build-all first" >&2; exit 1; }
module_flags=(-I .build-all/debug/Modules)
for map in Sources/CSodium/module.modulemap .build-all/debug/*.build/module.modulemap \
    .build-all/checkouts/*/Sources/*/include/module.modulemap
do module_flags+=(-Xcc "-fmodule-map-file=$map"); done
