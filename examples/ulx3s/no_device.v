/* A chip without an accelerator: no registers answer, and memory is left alone. */
`default_nettype none

module uaccel_device (
    input  wire        clk, reset,
    input  wire        psel, penable, pwrite,
    input  wire [15:0] paddr,
    input  wire [31:0] pwdata,
    output wire [31:0] prdata,
    output wire        pready,
    output wire        asks, we,
    output wire [29:0] adr,
    output wire [31:0] given,
    output wire [3:0]  sel,
    input  wire        ack, refused,
    input  wire [31:0] word
);
    assign {prdata, pready, asks, we, adr, given, sel} = {32'd0, 1'b1, 68'd0};
endmodule

`default_nettype wire
