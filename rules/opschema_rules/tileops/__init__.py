"""TileOPs-style repositories: YAML manifests of operators, Python op classes, TileLang kernels."""
