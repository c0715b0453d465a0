"""The recommender behind HTTP: an append-only log, a learner that folds it into a model, an API and a page."""
