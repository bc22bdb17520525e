"""From a partitioned module to layers with C calls and places in memory."""
