/* The machine of board rtl_vexriscv for an FPGA: the core (uaccel_machine.v) with its unit of custom instructions, code and
 * data in block RAM, a UART, and an accelerator (uaccel_device) that reads and writes the same memories. The firmware sees
 * the registers that the simulated machine has. */
`default_nettype none

module chip #(
    parameter CLOCKS_PER_BIT = 217,
    parameter CODE_BITS = 15, /* of a word's address: 128 KiB */
    parameter DATA_BITS = 14, /* 64 KiB */
    parameter FIRMWARE = "firmware.hex"
) (
    input  wire clk,
    input  wire restart,
    input  wire rx,
    output wire tx,
    output wire busy
);
    localparam CODE = 4'h2, DATA = 4'h4;
    localparam DEVICES = 8'hF0, ACCELERATOR = 8'hF1;
    localparam RESET_WORD = 32'h7777;

    /* Reset: at power-on, by the button, and by the register. */
    reg [7:0] waits = 0;
    wire reset = waits != 8'hFF;
    wire again;
    always @(posedge clk)
        waits <= restart || again ? 8'd0 : reset ? waits + 8'd1 : waits;

    wire        i_cyc, i_stb, i_ack, d_cyc, d_stb, d_ack, d_we, interrupt;
    wire [29:0] i_adr, d_adr;
    wire [31:0] i_word, d_word, d_given;
    wire [3:0]  d_sel;
    wire [2:0]  i_cti, d_cti;

    uaccel_machine machine (
        .clk(clk), .reset(reset), .externalResetVector({CODE, 28'd0}), .externalInterruptArray({31'd0, interrupt}),
        .iBusWishbone_CYC(i_cyc), .iBusWishbone_STB(i_stb), .iBusWishbone_ACK(i_ack), .iBusWishbone_ADR(i_adr),
        .iBusWishbone_DAT_MISO(i_word), .iBusWishbone_CTI(i_cti),
        .dBusWishbone_CYC(d_cyc), .dBusWishbone_STB(d_stb), .dBusWishbone_ACK(d_ack), .dBusWishbone_WE(d_we),
        .dBusWishbone_ADR(d_adr), .dBusWishbone_DAT_MISO(d_word), .dBusWishbone_DAT_MOSI(d_given),
        .dBusWishbone_SEL(d_sel), .dBusWishbone_CTI(d_cti)
    );

    /* Memories: the word is there a cycle after its address. Code has a port for each bus of the core. */
    wire        i_asks = i_cyc && i_stb, d_asks = d_cyc && d_stb;
    wire        waiting; /* a device is not ready */
    wire [29:0] i_at, core_at, d_at;
    burst fetching (.clk(clk), .reset(reset), .asks(i_asks), .more(i_cti == 3'd2), .adr(i_adr), .at(i_at), .ack(i_ack));

    /* The core's data and the accelerator have one port of each memory. The accelerator goes first, and never in two
     * cycles in a row, so that the core has each second one if it wants to. */
    reg         a_ack = 0, a_code, refused;
    wire        asks, a_we, goes = asks && !a_ack;
    wire [29:0] a_adr;
    wire [31:0] a_given, datum;
    wire [3:0]  a_sel;
    assign d_at = goes ? a_adr : core_at;
    always @(posedge clk) begin
        a_ack <= !reset && goes;
        a_code <= a_adr[29:26] == CODE;
        refused <= a_adr[29:26] != DATA && (a_we || a_adr[29:26] != CODE);
    end
    burst accessing (
        .clk(clk), .reset(reset), .asks(d_asks && !waiting && !goes), .more(d_cti == 3'd2), .adr(d_adr), .at(core_at),
        .ack(d_ack)
    );

    reg [31:0] code [0:(1 << CODE_BITS) - 1];
    initial $readmemh(FIRMWARE, code);
    reg [31:0] fetched, constant;
    always @(posedge clk) fetched <= code[i_at[CODE_BITS-1:0]];
    always @(posedge clk) constant <= code[d_at[CODE_BITS-1:0]];
    assign i_word = i_adr[29:26] == CODE ? fetched : 32'd0; /* which is no instruction */

    wire        first = d_asks && !d_ack && !waiting && !goes;
    wire        puts = goes ? a_we && a_adr[29:26] == DATA : first && d_we && d_adr[29:26] == DATA;
    wire [31:0] put_word = goes ? a_given : d_given;
    wire [3:0]  put_lanes = goes ? a_sel : d_sel;
    genvar lane;
    generate
        for (lane = 0; lane < 4; lane = lane + 1) begin : lanes
            reg [7:0] bytes [0:(1 << DATA_BITS) - 1];
            reg [7:0] read;
            wire      put = puts && put_lanes[lane];
            always @(posedge clk) begin
                if (put) bytes[d_at[DATA_BITS-1:0]] <= put_word[8*lane +: 8];
                read <= bytes[d_at[DATA_BITS-1:0]];
            end
            assign datum[8*lane +: 8] = read;
        end
    endgenerate

    /* Registers of the accelerator, from 0xF1000000 on, behind APB: an access has a cycle before it, and one behind it. */
    wire        speaks = d_asks && d_adr[29:22] == ACCELERATOR, psel = speaks && !answered && !d_ack, pready;
    wire [31:0] prdata;
    reg         penable = 0, answered = 0;
    reg  [31:0] answer;
    always @(posedge clk) begin
        penable <= !reset && psel && !(penable && pready);
        answered <= !reset && (answered ? !d_ack : psel && penable && pready);
        if (psel && penable && pready) answer <= prdata;
    end
    uaccel_device accelerator (
        .clk(clk), .reset(reset), .psel(psel), .penable(penable), .pwrite(d_we), .paddr({d_adr[13:0], 2'd0}),
        .pwdata(d_given), .prdata(prdata), .pready(pready),
        .asks(asks), .we(a_we), .adr(a_adr), .given(a_given), .sel(a_sel), .ack(a_ack), .refused(refused),
        .word(a_code ? constant : datum)
    );

    /* Devices: 0xF0000000 a byte of the UART, 0xF0000004 whether one that comes interrupts, 0xF0001000 a reset. */
    wire       device = d_asks && d_adr[29:22] == DEVICES, byte_of = device && d_adr[11:0] == 12'd0;
    wire [9:0] received;
    wire       ready, arrived;
    reg        interrupts = 0;
    assign waiting = byte_of && d_we && !ready || speaks && !answered;
    assign interrupt = interrupts && arrived;
    assign again = first && device && d_we && d_adr[11:0] == 12'h400 && d_given == RESET_WORD;
    always @(posedge clk)
        if (reset) interrupts <= 0;
        else if (first && device && d_we && d_adr[11:0] == 12'd1) interrupts <= d_given != 0;

    uart #(CLOCKS_PER_BIT) uart (
        .clk(clk), .reset(reset), .rx(rx), .tx(tx), .send(first && byte_of && d_we), .given(d_given[7:0]), .ready(ready),
        .take(first && byte_of && !d_we), .received(received), .arrived(arrived)
    );

    assign d_word = d_adr[29:26] == CODE ? constant : d_adr[29:26] == DATA ? datum : speaks ? answer : {22'd0, received};
    assign busy = !ready || arrived;
endmodule

/* Answers a master of bursts on behalf of a memory with a cycle of latency: the first word waits one cycle, the others none. */
module burst (
    input  wire        clk, reset, asks, more,
    input  wire [29:0] adr,
    output wire [29:0] at, /* what to read in this cycle */
    output reg         ack
);
    assign at = ack ? adr + 30'd1 : adr;
    always @(posedge clk) ack <= !reset && asks && (!ack || more);
endmodule

/* 8 bits, no parity. What has arrived waits in a queue of 16 bytes. */
module uart #(parameter CLOCKS_PER_BIT = 217) (
    input  wire       clk, reset, rx, send, take,
    input  wire [7:0] given,
    output wire       tx, ready, arrived,
    output reg  [9:0] received /* of the last take: bit 8: nothing was there; bit 9: bytes were lost */
);
    localparam [15:0] WHOLE = CLOCKS_PER_BIT - 1, HALF = CLOCKS_PER_BIT / 2;

    reg [9:0]  out = 10'h3FF; /* the bit that is on the line comes last */
    reg [3:0]  out_left = 0;
    reg [15:0] out_wait = 0;
    assign tx = out[0];
    assign ready = out_left == 0;
    always @(posedge clk)
        if (reset) {out, out_left} <= {10'h3FF, 4'd0};
        else if (send) {out, out_left, out_wait} <= {1'b1, given, 1'b0, 4'd10, WHOLE};
        else if (out_wait != 0) out_wait <= out_wait - 16'd1;
        else if (!ready) {out, out_left, out_wait} <= {1'b1, out[9:1], out_left - 4'd1, WHOLE};

    reg [1:0]  line = 2'b11; /* the pin belongs to no clock of ours */
    reg [7:0]  in;
    reg [3:0]  in_left = 0;
    reg [15:0] in_wait = 0;
    wire       whole = in_left == 1 && in_wait == 0 && line[1];
    always @(posedge clk) begin
        line <= {line[0], rx};
        if (reset) in_left <= 0;
        else if (in_left == 0) {in_left, in_wait} <= line[1] ? 20'd0 : {4'd10, HALF};
        else if (in_wait != 0) in_wait <= in_wait - 16'd1;
        else begin
            in <= {line[1], in[7:1]};
            in_left <= in_left == 10 && line[1] ? 4'd0 : in_left - 4'd1; /* no start bit after all */
            in_wait <= WHOLE;
        end
    end

    reg [7:0] queue [0:15];
    reg [4:0] put_at = 0, take_at = 0;
    reg       lost = 0;
    wire      full = put_at - take_at == 5'd16;
    assign arrived = put_at != take_at;
    always @(posedge clk) begin
        if (whole && !full) queue[put_at[3:0]] <= in;
        if (take) received <= {lost, !arrived, queue[take_at[3:0]]};
        if (reset) {put_at, take_at, lost} <= 0;
        else begin
            put_at <= put_at + {4'd0, whole && !full};
            take_at <= take_at + {4'd0, take && arrived};
            lost <= whole && full || lost && !take;
        end
    end
endmodule

`default_nettype wire
