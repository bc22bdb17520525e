// A memory with a port to write and a port to read, whose data come a cycle later.
module nuc_memory #(
    parameter WIDTH = 64,
    parameter DEPTH = 128,
    parameter ADDRESS = 7
) (
    input  wire               clk,
    input  wire               write,
    input  wire [ADDRESS-1:0] write_at,
    input  wire [WIDTH-1:0]   data,
    input  wire [ADDRESS-1:0] read_at,
    output reg  [WIDTH-1:0]   found
);
    reg [WIDTH-1:0] words [0:DEPTH-1];

    always @(posedge clk) begin
        if (write)
            words[write_at] <= data;
        found <= words[read_at];
    end
endmodule
