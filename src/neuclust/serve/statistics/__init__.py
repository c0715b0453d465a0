"""What the page shows: numbers of one recommender, kept while its log is folded, with intervals."""
