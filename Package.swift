// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("ExistentialAny"),
    // An async call runs where its caller runs, so that reading an unlocked vault needs no hop between
    // threads.
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    // In our own builds only: SwiftPM silences the warnings of dependencies.
    .treatAllWarnings(as: .error),
]

/// Rooms that may not touch memory by hand: the compiler reports every unsafe use in them.
let safeSettings = settings + [.strictMemorySafety()]

/// The modules whose tests look at so many states of a file that optimization saves most of their time. The other modules gain
/// less from it than it takes to build them. SwiftPM refuses a dependency with such a flag, so the flag is there only for builds
/// that ask for it by the environment, as the Makefile does.
let optimized: [SwiftSetting] =
    Context.environment["TOKENVAULT_OPTIMIZED"] == nil ? [] : [.unsafeFlags(["-O"])]

/// Our own C looks at the lengths of buffers, which takes an optimized build.
let checkedC: [CSetting] = [.define("_FORTIFY_SOURCE", to: "2", .when(configuration: .release))]

/// What signing in over the network needs. Without the trait none of it is resolved, loaded or built.
///
/// The trait is on wherever all of the programs are built, so what `vaultctl-benchmark` alone counts with comes with it too: a
/// trait of its own would be one more flag of every build, and without any, SwiftPM has every client resolve it. What it costs
/// those who take TokenVaultOAuth is one checkout, of which they build nothing.
let withOAuth: TargetDependencyCondition? = .when(traits: ["OAuth"])
let networking: [Target.Dependency] = [
    .product(name: "AsyncHTTPClient", package: "async-http-client", condition: withOAuth),
    .product(name: "NIOCore", package: "swift-nio", condition: withOAuth),
    .product(name: "NIOHPACK", package: "swift-nio-http2", condition: withOAuth),
    .product(name: "NIOHTTP1", package: "swift-nio", condition: withOAuth),
    .product(name: "NIOHTTPCompression", package: "swift-nio-extras", condition: withOAuth),
    .product(name: "NIOHTTP2", package: "swift-nio-http2", condition: withOAuth),
    .product(name: "NIOPosix", package: "swift-nio", condition: withOAuth),
    .product(name: "NIOSSL", package: "swift-nio-ssl", condition: withOAuth),
]
let signatures: [Target.Dependency] = [
    .product(name: "Crypto", package: "swift-crypto", condition: withOAuth),
    .product(name: "JWTKit", package: "jwt-kit", condition: withOAuth),
]

