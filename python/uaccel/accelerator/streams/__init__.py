"""Plans layers as command streams for machines that have queues of commands."""
