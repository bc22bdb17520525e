/* Custom instructions (R-type on CUSTOM_0), answered in the same cycle. funct3 0: the sum of the products of four signed
 * bytes each. Any other function gives 0. */
`default_nettype none

module uaccel_cfu (
    input  wire        command_valid,
    output wire        command_ready,
    input  wire [9:0]  function_id, /* funct7, funct3 */
    input  wire [31:0] left,
    input  wire [31:0] right,
    output wire        response_valid,
    input  wire        response_ready,
    output wire [31:0] result
);
    wire signed [15:0] product0 = $signed(left[7:0]) * $signed(right[7:0]);
    wire signed [15:0] product1 = $signed(left[15:8]) * $signed(right[15:8]);
    wire signed [15:0] product2 = $signed(left[23:16]) * $signed(right[23:16]);
    wire signed [15:0] product3 = $signed(left[31:24]) * $signed(right[31:24]);
    wire signed [17:0] sum = product0 + product1 + product2 + product3;

    assign command_ready = response_ready;
    assign response_valid = command_valid;
    assign result = function_id[2:0] == 3'd0 ? {{14{sum[17]}}, sum} : 32'd0;
endmodule

`default_nettype wire
