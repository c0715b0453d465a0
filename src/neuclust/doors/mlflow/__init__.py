"""MLflow as a place to watch sweeps and learners (docs/doors/mlflow.md); imported with the library itself."""
