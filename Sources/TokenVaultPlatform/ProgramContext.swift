internal import CLinux
internal import Glibc
package import SystemPackage

/// The arguments and environment of a program, and its exit.
package enum ProgramContext {
    /// Returns the arguments after the program's name, or `nil` when one is not UTF-8. Swift's own
    /// `CommandLine.arguments` would silently repair it, and is empty without `/proc`.
    package static func arguments() -> [String]? {
        var texts: [String] = []
        let count = clinux_argument_count()
        for index in 1..<max(1, count < 0 ? CommandLine.argc : count) {
            let kept =
                count < 0
                ? CommandLine.unsafeArgv[Int(index)].map { UnsafePointer($0) } : clinux_argument(index)
            guard let argument = kept else { break }
            guard let text = text(argument) else { return nil }
            texts.append(text)
        }
        return texts
    }

    /// An environment variable.
    package enum Variable: Equatable, Sendable {
        /// Not set, or empty.
        case absent
        /// The value.
        case text(String)
        /// A value that is not UTF-8.
        case notText
    }

    /// Returns the environment variable `name`.
    package static func variable(_ name: String) -> Variable {
        guard let value = getenv(name), value[0] != 0 else { return .absent }
        return text(value).map { .text($0) } ?? .notText
    }

    /// Returns the path in the environment variable `name`, which need not be UTF-8, or `nil` when it is not
    /// set or empty.
    package static func path(_ name: String) -> FilePath? {
        guard let value = getenv(name), value[0] != 0 else { return nil }
        return FilePath(platformString: value)
    }

    /// The whole environment, as `NAME=value` each, for a program of the user. Entries that are not UTF-8 are
    /// left out.
    package static var environment: [String] {
        var variables: [String] = []
        var next = clinux_environment()
        while let current = next, let variable = current.pointee {
            if let text = text(variable) { variables.append(text) }
            next = current + 1
        }
        return variables
    }

    /// The path of this program's file (`/proc/self/exe`); `nil` when it cannot be determined.
    package static var executable: FilePath? {
        var buffer = [CChar](repeating: 0, count: 4_097)
        guard readlink("/proc/self/exe", &buffer, buffer.count - 1) > 0 else { return nil }
        return FilePath(platformString: buffer)
    }

    /// Replaces this program by another (`execv`). Returns only by throwing the error.
    package static func become(_ program: FilePath, _ arguments: [String]) throws(SystemFailure) -> Never {
        var words = ([program.string] + arguments).map { strdup($0) }
        words.append(nil)
        _ = program.withPlatformString { execv($0, words) }
        let reason = Errno(rawValue: errno)
        for word in words { free(word) }
        throw SystemFailure(reason, "execv")
    }

    /// Returns `path` as an absolute path, relative to the current directory (`getcwd`).
    package static func absolute(_ path: FilePath) -> FilePath {
        guard path.isRelative, let current = getcwd(nil, 0) else { return path }
        defer { free(current) }
        return FilePath(platformString: current).pushing(path)
    }

    /// Returns `path` as an absolute path, with links followed as far as they lead (`readlink`). Missing
    /// components are kept as written.
    package static func resolved(_ path: FilePath) -> FilePath {
        var rest = ArraySlice(absolute(path).components)
        var result = FilePath("/")
        var buffer = [CChar](repeating: 0, count: 4_097)
        var links = 0
        while let component = rest.popFirst() {
            switch component.kind {
            case .currentDirectory: continue
            case .parentDirectory: result.removeLastComponent()
            case .regular:
                let next = result.appending(component)
                let count = next.withPlatformString { readlink($0, &buffer, buffer.count - 1) }
                // At most as many links as the kernel follows.
                guard count > 0, links < 40 else {
                    result = next
                    continue
                }
                links += 1
                buffer[count] = 0
                let target = FilePath(platformString: buffer)
                if target.isAbsolute { result = FilePath("/") }
                rest = ArraySlice(Array(target.components) + rest)
            }
        }
        return result
    }

    /// Leaves the initial directory, which may be deleted or unmounted while the program runs (`chdir`).
    package static func leaveDirectory() { _ = chdir("/") }

    /// Ends the program with `status`.
    package static func end(_ status: CInt) -> Never { exit(status) }

    private static func text(_ pointer: UnsafePointer<CChar>) -> String? {
        String(validatingCString: pointer)
    }
}
