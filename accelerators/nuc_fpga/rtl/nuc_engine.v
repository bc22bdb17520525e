// The loops of a job: which bytes go on chip, which steps the array takes, which sums go back.
//
// A convolution works on eight filters and one line of the output at a time: it adds up what each line of each input
// channel gives. A walker asks for these lines ahead, as many as the ring of the array holds. A matrix works on eight units at a time, of whose rows as many bytes as the line holds are on the way.
module nuc_engine (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        start,
    input  wire        matrix,
    input  wire        abort,
    output wire        idle,
    output wire        begins,
    output reg  [1:0]  error,          // of the last job: 1 a parameter, 2 the bus
    input  wire [31:0] features, kernel, out,
    input  wire [31:0] batch, in_ch, in_height, in_width, kernel_number, group,
    input  wire [31:0] pad_height, pad_width, kernel_height, kernel_width, stride_height, stride_width,
    // To the reader, the writer and the array.
    output wire        read_start,
    output wire [31:0] read_address,
    output wire [12:0] read_bytes,
    input  wire        read_ready,
    input  wire        read_idle,
    input  wire        read_failed,
    input  wire        word_valid,
    output wire        write_start,
    output wire [31:0] write_address,
    output wire [10:0] write_numbers,
    input  wire        write_ready,
    input  wire        write_idle,
    input  wire        write_failed,
    output wire        pair_valid,
    input  wire        pair_ready,
    output wire [63:0] pair,
    output wire        line_write,
    output wire [7:0]  line_at,
    output wire        weights_write,
    output wire [2:0]  weights_filter,
    output wire [9:0]  weights_at,
    output wire        step,
    output wire        first,
    output wire        last,
    output wire        fresh,
    output reg  [6:0]  column_group,
    output wire signed [21:0] position,
    output wire [10:0] length,
    output wire [7:0]  line_base,
    output reg  [2:0]  line_offset,
    output wire [12:0] weight,
    output reg  [23:0] weight_offsets,
    output wire        look,
    output reg  [6:0]  look_group,
    output wire [2:0]  look_filter,
    input  wire [255:0] looked,
    input  wire [31:0] matrix_sum
);
    localparam IDLE = 0, SETUP = 1, BLOCK = 2, LINE = 3, CHUNK = 4, WEIGHTS = 5, WEIGHTS_WAIT = 6, ROW = 7,
        MULTIPLY = 9, DRAIN = 10, STORE = 12, STORE_LOOK = 13, STORE_PAIRS = 14, STORE_WAIT = 15,
        NEXT_LINE = 16, UNITS = 17, PIECE_WAIT = 18, UNIT = 19, UNIT_WAIT = 20, UNIT_DRAIN = 21, UNIT_ADD = 22, QUIT = 23;
    localparam LINE_BYTES = 1024, RING = 256;

    reg [4:0] state;

    // -- the job ------------------------------------------------------------------------------------------------------
    wire        setup_idle, bad_parameter, out_of_memory;
    wire [15:0] depth, per_group;
    wire [19:0] rows, columns;
    wire [12:0] at_once;
    wire [8:0]  window;
    wire [31:0] plane_in, filter_bytes, plane_out;
    nuc_setup setup (
        .clk(clk), .rst_n(rst_n), .start(state == IDLE && start), .matrix(matrix), .idle(setup_idle),
        .bad_parameter(bad_parameter), .out_of_memory(out_of_memory),
        .features(features), .kernel(kernel), .out(out), .batch(batch), .in_ch(in_ch), .in_height(in_height),
        .in_width(in_width), .kernel_number(kernel_number), .group(group), .pad_height(pad_height),
        .pad_width(pad_width), .kernel_height(kernel_height), .kernel_width(kernel_width),
        .stride_height(stride_height), .stride_width(stride_width), .depth(depth), .per_group(per_group), .rows(rows),
        .columns(columns), .at_once(at_once), .window(window), .plane_in(plane_in), .filter_bytes(filter_bytes),
        .plane_out(plane_out));

    reg [15:0] sample;        // of the batch
    reg [15:0] filter;        // the first of eight
    reg [15:0] in_group;      // its number in its group
    reg [31:0] features_at;   // the first channel that these filters see
    reg [31:0] sample_at;     // the first channel of the sample
    reg [31:0] kernel_at;     // the first filter
    reg [31:0] out_at;        // the first filter's first line
    reg [19:0] y;             // line of the output
    reg [31:0] line_at_out;   // its bytes before it
    reg signed [21:0] top;    // line of the input under the window's first row
    reg [15:0] channel;       // first on chip
    reg [12:0] offset;        // of the channel among those on chip
    reg [31:0] channel_at;
    reg [31:0] channel_weights; // bytes of a filter before the first channel on chip
    reg [4:0]  ky, kx;
    reg [3:0]  b;             // filter of the eight
    reg [31:0] b_at;          // its weights, or its output
    reg [12:0] row_weight;    // first weight of the window's row
    reg        touched;       // the sums of this line have begun
    reg [2:0]  drain;
    reg [9:0]  beat;          // word of what is read
    reg [10:0] stored;        // pairs of the line that are written
    reg        chosen;        // what was asked of the sums is there

    wire [15:0] group_left = per_group - in_group;
    wire [15:0] number_left = kernel_number[15:0] - filter;
    wire [15:0] block_left = matrix ? number_left : group_left;
    wire [3:0]  count = block_left > 16'd8 ? 4'd8 : block_left[3:0];
    wire [15:0] depth_left = depth - channel;
    wire [12:0] channels = {3'd0, at_once} < depth_left ? at_once : depth_left[12:0];
    wire        held = y != 0 && {3'd0, at_once} >= depth;
    wire signed [21:0] row = top + $signed({17'd0, ky});
    wire        row_inside = row >= 0 && row < $signed({6'd0, in_height[15:0]});
    wire [2:0]  row_offset = channel_at[2:0] + row[2:0] * in_width[2:0];
    wire [8:0]  row_words = words_of(row_offset, in_width[10:0]);
    wire        last_ky = ky + 5'd1 == kernel_height[4:0];
    wire        last_kx = kx + 5'd1 == kernel_width[4:0];
    wire [10:0] last_column = columns[10:0] - 11'd1;
    wire [6:0]  last_group = last_column[9:3];

    function [8:0] words_of(input [2:0] begin_at, input [10:0] bytes);
        reg [11:0] end_at;
        begin
            end_at = {9'd0, begin_at} + {1'b0, bytes} + 12'd7;
            words_of = end_at[11:3];
        end
    endfunction

    // -- the walker: one input line after the other, in the order in which the array takes them --------------------------
    // Without weights to read between two lines of the output it goes on to the next one by itself.
    reg         walking;
    reg  [19:0] walk_y;
    reg  signed [21:0] walk_top;
    reg  [12:0] walk_left;    // channels
    reg  [31:0] walk_channel_at;
    reg  [4:0]  walk_ky;
    wire signed [21:0] walk_row = walk_top + $signed({17'd0, walk_ky});
    wire        walk_inside = walk_row >= 0 && walk_row < $signed({6'd0, in_height[15:0]});
    wire [31:0] walk_at = walk_channel_at + walk_row[15:0] * in_width[15:0];
    wire [8:0]  walk_words = words_of(walk_at[2:0], in_width[10:0]);

    // Words of the ring: those that hold a line or wait for one, and those that are there.
    reg  [8:0]  reserved, arrived;
    reg  [7:0]  head, tail;
    wire        releases = state == MULTIPLY && last_kx && column_group == last_group;
    reg  [8:0]  released;     // by the line under way
    wire        has_room = {1'b0, reserved} + {1'b0, walk_words} <= RING;

    // -- matrices: `channel` counts numbers of a row, `channels` of them are in the line --------------------------------
    reg  [31:0] results [0:7];
    wire [15:0] numbers_left = in_ch[15:0] - channel;
    wire [10:0] piece = numbers_left > LINE_BYTES ? LINE_BYTES : numbers_left[10:0];

    // -- reading --------------------------------------------------------------------------------------------------------
    wire reads_weights = state == WEIGHTS;
    wire reads_row = walking && walk_inside && has_room && read_ready && state != QUIT;
    wire walks = walking && (reads_row || !walk_inside);
    wire reads_piece = state == UNITS;
    wire reads_unit = state == UNIT;
    assign read_start = reads_weights || reads_row || reads_piece || reads_unit;
    assign read_address = reads_weights || reads_unit ? b_at : reads_piece ? features_at + {16'd0, channel} : walk_at;
    wire [31:0] chunk_bytes = channels * window;
    assign read_bytes = reads_weights ? chunk_bytes[12:0]
        : reads_row ? in_width[12:0] : {2'd0, piece};
    wire line_word = word_valid && !matrix && state != WEIGHTS_WAIT;
    assign line_write = line_word || (word_valid && state == PIECE_WAIT);
    assign line_at = matrix ? beat[7:0] : head;
    assign line_base = matrix ? 8'd0 : tail;
    assign weights_write = word_valid && state == WEIGHTS_WAIT;
    assign weights_filter = b[2:0];
    assign weights_at = beat;

    // -- steps ----------------------------------------------------------------------------------------------------------
    wire matrix_step = word_valid && state == UNIT_WAIT;
    reg  [2:0] unit_offset;
    reg  signed [21:0] column_at; // position of the group's first column
    assign step = state == MULTIPLY || matrix_step;
    // Sums of one group of columns stay where they are added up from line to line; others come from memory.
    assign first = matrix ? beat == 0 : kx == 0 && (last_group != 0 || !touched);
    assign last = !matrix && last_kx;
    assign fresh = matrix || !touched;
    assign position = matrix ? $signed({9'd0, beat, 3'd0}) - $signed({19'd0, unit_offset})
        : column_at + $signed({17'd0, kx});
    assign length = matrix ? piece : in_width[10:0];
    assign weight = row_weight + {8'd0, kx};

    // -- writing --------------------------------------------------------------------------------------------------------
    wire [10:0] pairs = matrix ? {8'd0, count[3:1]} + {10'd0, count[0]} : (columns[10:0] + 11'd1) >> 1;
    assign write_start = state == STORE;
    assign write_address = matrix ? out_at : b_at + line_at_out;
    assign write_numbers = matrix ? {7'd0, count} : columns[10:0];
    assign look = state == STORE || state == STORE_LOOK || state == STORE_PAIRS;
    assign look_filter = b[2:0];
    assign pair_valid = state == STORE_PAIRS && chosen;
    wire [63:0] sums = touched ? looked[64*stored[1:0] +: 64] : 64'd0;
    assign pair = matrix ? {results[{stored[1:0], 1'b1}], results[{stored[1:0], 1'b0}]} : sums;

    assign idle = state == IDLE;
    assign begins = state == SETUP;

    task next_row;
        begin
            ky <= last_ky ? 5'd0 : ky + 5'd1;
            row_weight <= row_weight + {8'd0, kernel_width[4:0]};
            state <= ROW;
            if (last_ky) begin
                offset <= offset + 13'd1;
                channel_at <= channel_at + plane_in;
                if (offset + 13'd1 == channels) begin
                    channel <= channel + {3'd0, channels};
                    channel_weights <= channel_weights + chunk_bytes;
                    b <= 0;
                    b_at <= out_at;
                    state <= {3'd0, channels} == depth_left ? DRAIN : CHUNK;
                end
            end
        end
    endtask

    integer i;
    always @(posedge clk) begin
        if (read_start)
            beat <= 0;
        else if (word_valid)
            beat <= beat + 10'd1;
        reserved <= reserved + (reads_row ? walk_words : 9'd0) - (releases ? released : 9'd0);
        arrived <= arrived + {8'd0, line_word} - (releases ? released : 9'd0);
        head <= head + {7'd0, line_word};
        tail <= tail + (releases ? released[7:0] : 8'd0);
        if (walks) begin
            walk_ky <= walk_ky + 5'd1;
            if (walk_ky + 5'd1 == kernel_height[4:0]) begin
                walk_ky <= 0;
                walk_channel_at <= walk_channel_at + plane_in;
                walk_left <= walk_left - 13'd1;
                if (walk_left == 13'd1) begin
                    walk_y <= walk_y + 20'd1;
                    walk_top <= walk_top + $signed({6'd0, stride_height[15:0]});
                    walk_channel_at <= features_at;
                    walk_left <= depth[12:0];
                    walking <= {3'd0, at_once} >= depth && walk_y + 20'd1 != rows;
                end
            end
        end
        if (!rst_n) begin
            state <= IDLE;
            error <= 0;
            walking <= 0;
        end else case (state)
            IDLE: if (start) begin
                error <= 0;
                state <= SETUP;
            end
            SETUP: begin
                {reserved, arrived, head, tail} <= 0;
                sample <= 0;
                sample_at <= features;
                features_at <= features;
                kernel_at <= kernel;
                out_at <= out;
                filter <= 0;
                in_group <= 0;
                if (setup_idle) begin
                    error <= bad_parameter ? 2'd1 : out_of_memory ? 2'd2 : 2'd0;
                    state <= bad_parameter || out_of_memory ? IDLE : BLOCK;
                end
            end
            BLOCK: begin // eight filters, or eight units
                y <= 0;
                line_at_out <= 0;
                top <= -$signed({6'd0, pad_height[15:0]});
                b <= 0;
                channel <= 0;
                for (i = 0; i < 8; i = i + 1)
                    results[i] <= 0;
                state <= abort ? QUIT : matrix ? UNITS : LINE;
            end
            // -- convolution
            LINE: begin
                touched <= 0;
                channel <= 0;
                channel_at <= features_at;
                channel_weights <= 0;
                state <= abort ? QUIT : CHUNK;
            end
            CHUNK: begin
                b <= 0;
                b_at <= kernel_at + channel_weights;
                offset <= 0;
                ky <= 0;
                row_weight <= 0;
                state <= held ? ROW : WEIGHTS;
            end
            WEIGHTS: begin
                weight_offsets[3*b[2:0] +: 3] <= b_at[2:0];
                state <= WEIGHTS_WAIT;
            end
            WEIGHTS_WAIT: if (read_idle) begin
                b <= b + 4'd1;
                b_at <= b_at + filter_bytes;
                state <= read_failed ? QUIT : b + 4'd1 == count ? ROW : WEIGHTS;
                if (b + 4'd1 == count && !read_failed) begin
                    walking <= 1;
                    walk_y <= y;
                    walk_top <= top;
                    walk_left <= channels;
                    walk_channel_at <= channel_at;
                    walk_ky <= 0;
                end
            end
            ROW: begin
                line_offset <= row_offset;
                released <= row_words;
                column_group <= 0;
                column_at <= -$signed({6'd0, pad_width[15:0]});
                kx <= 0;
                if (abort || read_failed)
                    state <= QUIT;
                else if (!row_inside)
                    next_row;
                else if (arrived >= row_words)
                    state <= MULTIPLY;
            end
            MULTIPLY: begin
                kx <= last_kx ? 5'd0 : kx + 5'd1;
                if (last_kx) begin
                    column_group <= column_group + 7'd1;
                    column_at <= column_at + $signed({3'd0, stride_width[15:0], 3'd0});
                    if (column_group == last_group) begin
                        touched <= 1;
                        next_row;
                    end
                end
            end
            DRAIN: state <= STORE; // the last sums are on their way to memory
            STORE: begin
                look_group <= 0;
                stored <= 0;
                chosen <= 0;
                state <= STORE_LOOK;
            end
            STORE_LOOK: begin
                chosen <= 1;
                state <= STORE_PAIRS;
            end
            STORE_PAIRS: begin
                chosen <= 1;
                if (pair_valid && pair_ready) begin
                    stored <= stored + 11'd1;
                    if (stored[1:0] == 2'd3) begin
                        look_group <= look_group + 7'd1;
                        chosen <= 0;
                        state <= STORE_LOOK;
                    end
                    if (stored + 11'd1 == pairs)
                        state <= STORE_WAIT;
                end
            end
            STORE_WAIT: if (write_ready) begin
                b <= b + 4'd1;
                b_at <= b_at + plane_out;
                state <= write_failed ? QUIT : matrix || b + 4'd1 == count ? NEXT_LINE : STORE;
            end
            NEXT_LINE: begin
                y <= y + 20'd1;
                line_at_out <= line_at_out + {10'd0, columns, 2'd0};
                top <= top + $signed({6'd0, stride_height[15:0]});
                state <= LINE;
                if (matrix || y + 20'd1 == rows) begin
                    filter <= filter + {12'd0, count};
                    kernel_at <= kernel_at + count * filter_bytes;
                    out_at <= out_at + (matrix ? {26'd0, count, 2'd0} : count * plane_out);
                    in_group <= in_group + {12'd0, count};
                    state <= BLOCK;
                    if (!matrix && {12'd0, count} == group_left) begin
                        in_group <= 0;
                        features_at <= features_at + depth * plane_in;
                    end
                    if ({12'd0, count} == number_left) begin
                        filter <= 0;
                        kernel_at <= kernel;
                        sample <= sample + 16'd1;
                        sample_at <= sample_at + (matrix ? {16'd0, in_ch[15:0]} : in_ch[15:0] * plane_in);
                        features_at <= sample_at + (matrix ? {16'd0, in_ch[15:0]} : in_ch[15:0] * plane_in);
                        if (sample + 16'd1 == batch[15:0])
                            state <= QUIT;
                    end
                end
            end
            // -- matrices
            UNITS: begin // a piece of the row
                line_offset <= read_address[2:0];
                b <= 0;
                b_at <= kernel_at + {16'd0, channel};
                state <= PIECE_WAIT;
            end
            PIECE_WAIT: if (read_idle)
                state <= read_failed ? QUIT : UNIT;
            UNIT: begin
                unit_offset <= b_at[2:0];
                state <= UNIT_WAIT;
            end
            UNIT_WAIT: begin
                drain <= 0;
                if (read_idle)
                    state <= read_failed ? QUIT : UNIT_DRAIN;
            end
            UNIT_DRAIN: begin
                drain <= drain + 3'd1;
                if (drain == 3'd2)
                    state <= UNIT_ADD;
            end
            UNIT_ADD: begin
                results[b[2:0]] <= results[b[2:0]] + matrix_sum;
                b <= b + 4'd1;
                b_at <= b_at + filter_bytes;
                state <= abort ? QUIT : UNIT;
                if (b + 4'd1 == count && !abort) begin
                    channel <= channel + {5'd0, piece};
                    b <= 0;
                    state <= {5'd0, piece} == numbers_left ? STORE : UNITS;
                end
            end
            QUIT: begin
                walking <= 0;
                if (read_idle && write_idle) begin // nothing touches memory any more
                    error <= read_failed || write_failed ? 2'd2 : 2'd0;
                    state <= IDLE;
                end
            end
            default: state <= IDLE;
        endcase
    end
endmodule
