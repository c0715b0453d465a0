"""From a request to a decision: the thread that owns the models, what serves, and the answer."""
