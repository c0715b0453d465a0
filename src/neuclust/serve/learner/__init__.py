"""The learner: folds the logs of a store into models, one process at a time, and publishes versions of them."""
