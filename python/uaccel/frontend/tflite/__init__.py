"""The front end for TFLite."""