let package = Package(
    name: "TokenVault",
    products: [
        .library(name: "TokenVault", targets: ["TokenVault"]),
        .library(name: "TokenVaultAuth", targets: ["TokenVaultAuth"]),
        .library(name: "TokenVaultOAuth", targets: ["TokenVaultOAuth"]),
        .library(name: "TokenVaultTesting", targets: ["TokenVaultTesting"]),
        .library(name: "VaultAgent", targets: ["VaultAgent"]),
        .executable(name: "vaultctl", targets: ["vaultctl"]),
        .executable(name: "vaultctl-agent", targets: ["vaultctl-agent"]),
        .executable(name: "vaultctl-benchmark", targets: ["vaultctl-benchmark"]),
        .executable(name: "vaultctl-oauth", targets: ["vaultctl-oauth"]),
    ],
    traits: [
        .default(enabledTraits: []),
        .trait(
            name: "OAuth",
            description:
                "TokenVaultOAuth: OAuth 2 and OpenID Connect over AsyncHTTPClient and jwt-kit; and what vaultctl-benchmark needs."
        ),
    ],
    dependencies: [
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0", traits: []),
        .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
    ],
    targets: [
        .systemLibrary(
            name: "CSodium",
            pkgConfig: "libsodium",
            providers: [.apt(["libsodium-dev"])]
        ),
        .target(name: "CLinux", cSettings: checkedC),
        // Declares the functions of libsecret that it calls, and looks them up at run time. Nothing links to
        // libsecret.
        .target(name: "CSecret", cSettings: checkedC),
        .target(
            name: "TokenVaultCrypto",
            dependencies: ["CSodium", "TokenVaultPlatform"],
            swiftSettings: settings + optimized
        ),
        .target(
            name: "TokenVaultPlatform",
            dependencies: [
                "CLinux",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: settings + optimized
        ),
        // What all storages share: vocabulary, errors, rules, the memory backend, migration of items, choice
        // of a storage.
        .target(
            name: "TokenVaultCore",
            dependencies: [
                "TokenVaultCrypto",
                "TokenVaultPlatform",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: safeSettings + optimized
        ),
        .target(
            name: "TokenVaultFile",
            dependencies: [
                "TokenVaultCore",
                "TokenVaultCrypto",
                "TokenVaultPlatform",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: safeSettings + optimized
        ),
        .target(
            name: "TokenVaultDesktop",
            dependencies: [
                "CSecret",
                "TokenVaultCore",
                "TokenVaultCrypto",
                "TokenVaultPlatform",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: safeSettings
        ),
        // The module that users import: the three modules above under one name.
        .target(
            name: "TokenVault",
            dependencies: ["TokenVaultCore", "TokenVaultDesktop", "TokenVaultFile"],
            swiftSettings: safeSettings
        ),
        .target(
            name: "TokenVaultTesting",
            dependencies: ["TokenVault"],
            swiftSettings: safeSettings
        ),
        // The token lifecycle on top of any storage. Sends no requests itself: the caller passes in the
        // sender.
        .target(
            name: "TokenVaultAuth",
            dependencies: [
                "TokenVault", "TokenVaultCrypto", "TokenVaultPlatform",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: safeSettings
        ),
        // OAuth 2 and OpenID Connect; empty without the trait.
        .target(
            name: "TokenVaultOAuth",
            dependencies: [
                "TokenVault", "TokenVaultAuth", "TokenVaultCrypto", "TokenVaultPlatform",
                .product(name: "SystemPackage", package: "swift-system"),
            ] + networking + signatures,
            swiftSettings: safeSettings
        ),
        // The protocol between the agent and its clients, and the client.
        .target(
            name: "VaultAgent",
            dependencies: [
                "TokenVault", "TokenVaultCrypto", "TokenVaultPlatform",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: safeSettings
        ),
        // What the programs share: terminals, child programs, exit statuses, failures, printing.
        .target(
            name: "ProgramSupport",
            dependencies: [
                "CLinux", "TokenVault", "TokenVaultPlatform",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: settings
        ),
        // The agent itself. The program is only an entry point, so that tests can run an agent of their own.
        .target(
            name: "VaultAgentServer",
            dependencies: [
                "TokenVault", "TokenVaultDesktop", "TokenVaultPlatform", "VaultAgent",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: safeSettings
        ),
        .executableTarget(
            name: "vaultctl-agent",
            dependencies: [
                "ProgramSupport", "TokenVault", "TokenVaultPlatform", "VaultAgent", "VaultAgentServer",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: safeSettings
        ),
        // The protocol between vaultctl and the program that sends its requests.
        .target(
            name: "OAuthWire",
            dependencies: ["TokenVaultAuth"],
            swiftSettings: safeSettings
        ),
        // Sends requests for vaultctl; without the trait, only reports that it cannot.
        .executableTarget(
            name: "vaultctl-oauth",
            dependencies: [
                "OAuthWire", "TokenVault", "TokenVaultAuth", "TokenVaultOAuth", "TokenVaultPlatform",
            ],
            swiftSettings: safeSettings
        ),
        // Measures the backends for `vaultctl benchmark`, which becomes this program. Without the trait, only
        // reports that it cannot.
        .executableTarget(
            name: "vaultctl-benchmark",
            dependencies: [
                "ProgramSupport", "TokenVault", "TokenVaultCrypto", "TokenVaultPlatform", "VaultAgent",
                .product(name: "Histogram", package: "hdrhistogram-swift", condition: withOAuth),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: safeSettings
        ),
        .executableTarget(
            name: "vaultctl",
            dependencies: [
                "OAuthWire",
                "ProgramSupport",
                "TokenVault",
                "TokenVaultAuth",
                "TokenVaultPlatform",
                "VaultAgent",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: safeSettings
        ),
        .testTarget(
            name: "TokenVaultCryptoTests",
            dependencies: ["TokenVaultCrypto", "TokenVaultPlatform"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TokenVaultTests",
            dependencies: ["TokenVault", "TokenVaultCore", "TokenVaultPlatform", "TokenVaultCrypto"],
            swiftSettings: settings
        ),
        // Selects the tests of a run.
        .target(name: "TestLanes", path: "Tests/Support/TestLanes", swiftSettings: settings),
        .executableTarget(
            name: "VaultWorker",
            dependencies: ["TokenVault", .product(name: "SystemPackage", package: "swift-system")],
            path: "Tests/Support/VaultWorker",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "CrashWriter",
            dependencies: ["TokenVault", .product(name: "SystemPackage", package: "swift-system")],
            path: "Tests/Support/CrashWriter",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "MemoryProbe",
            dependencies: [
                "TokenVault", "TokenVaultCrypto", "TokenVaultPlatform", "VaultAgent", "VaultAgentServer",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            path: "Tests/Support/MemoryProbe",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "VaultObserver",
            dependencies: ["TokenVault", .product(name: "SystemPackage", package: "swift-system")],
            path: "Tests/Support/VaultObserver",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "ForkProbe",
            dependencies: [
                "TokenVault", "TokenVaultCrypto", "TokenVaultPlatform",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            path: "Tests/Support/ForkProbe",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "LimitProbe",
            dependencies: [
                "HookedStorage", "TokenVault", "TokenVaultPlatform",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            path: "Tests/Support/LimitProbe",
            swiftSettings: settings
        ),
        .target(
            name: "HookedStorage",
            dependencies: [
                "TokenVault", "TokenVaultPlatform", .product(name: "SystemPackage", package: "swift-system"),
            ],
            path: "Tests/Support/HookedStorage",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "VaultMover",
            dependencies: [
                "HookedStorage", "TokenVault", .product(name: "SystemPackage", package: "swift-system"),
            ],
            path: "Tests/Support/VaultMover",
            swiftSettings: settings
        ),
        .testTarget(
            name: "FileVaultTests",
            dependencies: [
                "TestLanes",
                "VaultWorker", "VaultObserver", "CrashWriter", "VaultMover", "MemoryProbe", "ForkProbe",
                "LimitProbe", "HookedStorage",
                "TokenVault", "TokenVaultCore", "TokenVaultFile", "TokenVaultPlatform", "TokenVaultCrypto",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: settings + optimized
        ),
        .testTarget(
            name: "AgentTests",
            dependencies: [
                "TestLanes",
                "vaultctl", "vaultctl-agent",
                "ProgramSupport", "TokenVault", "TokenVaultPlatform", "TokenVaultTesting", "VaultAgent",
                "VaultAgentServer",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "TokenVaultAuthTests",
            dependencies: [
                "HookedStorage", "TokenVault", "TokenVaultAuth", "TokenVaultPlatform",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "BackendConformanceTests",
            dependencies: [
                "TokenVault", "TokenVaultTesting",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "KeyringWorker",
            dependencies: ["TokenVault"],
            path: "Tests/Support/KeyringWorker",
            swiftSettings: settings
        ),
        .testTarget(
            name: "DesktopTests",
            dependencies: [
                "TestLanes",
                "KeyringWorker", "vaultctl", "vaultctl-benchmark",
                "TokenVault", "TokenVaultDesktop", "TokenVaultPlatform", "TokenVaultCrypto",
                "TokenVaultTesting",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "PublicAPITests",
            dependencies: ["TokenVault", "VaultAgent"],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "RefreshWorker",
            dependencies: [
                "HookedStorage", "TokenVault", "TokenVaultAuth", "TokenVaultOAuth", "TokenVaultPlatform",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            path: "Tests/Support/RefreshWorker",
            swiftSettings: settings
        ),
        .testTarget(
            name: "TokenVaultOAuthTests",
            dependencies: [
                "TestLanes",
                "CLinux", "RefreshWorker", "TokenVault", "TokenVaultAuth", "TokenVaultCrypto",
                "TokenVaultOAuth",
                "ProgramSupport", "TokenVaultPlatform", "vaultctl", "vaultctl-agent", "vaultctl-oauth",
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "CryptoExtras", package: "swift-crypto", condition: withOAuth),
                .product(name: "Logging", package: "swift-log", condition: withOAuth),
            ] + networking + signatures,
            swiftSettings: settings
        ),
        .testTarget(
            name: "VaultctlTests",
            dependencies: [
                "TestLanes",
                "OAuthWire", "ProgramSupport", "TokenVault", "TokenVaultAuth", "TokenVaultPlatform",
                "vaultctl",
                "vaultctl-agent",
                "vaultctl-benchmark",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings
        ),
    ]
)
