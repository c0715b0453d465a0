"""The quantities of the paper's analysis, computed: kernels, dimensions, bounds, assumptions, trajectories."""
