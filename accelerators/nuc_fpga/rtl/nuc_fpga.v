// nuc_fpga: the registers of driver/nuc_fpga_registers.h behind AXI4-Lite, the engine, and an AXI4 master to memory.
module nuc_fpga (
    input  wire        clk,
    input  wire        rst_n,
    output wire        irq,
    output wire        busy,
    // Registers
    input  wire        s_axil_awvalid,
    output wire        s_axil_awready,
    input  wire [6:0]  s_axil_awaddr,
    input  wire        s_axil_wvalid,
    output wire        s_axil_wready,
    input  wire [31:0] s_axil_wdata,
    output reg         s_axil_bvalid,
    input  wire        s_axil_bready,
    output wire [1:0]  s_axil_bresp,
    input  wire        s_axil_arvalid,
    output wire        s_axil_arready,
    input  wire [6:0]  s_axil_araddr,
    output reg         s_axil_rvalid,
    input  wire        s_axil_rready,
    output reg  [31:0] s_axil_rdata,
    output wire [1:0]  s_axil_rresp,
    // Memory
    output wire        m_axi_arvalid,
    input  wire        m_axi_arready,
    output wire [31:0] m_axi_araddr,
    output wire [7:0]  m_axi_arlen,
    output wire [2:0]  m_axi_arsize,
    output wire [1:0]  m_axi_arburst,
    input  wire        m_axi_rvalid,
    output wire        m_axi_rready,
    input  wire [63:0] m_axi_rdata,
    input  wire [1:0]  m_axi_rresp,
    input  wire        m_axi_rlast,
    output wire        m_axi_awvalid,
    input  wire        m_axi_awready,
    output wire [31:0] m_axi_awaddr,
    output wire [7:0]  m_axi_awlen,
    output wire [2:0]  m_axi_awsize,
    output wire [1:0]  m_axi_awburst,
    output wire        m_axi_wvalid,
    input  wire        m_axi_wready,
    output wire [63:0] m_axi_wdata,
    output wire [7:0]  m_axi_wstrb,
    output wire        m_axi_wlast,
    input  wire        m_axi_bvalid,
    output wire        m_axi_bready,
    input  wire [1:0]  m_axi_bresp
);
    localparam IDENTITY = 32'h4E554346, VERSION = 32'h00010000;
    localparam CONTROL = 2, STOP = 3, STATUS = 4, FIRST = 6, LAST = 21; // registers, by their number
    localparam CONV2D = 1, DENSE = 2;
    localparam BAD_PARAMETER = 1;

    reg [31:0] registers [FIRST:LAST]; // what the driver writes
    reg        done, matrix, runs, starts, stops;
    reg [1:0]  error;
    reg [63:0] cycles;

    // -- registers ------------------------------------------------------------------------------------------------------
    // Address and data of a write come in any order: what comes first, or too soon, is held. What is written behind a
    // stop waits until the engine has touched memory for the last time.
    reg        holds_to, holds_data;
    reg [4:0]  held_to;
    reg [31:0] held_data;
    wire       write = (holds_to || s_axil_awvalid) && (holds_data || s_axil_wvalid) && !s_axil_bvalid && !stops;
    wire [4:0] write_to = holds_to ? held_to : s_axil_awaddr[6:2];
    wire [31:0] write_data = holds_data ? held_data : s_axil_wdata;
    wire [4:0] read_from = s_axil_araddr[6:2];
    wire       command = write_data == CONV2D || write_data == DENSE;
    wire       engine_idle;
    wire       ends = runs && !starts && engine_idle;
    wire [1:0] engine_error;

    assign s_axil_awready = !holds_to;
    assign s_axil_wready = !holds_data;
    assign s_axil_bresp = 2'd0;
    assign s_axil_arready = !s_axil_rvalid;
    assign s_axil_rresp = 2'd0;
    assign irq = registers[FIRST] == 32'd1 && done;
    assign busy = runs;

    integer i;
    always @(posedge clk) begin
        starts <= 0;
        if (!rst_n) begin
            s_axil_bvalid <= 0;
            s_axil_rvalid <= 0;
            holds_to <= 0;
            holds_data <= 0;
            done <= 0;
            error <= 0;
            cycles <= 0;
            runs <= 0;
            stops <= 0;
            matrix <= 0;
            for (i = FIRST; i <= LAST; i = i + 1)
                registers[i] <= 0;
        end else begin
            if (runs)
                cycles <= cycles + 64'd1;
            if (ends) begin
                runs <= 0;
                stops <= 0;
                done <= !stops;
                error <= engine_error;
            end
            if (s_axil_bready)
                s_axil_bvalid <= 0;
            holds_to <= !write && (holds_to || s_axil_awvalid);
            holds_data <= !write && (holds_data || s_axil_wvalid);
            held_to <= write_to;
            held_data <= write_data;
            if (write) begin
                s_axil_bvalid <= 1;
                if (write_to == CONTROL && !runs) begin
                    cycles <= 0;
                    matrix <= write_data == DENSE;
                    runs <= command;
                    starts <= command;
                    done <= !command;
                    error <= command ? 0 : BAD_PARAMETER;
                end else if (write_to == STOP || write_to == STATUS) begin
                    done <= 0;
                    stops <= write_to == STOP && runs && !ends;
                end else if (write_to >= FIRST && write_to <= LAST)
                    registers[write_to] <= write_data;
            end
            if (s_axil_rready)
                s_axil_rvalid <= 0;
            if (s_axil_arvalid && s_axil_arready) begin
                s_axil_rvalid <= 1;
                case (read_from)
                    5'd0: s_axil_rdata <= IDENTITY;
                    5'd1: s_axil_rdata <= VERSION;
                    5'd4: s_axil_rdata <= {30'd0, done && error != 0, done};
                    5'd5: s_axil_rdata <= {30'd0, error};
                    5'd22: s_axil_rdata <= cycles[31:0];
                    5'd23: s_axil_rdata <= cycles[63:32];
                    default: s_axil_rdata <= read_from >= FIRST && read_from <= LAST ? registers[read_from] : 32'd0;
                endcase
            end
        end
    end

    // -- the engine -----------------------------------------------------------------------------------------------------
    wire        job_begins, read_ready, write_ready;
    wire        read_start, read_idle, read_failed, word_valid, write_start, write_idle, write_failed;
    wire [31:0] read_address, write_address;
    wire [12:0] read_bytes, weight;
    wire [10:0] write_numbers, length;
    wire        pair_valid, pair_ready, line_write, weights_write, step, first, last, fresh, look;
    wire [63:0] word, pair;
    wire [7:0]  line_at, line_base;
    wire [2:0]  weights_filter, line_offset, look_filter;
    wire [9:0]  weights_at;
    wire [6:0]  column_group, look_group;
    wire signed [21:0] position;
    wire [23:0] weight_offsets;
    wire [255:0] looked;
    wire [31:0] matrix_sum;

    nuc_engine engine (
        .clk(clk), .rst_n(rst_n), .start(starts), .matrix(matrix), .abort(stops), .idle(engine_idle),
        .begins(job_begins), .error(engine_error), .features(registers[7]), .kernel(registers[8]), .out(registers[9]),
        .batch(registers[10]), .in_ch(registers[11]), .in_height(registers[12]), .in_width(registers[13]),
        .kernel_number(registers[14]), .group(registers[15]), .pad_height(registers[16]), .pad_width(registers[17]),
        .kernel_height(registers[18]), .kernel_width(registers[19]), .stride_height(registers[20]),
        .stride_width(registers[21]), .read_start(read_start), .read_address(read_address), .read_bytes(read_bytes),
        .read_ready(read_ready), .write_ready(write_ready), .line_base(line_base), .read_idle(read_idle), .read_failed(read_failed), .word_valid(word_valid), .write_start(write_start),
        .write_address(write_address), .write_numbers(write_numbers), .write_idle(write_idle),
        .write_failed(write_failed), .pair_valid(pair_valid), .pair_ready(pair_ready), .pair(pair),
        .line_write(line_write), .line_at(line_at), .weights_write(weights_write), .weights_filter(weights_filter),
        .weights_at(weights_at), .step(step), .first(first), .last(last), .fresh(fresh), .column_group(column_group),
        .position(position), .length(length), .line_offset(line_offset), .weight(weight),
        .weight_offsets(weight_offsets), .look(look), .look_group(look_group), .look_filter(look_filter),
        .looked(looked), .matrix_sum(matrix_sum));

    nuc_array array (
        .clk(clk), .line_write(line_write), .line_at(line_at), .weights_write(weights_write),
        .weights_filter(weights_filter), .weights_at(weights_at), .word(word), .step(step), .matrix(matrix),
        .first(first), .last(last), .fresh(fresh), .group(column_group), .position(position),
        .stride(registers[21][15:0]), .length(length), .line_base(line_base), .line_offset(line_offset), .weight(weight),
        .weight_offsets(weight_offsets), .look(look), .look_group(look_group), .look_filter(look_filter),
        .looked(looked), .matrix_sum(matrix_sum));

    nuc_reader reader (
        .clk(clk), .rst_n(rst_n), .clear(job_begins), .start(read_start), .address(read_address), .bytes(read_bytes),
        .ready(read_ready), .idle(read_idle),
        .word_valid(word_valid), .word(word), .failed(read_failed), .arvalid(m_axi_arvalid), .arready(m_axi_arready),
        .araddr(m_axi_araddr), .arlen(m_axi_arlen), .arsize(m_axi_arsize), .arburst(m_axi_arburst),
        .rvalid(m_axi_rvalid), .rready(m_axi_rready), .rdata(m_axi_rdata), .rresp(m_axi_rresp), .rlast(m_axi_rlast));

    nuc_writer writer (
        .clk(clk), .rst_n(rst_n), .clear(job_begins), .ready(write_ready), .start(write_start), .address(write_address), .numbers(write_numbers),
        .idle(write_idle), .failed(write_failed), .pair_valid(pair_valid), .pair_ready(pair_ready), .pair(pair),
        .awvalid(m_axi_awvalid), .awready(m_axi_awready), .awaddr(m_axi_awaddr), .awlen(m_axi_awlen),
        .awsize(m_axi_awsize), .awburst(m_axi_awburst), .wvalid(m_axi_wvalid), .wready(m_axi_wready),
        .wdata(m_axi_wdata), .wstrb(m_axi_wstrb), .wlast(m_axi_wlast), .bvalid(m_axi_bvalid), .bready(m_axi_bready),
        .bresp(m_axi_bresp));
endmodule
