"""matrix8 in Amaranth: `python -m matrix8_rtl` writes its Verilog."""
