import Synchronization
import Testing
import TokenVaultPlatform

@Suite struct ParallelTests {
    private struct Refusal: Error, Equatable { let part: Int }

    @Test(arguments: [0, 1, 9, 10, 11, 1_000, 1_003]) func aPipelineTakesEveryPartInOrder(_ count: Int) {
        var taken: [Int] = []
        Parallel.pipeline(count, each: 10) {
            Array($0)
        } take: {
            taken += $0
        }
        #expect(taken == Array(0..<count))
    }

    @Test func aPipelineThrowsTheFirstErrorInItsOrder() {
        let underWay = Atomic(0)
        var taken = 0
        let outcome = Result { () throws(Refusal) in
            try Parallel.pipeline(1_000, each: 1) { (range) throws(Refusal) -> Int in
                underWay.wrappingAdd(1, ordering: .relaxed)
                defer { underWay.wrappingSubtract(1, ordering: .relaxed) }
                if range.lowerBound >= 500 { throw Refusal(part: range.lowerBound) }
                return range.lowerBound
            } take: { (_) throws(Refusal) in
                taken += 1
            }
        }
        #expect(outcome.failure == Refusal(part: 500))
        #expect(taken == 500)
        #expect(underWay.load(ordering: .relaxed) == 0)
    }

    @Test func whoTakesMayStopAPipeline() {
        let outcome = Result { () throws(Refusal) in
            try Parallel.pipeline(1_000, each: 1) { (range) throws(Refusal) -> Int in
                range.lowerBound
            } take: { (part) throws(Refusal) in
                if part == 7 { throw Refusal(part: part) }
            }
        }
        #expect(outcome.failure == Refusal(part: 7))
    }
}

extension Result {
    fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
