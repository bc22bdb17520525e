// Writes a row of 32-bit numbers through AXI4, from any address that is a multiple of 4. Numbers come in pairs, the first
// in the low half; where the row begins in the middle of a 64-bit word, halves of two pairs share a word. The next row may
// begin before memory has answered to the last one. A burst's words do not wait until its address is taken.
module nuc_writer (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        clear,      // a new job: nothing has failed
    // A request, while ready.
    input  wire        start,
    input  wire [31:0] address,
    input  wire [10:0] numbers,    // at least 1
    output wire        ready,
    output wire        idle,       // and all is answered
    output reg         failed,     // of the job's requests
    // The pairs.
    input  wire        pair_valid,
    output wire        pair_ready,
    input  wire [63:0] pair,
    // AXI4
    output wire        awvalid,
    input  wire        awready,
    output wire [31:0] awaddr,
    output wire [7:0]  awlen,
    output wire [2:0]  awsize,
    output wire [1:0]  awburst,
    output wire        wvalid,
    input  wire        wready,
    output wire [63:0] wdata,
    output wire [7:0]  wstrb,
    output wire        wlast,
    input  wire        bvalid,
    output wire        bready,
    input  wire [1:0]  bresp
);
    reg         odd;      // the row begins in the middle of a word
    reg  [31:0] next;     // address of the next burst
    reg  [10:0] left;     // words that belong to no burst yet
    reg  [10:0] beats;    // words of the burst under way
    reg  [10:0] pairs;    // that are still to be taken
    reg         first;    // word of the row
    reg         cut;      // the last word is half a word
    reg         begins;   // a burst, with this cycle
    reg         asks;     // an address is offered
    reg  [31:0] held;     // the same one in later cycles
    reg  [7:0]  held_length;
    reg  [7:0]  waits;    // for the answers to so many bursts
    reg  [31:0] carry;

    wire [9:0]  to_border = 10'd512 - {1'b0, next[11:3]};
    wire [10:0] burst_a = left > 11'd256 ? 11'd256 : left;
    wire [10:0] burst = burst_a > {1'b0, to_border} ? {1'b0, to_border} : burst_a;
    wire        needs_pair = pairs != 0;
    wire        last_word = left == 0 && beats == 11'd1;
    wire        goes = wvalid && wready;
    wire        ended = !begins && beats == (goes ? 11'd1 : 11'd0);
    wire        taken = !asks || (awvalid && awready);

    assign ready = left == 0 && beats == 0 && !asks;
    assign idle = ready && waits == 0;
    assign awvalid = asks && !(&waits);
    assign awaddr = begins ? next : held;
    assign awlen = begins ? burst[7:0] - 8'd1 : held_length;
    assign awsize = 3'd3;
    assign awburst = 2'd1;
    assign wvalid = beats != 0 && (pair_valid || !needs_pair);
    assign wdata = odd ? {pair[31:0], carry} : pair;
    assign wstrb = {last_word && cut ? 4'h0 : 4'hF, odd && first ? 4'h0 : 4'hF};
    assign wlast = beats == 11'd1;
    assign pair_ready = beats != 0 && wready && needs_pair;
    assign bready = 1'b1;

    always @(posedge clk) begin
        if (!rst_n) begin
            left <= 0;
            beats <= 0;
            begins <= 0;
            asks <= 0;
            waits <= 0;
            failed <= 0;
        end else begin
            waits <= waits + {7'd0, awvalid && awready} - {7'd0, bvalid};
            failed <= !clear && (failed || (bvalid && bresp != 0));
            if (start) begin
                odd <= address[2];
                next <= {address[31:3], 3'd0};
                left <= address[2] ? {1'b0, numbers[10:1]} + 11'd1 : {1'b0, numbers[10:1]} + {10'd0, numbers[0]};
                pairs <= {1'b0, numbers[10:1]} + {10'd0, numbers[0]};
                cut <= address[2] ^ numbers[0];
                first <= 1;
            end
            begins <= start || (ended && taken && left != 0);
            asks <= start || !taken || (ended && left != 0);
            if (begins) begin
                held <= next;
                held_length <= awlen;
                beats <= burst;
                left <= left - burst;
                next <= next + {18'd0, burst, 3'd0};
            end
            if (goes) begin
                beats <= beats - 11'd1;
                first <= 0;
                carry <= pair[63:32];
                if (needs_pair)
                    pairs <= pairs - 11'd1;
            end
        end
    end
endmodule
