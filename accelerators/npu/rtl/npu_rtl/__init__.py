"""npu in Amaranth: `python -m npu_rtl NAME=NUMBER ...` writes its Verilog."""
