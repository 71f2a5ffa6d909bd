// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [.swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny")]

let package = Package(
    name: "Examples",
    dependencies: [.package(name: "tokenvault", path: "..")],
    targets: [
        // The storage protocols that SDKs publish, by their shapes: an app imports the SDK in place of this.
        .target(name: "Shapes", swiftSettings: settings),
        // TokenVault dropped into each of them.
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
