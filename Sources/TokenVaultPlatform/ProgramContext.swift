internal import CLinux
internal import Glibc
package import SystemPackage

/// What a program was started with, and its end.
package enum ProgramContext {
    /// The arguments behind the program's name; `nil` when one of them is not UTF-8, which Swift's own
    /// `CommandLine.arguments` would repair without a word. Without `/proc`, these are missing there.
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
        /// Not set, or set to nothing.
        case absent
        /// Its value.
        case text(String)
        /// Its value is not UTF-8.
        case notText
    }

    /// The environment variable `name`.
    package static func variable(_ name: String) -> Variable {
        guard let value = getenv(name), value[0] != 0 else { return .absent }
        return text(value).map { .text($0) } ?? .notText
    }

    /// The path that the environment variable `name` has, which need not be UTF-8; `nil` when it is not set, or set to nothing.
    package static func path(_ name: String) -> FilePath? {
        guard let value = getenv(name), value[0] != 0 else { return nil }
        return FilePath(platformString: value)
    }

    /// The whole environment, `NAME=value` each, for a program that is the person's own; what is not UTF-8 is left out.
    package static var environment: [String] {
        var variables: [String] = []
        var next = clinux_environment()
        while let current = next, let variable = current.pointee {
            if let text = text(variable) { variables.append(text) }
            next = current + 1
        }
        return variables
    }

    /// Where this program's file is (`/proc/self/exe`); `nil` when that cannot be told.
    package static var executable: FilePath? {
        var buffer = [CChar](repeating: 0, count: 4_097)
        guard readlink("/proc/self/exe", &buffer, buffer.count - 1) > 0 else { return nil }
        return FilePath(platformString: buffer)
    }

    /// Becomes another program (`execv`). Returns only by throwing why it does not.
    package static func become(_ program: FilePath, _ arguments: [String]) throws(SystemFailure) -> Never {
        var words = ([program.string] + arguments).map { strdup($0) }
        words.append(nil)
        _ = program.withPlatformString { execv($0, words) }
        let reason = Errno(rawValue: errno)
        for word in words { free(word) }
        throw SystemFailure(reason, "execv")
    }

    /// `path` from the root, as the directory that the program is in has it (`getcwd`).
    package static func absolute(_ path: FilePath) -> FilePath {
        guard path.isRelative, let current = getcwd(nil, 0) else { return path }
        defer { free(current) }
        return FilePath(platformString: current).pushing(path)
    }

    /// `path` from the root, with the links that lead there followed as far as they go (`readlink`); what is missing is taken as
    /// it is written.
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
                // As many as the kernel follows.
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

    /// Leaves the directory that the program was started in, which may be gone or unmounted while it runs (`chdir`).
    package static func leaveDirectory() { _ = chdir("/") }

    /// Ends the program with `status`.
    package static func end(_ status: CInt) -> Never { exit(status) }

    private static func text(_ pointer: UnsafePointer<CChar>) -> String? {
        String(validatingCString: pointer)
    }
}
