"""Side-by-side measurements: ours and the peer's (or the plain way) in one process, interleaved, medians."""

from experiments.bench.harness import GROUPS, Case, bench_case, cases_of

__all__ = ["GROUPS", "Case", "bench_case", "cases_of"]
