// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [.swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny")]

let package = Package(
    name: "Examples",
    // For `CrossPlatformStore`: the other targets build on Linux alone.
    platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9)],
    dependencies: [.package(name: "tokenvault", path: "..")],
    targets: [
        // Copies of the storage protocols that SDKs publish: an app imports the SDK instead of this target.
        .target(name: "Shapes", swiftSettings: settings),
        // TokenVault as the storage of each SDK.
        .target(
            name: "StorageAdapters",
            dependencies: ["Shapes", .product(name: "TokenVault", package: "tokenvault")],
            swiftSettings: settings),
        // An app with a sign-in screen over `AuthContainer`: `swift run --package-path Examples SignInApp`.
        .executableTarget(
            name: "SignInApp",
            dependencies: [
                .product(name: "TokenVault", package: "tokenvault"),
                .product(name: "TokenVaultAuth", package: "tokenvault"),
            ],
            swiftSettings: settings),
        // A package for Linux and Apple's platforms: TokenVault on Linux alone, the Keychain elsewhere.
        .target(
            name: "CrossPlatformStore",
            dependencies: [
                .product(
                    name: "TokenVault", package: "tokenvault", condition: .when(platforms: [.linux]))
            ],
            swiftSettings: settings),
        .testTarget(
            name: "CrossPlatformStoreTests",
            dependencies: [
                "CrossPlatformStore",
                .product(
                    name: "TokenVault", package: "tokenvault", condition: .when(platforms: [.linux])),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "SignInAppTests",
            dependencies: [
                "SignInApp", .product(name: "TokenVault", package: "tokenvault"),
                .product(name: "TokenVaultAuth", package: "tokenvault"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "StorageAdaptersTests",
            dependencies: [
                "Shapes", "StorageAdapters", .product(name: "TokenVault", package: "tokenvault"),
            ],
            swiftSettings: settings),
    ]
)
