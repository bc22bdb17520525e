// Looks at a job's parameters before anything moves: whether the engine can do it, whether its tensors end where addresses
// do, and the numbers that the loops go by. One divider and one multiplier, one step after the other.
module nuc_setup (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        start,
    input  wire        matrix,
    output wire        idle,
    output reg         bad_parameter,
    output reg         out_of_memory,
    // Parameters, as they were written.
    input  wire [31:0] features, kernel, out,
    input  wire [31:0] batch, in_ch, in_height, in_width, kernel_number, group,
    input  wire [31:0] pad_height, pad_width, kernel_height, kernel_width, stride_height, stride_width,
    // What follows of them.
    output reg  [15:0] depth,        // input channels of a filter
    output reg  [15:0] per_group,    // filters
    output reg  [19:0] rows, columns,
    output reg  [12:0] at_once,      // input channels whose weights are on the chip at once
    output wire [8:0]  window,       // weights of a filter's channel
    output reg  [31:0] plane_in,     // bytes of a channel
    output reg  [31:0] filter_bytes, // of a filter's weights
    output reg  [31:0] plane_out     // bytes of a channel
);
    localparam IDLE = 0, DIVIDE = 1, WAIT = 2, KEEP = 3, MULTIPLY = 4;
    localparam DIVISIONS = 5, FACTORS = 12;
    localparam LINE = 1024, LARGEST_KERNEL = 16, WEIGHTS = 4096;

    reg [2:0]  state;
    reg [3:0]  index;
    reg [63:0] product;

    function in_range(input [31:0] value);
        in_range = value != 0 && value[31:16] == 0;
    endfunction

    wire [17:0] padded_height = {2'd0, in_height[15:0]} + {1'd0, pad_height[15:0], 1'b0};
    wire [17:0] padded_width = {2'd0, in_width[15:0]} + {1'd0, pad_width[15:0], 1'b0};
    wire matrix_good = in_range(batch) && in_range(in_ch) && in_range(kernel_number);
    wire good = matrix_good && in_range(in_height) && in_range(in_width) && in_range(group)
        && pad_height[31:16] == 0 && pad_width[31:16] == 0
        && in_range(stride_height) && in_range(stride_width)
        && in_range(kernel_height) && kernel_height <= LARGEST_KERNEL && kernel_height[17:0] <= padded_height
        && in_range(kernel_width) && kernel_width <= LARGEST_KERNEL && kernel_width[17:0] <= padded_width
        && padded_width <= LINE;

    assign window = kernel_height[4:0] * kernel_width[4:0];
    assign idle = state == IDLE && !start;

    // Divisions.
    reg [19:0] dividend;
    reg [15:0] divisor;
    always @* case (index)
        4'd0: begin dividend = {4'd0, in_ch[15:0]}; divisor = group[15:0]; end
        4'd1: begin dividend = {4'd0, kernel_number[15:0]}; divisor = group[15:0]; end
        4'd2: begin dividend = {2'd0, padded_height} - {15'd0, kernel_height[4:0]}; divisor = stride_height[15:0]; end
        4'd3: begin dividend = {2'd0, padded_width} - {15'd0, kernel_width[4:0]}; divisor = stride_width[15:0]; end
        default: begin dividend = WEIGHTS; divisor = {7'd0, window}; end
    endcase
    wire        divided;
    wire [19:0] quotient;
    wire [15:0] remainder;
    nuc_divider divider (
        .clk(clk), .rst_n(rst_n), .start(state == DIVIDE), .dividend(dividend), .divisor(divisor),
        .idle(divided), .quotient(quotient), .remainder(remainder));

    // Products: rows and columns of features, of the kernel, of the output, the elements of each last.
    reg [19:0] factor;
    always @* case (index)
        4'd0: factor = matrix ? 20'd1 : {4'd0, in_width[15:0]};
        4'd1: factor = matrix ? 20'd1 : {4'd0, in_height[15:0]};
        4'd2: factor = {4'd0, in_ch[15:0]};
        4'd3: factor = {4'd0, batch[15:0]};
        4'd4: factor = matrix ? 20'd1 : {11'd0, window};
        4'd5: factor = matrix ? {4'd0, in_ch[15:0]} : {4'd0, depth};
        4'd6: factor = {4'd0, kernel_number[15:0]};
        4'd7: factor = 20'd4;
        4'd8: factor = matrix ? 20'd1 : columns;
        4'd9: factor = matrix ? 20'd1 : rows;
        4'd10: factor = {4'd0, kernel_number[15:0]};
        default: factor = {4'd0, batch[15:0]};
    endcase
    wire        begins = index == 4'd0 || index == 4'd4 || index == 4'd7;
    wire [63:0] more = (begins ? 64'd1 : product) * {44'd0, factor};

    always @(posedge clk) begin
        if (!rst_n) begin
            state <= IDLE;
        end else case (state)
            IDLE: if (start) begin
                bad_parameter <= matrix ? !matrix_good : !good;
                out_of_memory <= 0;
                index <= 0;
                state <= matrix ? (matrix_good ? MULTIPLY : IDLE) : good ? DIVIDE : IDLE;
            end
            DIVIDE: state <= WAIT;
            WAIT: if (divided) state <= KEEP;
            KEEP: begin
                case (index)
                    4'd0: begin depth <= quotient[15:0]; bad_parameter <= remainder != 0; end
                    4'd1: begin per_group <= quotient[15:0]; bad_parameter <= bad_parameter || remainder != 0; end
                    4'd2: rows <= quotient + 20'd1;
                    4'd3: columns <= quotient + 20'd1;
                    default: at_once <= quotient[12:0];
                endcase
                index <= index == DIVISIONS - 1 ? 4'd0 : index + 4'd1;
                state <= index != DIVISIONS - 1 ? DIVIDE : bad_parameter ? IDLE : MULTIPLY;
            end
            MULTIPLY: begin
                product <= more;
                if (index == 4'd1) plane_in <= more[31:0];
                if (index == 4'd5) filter_bytes <= more[31:0];
                if (index == 4'd9) plane_out <= more[31:0];
                if (index == 4'd3) out_of_memory <= more > 64'h1_0000_0000 - {32'd0, features};
                if (index == 4'd6) out_of_memory <= out_of_memory || more > 64'h1_0000_0000 - {32'd0, kernel};
                if (index == 4'd11) out_of_memory <= out_of_memory || out[1:0] != 0
                    || more > 64'h1_0000_0000 - {32'd0, out};
                index <= index + 4'd1;
                state <= index == FACTORS - 1 ? IDLE : MULTIPLY;
            end
            default: state <= IDLE;
        endcase
    end
endmodule
