// Reads a run of bytes through AXI4 as a stream of 64-bit words: from the word that holds its first byte to the one that
// holds its last. Whoever asks takes every word at once, and may ask for the next run as soon as the addresses of one are
// out. Bursts end at borders of 4 KiB.
module nuc_reader (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        clear,      // a new job: nothing has failed
    // A request, while ready.
    input  wire        start,
    input  wire [31:0] address,
    input  wire [12:0] bytes,      // at least 1
    output wire        ready,
    output wire        idle,       // and no word is still to come
    // The words.
    output wire        word_valid,
    output wire [63:0] word,
    output reg         failed,     // of the job's requests
    // AXI4
    output wire        arvalid,
    input  wire        arready,
    output wire [31:0] araddr,
    output wire [7:0]  arlen,
    output wire [2:0]  arsize,
    output wire [1:0]  arburst,
    input  wire        rvalid,
    output wire        rready,
    input  wire [63:0] rdata,
    input  wire [1:0]  rresp,
    input  wire        rlast
);
    reg [31:0] next;      // address of the next burst
    reg [10:0] asked;     // words that are still to be asked for
    reg [10:0] missing;   // words that are still to come

    wire [9:0]  to_border = 10'd512 - {1'b0, next[11:3]};
    wire [10:0] burst_a = asked > 11'd256 ? 11'd256 : asked;
    wire [10:0] burst = burst_a > {1'b0, to_border} ? {1'b0, to_border} : burst_a;
    wire        asks_last = arvalid && arready && asked == burst;
    wire [13:0] last = {11'd0, address[2:0]} + {1'b0, bytes} + 14'd7;

    assign ready = asked == 0 || asks_last;
    assign idle = missing == 0;
    assign arvalid = asked != 0;
    assign araddr = next;
    assign arlen = burst[7:0] - 8'd1;
    assign arsize = 3'd3;
    assign arburst = 2'd1;
    assign rready = 1'b1;
    assign word_valid = rvalid;
    assign word = rdata;

    always @(posedge clk) begin
        if (!rst_n) begin
            asked <= 0;
            missing <= 0;
            failed <= 0;
        end else begin
            if (start) begin
                next <= {address[31:3], 3'd0};
                asked <= last[13:3];
            end else if (arvalid && arready) begin
                next <= next + {18'd0, burst, 3'd0};
                asked <= asked - burst;
            end
            missing <= missing + (start ? last[13:3] : 11'd0) - {10'd0, rvalid};
            failed <= !clear && (failed || (rvalid && rresp != 0));
        end
    end

    wire unused = rlast; // the words are counted
endmodule
