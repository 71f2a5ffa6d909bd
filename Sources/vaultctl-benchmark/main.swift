import TokenVaultPlatform

// Fills the standard descriptors, so that no opened file takes one. Core files and inspection stay allowed,
// because nothing here is secret. That also keeps `/proc/self/io` readable, which shows how much a store
// writes.
StandardStream.prepare()
ProcessFacts.forbidBacktraces()
#if OAuth
ProgramContext.end(BenchmarkProgram.run(ProgramContext.arguments()))
#else
let line =
    "vaultctl: vaultctl-benchmark was built without its dependencies: build it with \"--traits OAuth\"\n"
try? StandardStream.error.write(Array(line.utf8))
ProgramContext.end(8)
#endif
