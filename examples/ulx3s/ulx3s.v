/* The pins of a ULX3S, and its clock of 25 MHz. */
`default_nettype none

module ulx3s #(parameter FIRMWARE = "firmware.hex") (
    input  wire       clk_25mhz,
    input  wire       ftdi_txd, /* which the FPGA receives */
    output wire       ftdi_rxd,
    input  wire       fire1,
    output wire [1:0] led,
    output wire       wifi_gpio0
);
    chip #(.CLOCKS_PER_BIT(217), .FIRMWARE(FIRMWARE)) chip (
        .clk(clk_25mhz), .restart(fire1), .rx(ftdi_txd), .tx(ftdi_rxd), .busy(led[0])
    );
    assign led[1] = 1'b1;
    assign wifi_gpio0 = 1'b1; /* or else the ESP32 restarts the board */
endmodule

`default_nettype wire
