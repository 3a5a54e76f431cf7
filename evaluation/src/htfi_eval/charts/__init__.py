"""Charts and pages of evaluations and benchmarks: one kit, drawn as SVG without a library."""
