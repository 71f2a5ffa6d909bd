import SystemPackage
import Testing
import TokenVaultPlatform

@Suite struct PathTests {
    @Test(arguments: ["", "/", "a", "a/b", "/a", "/a/b/c.vault", "..", "../a", "//a//b/", "a/.", "/é/ü"])
    func theParentIsThatOfTheLibrary(path: String) {
        let path = FilePath(path)
        #expect(path.parent == path.removingLastComponent())
    }

    @Test func whatIsNoTextHasItsParent() {
        let path = FilePath(bytes: Array("/a/".utf8) + [0xff, 0xfe] + Array("/b".utf8))
        #expect(path.parent == path.removingLastComponent())
        #expect(path.parent.bytes == Array("/a/".utf8) + [0xff, 0xfe])
    }
}
