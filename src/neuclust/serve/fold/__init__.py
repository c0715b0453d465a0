"""The recommender as a fold of its log: tables, learned state, what is served, replay and export."""
