import ProgramSupport
import TokenVaultPlatform

// In this order: no descriptor that a file could fall into, then no core file and no backtrace with what we come to know.
StandardStream.prepare()
ProcessFacts.forbidDumps()
ProcessFacts.forbidBacktraces()
ProgramContext.end(Program().run(ProgramContext.arguments()).rawValue)
