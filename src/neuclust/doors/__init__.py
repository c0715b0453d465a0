"""Doors to other tools, each behind an extra: Gymnasium, scikit-learn, MLflow (docs/doors/)."""
