"""Side-by-side measurements: ours and the peer's (or the plain way) in one process, interleaved, medians."""

from bursar.bench.harness import BENCHES, Case, bench_case, cases_of

__all__ = ["BENCHES", "Case", "bench_case", "cases_of"]
