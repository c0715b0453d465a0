"""The commands: each module has the records of options and the functions behind them."""
