"""An accelerator's own Verilog as its device."""
