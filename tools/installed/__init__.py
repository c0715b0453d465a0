"""Clean virtual environments: the wheel installed with its extras, measured and tried."""
