// swift-tools-version: 6.2
import PackageDescription

// A separate package, so that users of TokenVault never resolve dependencies that only benchmarks need.
let package = Package(
    name: "Benchmarks",
    dependencies: [
        .package(name: "TokenVault", path: "..", traits: ["OAuth"]),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        // Without the allocation counter: it has to be preloaded, and reads 0 for the allocations of
        // libsodium and the runtime.
        .package(url: "https://github.com/ordo-one/benchmark", from: "1.38.1", traits: []),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0", traits: []),
    ],
    targets: [
        .target(
            name: "BareCryptography", cSettings: [.unsafeFlags(["-O2"])],
            linkerSettings: [.linkedLibrary("sodium")]),
        .target(name: "Measuring", swiftSettings: [.swiftLanguageMode(.v6)]),
        // The plugin of ordo-one/benchmark looks for targets below a folder named Benchmarks.
        .executableTarget(
            name: "Operations",
            dependencies: [
                .product(name: "Benchmark", package: "benchmark"),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "TokenVault", package: "TokenVault"),
                .product(name: "VaultAgent", package: "TokenVault"),
            ],
            path: "Benchmarks/Operations",
            swiftSettings: [.swiftLanguageMode(.v6)],
            plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")]
        ),
        .executableTarget(
            name: "agent-benchmark",
            dependencies: [
                "Measuring",
                .product(name: "TokenVault", package: "TokenVault"),
                .product(name: "VaultAgent", package: "TokenVault"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        .executableTarget(
            name: "auth-benchmark",
            dependencies: [
                "Measuring",
                .product(name: "TokenVault", package: "TokenVault"),
                .product(name: "TokenVaultAuth", package: "TokenVault"),
                .product(name: "TokenVaultOAuth", package: "TokenVault"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        .executableTarget(
            name: "command-benchmark",
            dependencies: ["Measuring"],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        .executableTarget(
            name: "memory-benchmark",
            dependencies: ["Measuring", .product(name: "TokenVault", package: "TokenVault")],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        .executableTarget(
            name: "peers-benchmark",
            dependencies: [
                "BareCryptography", "Measuring",
                .product(name: "TokenVault", package: "TokenVault"),
                .product(name: "VaultAgent", package: "TokenVault"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        .executableTarget(
            name: "scale-benchmark",
            dependencies: [
                "Measuring",
                .product(name: "TokenVault", package: "TokenVault"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        .executableTarget(
            name: "vault-benchmark",
            dependencies: [
                "BareCryptography", "Measuring",
                .product(name: "TokenVault", package: "TokenVault"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
        .executableTarget(
            name: "verify-benchmark",
            dependencies: [
                "BareCryptography", "Measuring",
                .product(name: "TokenVault", package: "TokenVault"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: [.swiftLanguageMode(.v6)]
        ),
    ]
)
