# Sourced from the package's root: sets `module_flags`, with which the compiler and its tools find the modules
# of the debug build, and the C modules that those were built against.
[[ -e .build/debug/Modules/TokenVault.swiftmodule ]] || { echo "run make build first" >&2; exit 1; }
module_flags=(-I .build/debug/Modules)
for map in Sources/CSodium/module.modulemap .build/debug/*.build/module.modulemap \
    .build/checkouts/*/Sources/*/include/module.modulemap
do module_flags+=(-Xcc "-fmodule-map-file=$map"); done
