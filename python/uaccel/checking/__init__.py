"""Whether an accelerator's descriptions agree: random layers through what it means, through its model, through its RTL."""
