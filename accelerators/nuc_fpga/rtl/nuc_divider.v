// Divides in 20 cycles, a bit in each. The divisor is not 0.
module nuc_divider (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        start,
    input  wire [19:0] dividend,
    input  wire [15:0] divisor,
    output wire        idle,
    output wire [19:0] quotient,
    output wire [15:0] remainder
);
    reg [19:0] bits;      // of the dividend, and behind them those of the quotient
    reg [16:0] rest;
    reg [4:0]  left;

    wire [16:0] shifted = {rest[15:0], bits[19]};
    wire        fits = shifted >= {1'b0, divisor};

    assign idle = left == 0;
    assign quotient = bits;
    assign remainder = rest[15:0];

    always @(posedge clk) begin
        if (!rst_n) begin
            left <= 0;
        end else if (start) begin
            bits <= dividend;
            rest <= 0;
            left <= 5'd20;
        end else if (!idle) begin
            bits <= {bits[18:0], fits};
            rest <= fits ? shifted - {1'b0, divisor} : shifted;
            left <= left - 5'd1;
        end
    end
endmodule
