"""Commands and processes that tests start, and the tiers of tests."""
