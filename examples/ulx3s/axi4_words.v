/* The other side of an accelerator's AXI4 master: a burst at a time, of reads or of writes, in words of 32 bits. After a
 * burst of reads writes come first, so that neither waits for ever. `asks` stays until `ack`, which brings the word. */
`default_nettype none

module axi4_words #(parameter BYTES = 8) (
    input  wire               clk, reset,
    input  wire               arvalid, awvalid, wvalid, rready, bready,
    output wire               arready, awready, wready, rvalid, bvalid, rlast,
    input  wire [31:0]        araddr, awaddr,
    input  wire [7:0]         arlen, awlen, arid, awid,
    input  wire [8*BYTES-1:0] wdata,
    input  wire [BYTES-1:0]   wstrb,
    output wire [8*BYTES-1:0] rdata,
    output reg  [7:0]         rid, bid,
    output wire [1:0]         rresp, bresp,

    output wire               asks, we,
    output wire [29:0]        adr,
    output wire [31:0]        given,
    output wire [3:0]         sel,
    input  wire               ack, refused,
    input  wire [31:0]        word
);
    localparam WORDS = BYTES < 4 ? 1 : BYTES / 4;
    localparam IDLE = 3'd0, READ = 3'd1, GIVE = 3'd2, WRITE = 3'd3, PUT = 3'd4, ANSWER = 3'd5;

    reg [2:0]          state;
    reg                writes_first, wrong;
    reg [31:0]         at; /* the beat's first byte */
    reg [7:0]          left; /* beats behind this one */
    reg [3:0]          part; /* the word of the beat */
    reg [32*WORDS-1:0] data;
    reg [4*WORDS-1:0]  strobes;

    wire reads = arvalid && !(awvalid && writes_first);
    wire done = ack || state == PUT && sel == 0;
    wire last = part == WORDS - 1;
    assign arready = state == IDLE && reads;
    assign awready = state == IDLE && awvalid && !reads;
    assign wready = state == WRITE;
    assign rvalid = state == GIVE;
    assign rlast = left == 0;
    assign bvalid = state == ANSWER;
    assign {rresp, bresp} = {2{wrong, 1'b0}};
    assign asks = state == READ || state == PUT && sel != 0;
    assign we = state == PUT;
    assign adr = at[31:2] + part;
    assign given = data[31:0];
    assign sel = strobes[3:0];

    /* A beat that is narrower than a word is a part of one. */
    generate
        if (BYTES < 4) begin : narrow
            assign rdata = data >> {at[1:0], 3'd0};
        end else begin : wide
            assign rdata = data;
        end
    endgenerate
    wire [4*WORDS-1:0]  new_strobes = BYTES < 4 ? wstrb << at[1:0] : wstrb;
    wire [32*WORDS-1:0] new_data = BYTES < 4 ? wdata << {at[1:0], 3'd0} : wdata;
    wire [31:0]         aligned = at & ~(BYTES - 1);

    always @(posedge clk) begin
        case (state)
            IDLE: begin
                {part, wrong} <= 0;
                if (reads) {state, at, left, rid, writes_first} <= {READ, araddr & ~(BYTES - 1), arlen, arid, 1'b1};
                else if (awvalid) {state, at, left, bid, writes_first} <= {WRITE, awaddr & ~(BYTES - 1), awlen, awid, 1'b0};
            end
            READ: if (ack) begin
                data <= {word, data} >> 32;
                wrong <= wrong || refused;
                part <= last ? 4'd0 : part + 4'd1;
                state <= last ? GIVE : READ;
            end
            GIVE: if (rready) begin
                {at, left, wrong} <= {aligned + BYTES, left - 8'd1, 1'b0};
                state <= left == 0 ? IDLE : READ;
            end
            WRITE: if (wvalid) begin
                {data, strobes} <= {new_data, new_strobes};
                state <= PUT;
            end
            PUT: if (done) begin
                data <= data >> 32;
                strobes <= strobes >> 4;
                wrong <= wrong || ack && refused;
                part <= last ? 4'd0 : part + 4'd1;
                if (last) begin
                    {at, left} <= {aligned + BYTES, left - 8'd1};
                    state <= left == 0 ? ANSWER : WRITE;
                end
            end
            default: if (bready) state <= IDLE;
        endcase
        if (reset) {state, writes_first} <= 0;
    end
endmodule

`default_nettype wire
