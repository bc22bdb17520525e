/* The pins of a ULX3S, and its clock of 25 MHz, or half of that for a chip that is too slow for it. */
`default_nettype none

module ulx3s #(
    parameter CLOCKS_PER_BIT = 217,
    parameter HALF = 0,
    parameter FIRMWARE = "firmware.hex"
) (
    input  wire       clk_25mhz,
    input  wire       ftdi_txd, /* which the FPGA receives */
    output wire       ftdi_rxd,
    input  wire       fire1,
    output wire [1:0] led,
    output wire       wifi_gpio0
);
    reg half_clock = 0;
    always @(posedge clk_25mhz) half_clock <= !half_clock;

    chip #(.CLOCKS_PER_BIT(CLOCKS_PER_BIT), .FIRMWARE(FIRMWARE)) chip (
        .clk(HALF ? half_clock : clk_25mhz), .restart(fire1), .rx(ftdi_txd), .tx(ftdi_rxd), .busy(led[0])
    );
    assign led[1] = 1'b1;
    assign wifi_gpio0 = 1'b1; /* or else the ESP32 restarts the board */
endmodule

`default_nettype wire
