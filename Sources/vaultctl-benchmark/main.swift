import TokenVaultPlatform

// No descriptor that a file could fall into. Core files and looks from outside are not forbidden: nothing here is secret,
// and `/proc/self/io` tells how much a store writes.
StandardStream.prepare()
ProcessFacts.forbidBacktraces()
#if OAuth
ProgramContext.end(BenchmarkProgram.run(ProgramContext.arguments()))
#else
let line =
    "vaultctl: vaultctl-benchmark was built without what it counts with: build it with \"--traits OAuth\"\n"
try? StandardStream.error.write(Array(line.utf8))
ProgramContext.end(8)
#endif
