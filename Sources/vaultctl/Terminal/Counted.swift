/// Returns a count with its noun: `1 item`, `2 items`.
func counted(_ count: Int, _ one: String) -> String { count == 1 ? "1 \(one)" : "\(count) \(one)s" }
