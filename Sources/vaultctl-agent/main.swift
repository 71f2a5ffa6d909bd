import TokenVaultPlatform
import VaultAgentServer

// The order matters: first fill the standard descriptors, so that no opened file takes one. Then forbid core
// files and backtraces, which would contain secrets.
StandardStream.prepare()
ProcessFacts.forbidDumps()
ProcessFacts.forbidBacktraces()
ProgramContext.end(AgentProgram.run(ProgramContext.arguments()))
