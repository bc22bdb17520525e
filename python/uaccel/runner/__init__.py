"""One run from model to verdict."""
