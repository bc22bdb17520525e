// Eight sums of products of four signed bytes each, and TensorFlow Lite's rounding of a sum to int8. All but `finish`
// is answered a cycle later, when the core looks: what came earlier it would keep, and take no command meanwhile.
// `finish` takes one more.
`default_nettype none

module dot4 (
    input  wire        clk,
    input  wire        reset,
    input  wire        cmd_valid,
    output wire        cmd_ready,
    input  wire [9:0]  cmd_payload_function_id, // funct7, funct3
    input  wire [31:0] cmd_payload_inputs_0,
    input  wire [31:0] cmd_payload_inputs_1,
    output wire        rsp_valid,
    input  wire        rsp_ready,
    output wire [31:0] rsp_payload_outputs_0
);
    localparam BEGIN = 0, ADD = 1, LANES = 2, RANGE = 3, FINISH = 4;
    localparam IDLE = 0, MULTIPLIED = 1, ROUNDED = 2;

    wire [31:0] left = cmd_payload_inputs_0, right = cmd_payload_inputs_1;
    wire [2:0]  operation = cmd_payload_function_id[2:0];
    wire [6:0]  which = cmd_payload_function_id[9:3];

    reg [31:0] sums [0:7];
    reg signed [7:0] zero_point, lowest, highest;
    reg [1:0] step;

    wire signed [15:0] product0 = $signed(left[7:0]) * $signed(right[7:0]);
    wire signed [15:0] product1 = $signed(left[15:8]) * $signed(right[15:8]);
    wire signed [15:0] product2 = $signed(left[23:16]) * $signed(right[23:16]);
    wire signed [15:0] product3 = $signed(left[31:24]) * $signed(right[31:24]);
    wire signed [17:0] dot = product0 + product1 + product2 + product3;
    wire [31:0] sum = sums[which[2:0]];
    wire [31:0] added = sum + {{14{dot[17]}}, dot};

    // finish: shifted left and multiplied in the first cycle, halved to 32 bits in the second, shifted right in the last.
    wire [4:0]  far = right[31] ? 5'd0 - right[4:0] : right[4:0];
    wire signed [31:0] scaled = right[31] ? sum : sum << far;
    reg signed [63:0] product;
    reg [4:0] to_right;
    reg signed [31:0] high;
    wire signed [63:0] doubled = (product + 64'sd1073741824) >>> 31;
    wire [31:0] mask = (32'd1 << to_right) - 32'd1;
    wire [31:0] half = {1'b0, mask[31:1]} + {31'd0, high[31]};
    wire [31:0] one = {31'd0, (high & mask) > half};
    wire signed [31:0] value = (high >>> to_right) + $signed(one) + 32'(zero_point);
    wire signed [31:0] above = value < 32'(lowest) ? 32'(lowest) : value;
    wire [31:0] finished = above > 32'(highest) ? 32'(highest) : above;

    wire slow = operation == FINISH && which < 8;
    reg answered;
    reg [31:0] result;

    assign cmd_ready = step == IDLE && (!answered || rsp_ready);
    assign rsp_valid = answered || step == ROUNDED;
    assign rsp_payload_outputs_0 = answered ? result : finished;

    integer i;
    always @(posedge clk) begin
        if (rsp_ready) answered <= 0;
        if (cmd_valid && cmd_ready && !slow)
            {answered, result} <= {1'b1, operation == ADD && which < 8 ? added : 32'd0};
        case (step)
            MULTIPLIED: {step, high} <= {2'(ROUNDED), doubled[31:0]};
            ROUNDED: if (rsp_ready) step <= IDLE;
            default: ;
        endcase
        if (cmd_valid && cmd_ready) case (operation)
            BEGIN: if (which < 4) begin
                sums[{1'b0, which[1:0]}] <= left;
                sums[{1'b1, which[1:0]}] <= right;
            end
            ADD: if (which < 8) sums[which[2:0]] <= added;
            LANES: if (which < 2) begin
                sums[{which[0], 2'd0}] <= sums[{which[0], 2'd0}] + 32'(product0);
                sums[{which[0], 2'd1}] <= sums[{which[0], 2'd1}] + 32'(product1);
                sums[{which[0], 2'd2}] <= sums[{which[0], 2'd2}] + 32'(product2);
                sums[{which[0], 2'd3}] <= sums[{which[0], 2'd3}] + 32'(product3);
            end
            RANGE: {zero_point, highest, lowest} <= {left[7:0], right[15:0]};
            FINISH: if (which < 8) begin
                product <= scaled * $signed(left);
                to_right <= right[31] ? far : 5'd0;
                step <= MULTIPLIED;
            end
            default: ;
        endcase
        if (reset) begin
            {step, answered} <= {2'(IDLE), 1'b0};
            {zero_point, highest, lowest} <= 0;
            for (i = 0; i < 8; i = i + 1) sums[i] <= 0;
        end
    end
endmodule

`default_nettype wire
