"""Whether an accelerator's descriptions agree: random layers through meaning, through model, through RTL."""
