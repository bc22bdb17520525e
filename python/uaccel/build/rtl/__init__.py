"""Makes devices of accelerators' own Verilog: simulated by Verilator, or synthesised for an FPGA."""
