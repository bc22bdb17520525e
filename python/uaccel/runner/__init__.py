"""Runs models: compile, build, flash, run, measure, and compare with what the model means."""
