"""Estimators of what a target policy would have earned: functions of arrays, one contribution per logged slate."""
