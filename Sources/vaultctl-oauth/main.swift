import OAuthWire
import TokenVaultPlatform

// The order matters: first fill the standard descriptors, so that no opened file takes one. Then forbid core
// files and backtraces, which would contain secrets.
StandardStream.prepare()
ProcessFacts.forbidDumps()
ProcessFacts.forbidBacktraces()
#if OAuth
ProgramContext.end(await WorkerProgram.run())
#else
let line = "vaultctl-oauth: built without sign-in support: build it with \"--traits OAuth\"\n"
try? StandardStream.error.write(Array(line.utf8))
try? StandardStream.output.write(Array(#"{"failed":{"_0":{"kind":"notBuilt"}}}"#.utf8) + [0x0a])
ProgramContext.end(8)
#endif
