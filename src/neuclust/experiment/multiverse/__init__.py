"""The paper under every reading: a declared grid of readings, played by any engine, a line of JSON per run."""
