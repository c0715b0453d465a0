"""A policy and an environment that neuclust does not ship."""
