// Lines of input, the weights of eight filters, 64 multipliers, and the sums: filters times columns.
//
// A step multiplies one column of the window with eight columns of the output: lane l has column x + l. Its data take
// three cycles: memories, product, sum. For matrices a step takes eight weights from the bus, and only the first filter's
// multipliers work: lane l adds up every eighth product.
module nuc_array (
    input  wire         clk,
    // Words that go on chip.
    input  wire         line_write,
    input  wire [7:0]   line_at,       // the line's memory is a ring
    input  wire         weights_write,
    input  wire [2:0]   weights_filter,
    input  wire [9:0]   weights_at,
    input  wire [63:0]  word,
    // A step of a convolution, or of a matrix.
    input  wire         step,
    input  wire         matrix,
    input  wire         first,         // of those that make a sum
    input  wire         last,
    input  wire         fresh,         // the sum begins with 0
    input  wire [6:0]   group,         // of eight columns
    input  wire signed [21:0] position, // of lane 0 in the line; what lies outside is 0
    input  wire [15:0]  stride,
    input  wire [10:0]  length,        // of the line
    input  wire [7:0]   line_base,     // where its first word lies
    input  wire [2:0]   line_offset,   // of its first byte in its first word
    input  wire [12:0]  weight,        // that all filters take, from their first
    input  wire [23:0]  weight_offsets, // of the filters' first bytes in their first words
    // Sums, of a filter and eight columns, a cycle after they are asked for.
    input  wire         look,
    input  wire [6:0]   look_group,
    input  wire [2:0]   look_filter,
    output wire [255:0] looked,
    output wire [31:0]  matrix_sum     // of all lanes of the first filter
);
    reg         step_b, first_b, last_b, fresh_b, matrix_b;
    reg         step_c, first_c, last_c, fresh_c;
    reg  [6:0]  group_b, group_c;
    reg  [63:0] word_b;
    reg  [2:0]  filter_b;

    always @(posedge clk) begin
        step_b <= step;
        first_b <= first;
        last_b <= last;
        fresh_b <= fresh;
        matrix_b <= matrix;
        group_b <= group;
        word_b <= word;
        filter_b <= look_filter;
        step_c <= step_b;
        first_c <= first_b;
        last_c <= last_b;
        fresh_c <= fresh_b;
        group_c <= group_b;
    end

    // Each lane has a copy of the line: it reads where it likes.
    wire [63:0] bytes_of_lanes;
    genvar l, f;
    generate
        for (l = 0; l < 8; l = l + 1) begin : lane
            localparam signed [21:0] NUMBER = l;
            wire signed [21:0] at = position + (matrix ? NUMBER : $signed({6'd0, stride}) * NUMBER);
            wire in_line = at >= 0 && at < $signed({11'd0, length});
            wire [10:0] place = at[10:0] + {8'd0, line_offset};
            wire [63:0] found;
            reg  [2:0] chosen;
            reg        in_line_b;
            nuc_memory #(.WIDTH(64), .DEPTH(256), .ADDRESS(8)) line (
                .clk(clk), .write(line_write), .write_at(line_at), .data(word),
                .read_at(in_line ? line_base + place[10:3] : 8'd0), .found(found));
            always @(posedge clk) begin
                chosen <= place[2:0];
                in_line_b <= in_line;
            end
            assign bytes_of_lanes[8*l +: 8] = in_line_b ? found[8*chosen +: 8] : 8'd0;
        end
    endgenerate

    wire [8*256-1:0] sums;
    wire [255:0]     first_row;
    generate
        for (f = 0; f < 8; f = f + 1) begin : filter
            wire [12:0] place = weight + {10'd0, weight_offsets[3*f +: 3]};
            wire [63:0] found;
            reg  [2:0]  chosen;
            nuc_memory #(.WIDTH(64), .DEPTH(513), .ADDRESS(10)) weights (
                .clk(clk), .write(weights_write && weights_filter == f), .write_at(weights_at), .data(word),
                .read_at(place[12:3]), .found(found));
            always @(posedge clk)
                chosen <= place[2:0];
            wire signed [7:0] own = found[8*chosen +: 8];
            for (l = 0; l < 8; l = l + 1) begin : column
                wire signed [7:0]  value = bytes_of_lanes[8*l +: 8];
                wire signed [7:0]  factor = f == 0 && matrix_b ? word_b[8*l +: 8] : own;
                reg  signed [15:0] product;
                reg  [31:0] sum, kept_c;
                wire [31:0] kept;
                wire [31:0] base = !first_c ? sum : fresh_c ? 32'd0 : kept_c;
                wire [31:0] more = base + {{16{product[15]}}, product};
                nuc_memory #(.WIDTH(32), .DEPTH(128), .ADDRESS(7)) memory (
                    .clk(clk), .write(step_c && last_c), .write_at(group_c), .data(more),
                    .read_at(look ? look_group : group), .found(kept));
                always @(posedge clk) begin
                    product <= value * factor;
                    kept_c <= kept;
                    if (step_c)
                        sum <= more;
                end
                assign sums[256*f + 32*l +: 32] = kept;
                if (f == 0) begin : matrices
                    assign first_row[32*l +: 32] = sum;
                end
            end
        end
    endgenerate

    assign looked = sums[256*filter_b +: 256];
    assign matrix_sum = ((first_row[31:0] + first_row[63:32]) + (first_row[95:64] + first_row[127:96]))
                      + ((first_row[159:128] + first_row[191:160]) + (first_row[223:192] + first_row[255:224]));
endmodule
