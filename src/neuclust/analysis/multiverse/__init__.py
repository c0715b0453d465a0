"""What a paper's result turns on: cells of readings, effects of the readings, and the verdict."""
