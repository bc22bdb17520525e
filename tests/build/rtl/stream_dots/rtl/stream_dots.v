// The first packet is a row, the second one the weights of all units: a sum goes out behind each of them.
module stream_dots (
    input  wire        clk, rst_n,
    input  wire        s_axis_tvalid, s_axis_tlast,
    output wire        s_axis_tready,
    input  wire [31:0] s_axis_tdata,
    output reg         m_axis_tvalid, m_axis_tlast,
    input  wire        m_axis_tready,
    output reg  [31:0] m_axis_tdata
);
    reg [31:0] row [0:255];
    reg [7:0]  at, last;
    reg        weights;
    reg [31:0] sum;

    wire [31:0] x = row[at];
    wire signed [15:0] p0 = $signed(x[7:0]) * $signed(s_axis_tdata[7:0]);
    wire signed [15:0] p1 = $signed(x[15:8]) * $signed(s_axis_tdata[15:8]);
    wire signed [15:0] p2 = $signed(x[23:16]) * $signed(s_axis_tdata[23:16]);
    wire signed [15:0] p3 = $signed(x[31:24]) * $signed(s_axis_tdata[31:24]);
    wire signed [31:0] more = p0 + p1 + p2 + p3;
    wire        takes = s_axis_tvalid && s_axis_tready;
    wire        ends = at == last;

    assign s_axis_tready = !m_axis_tvalid || m_axis_tready;

    always @(posedge clk) begin
        if (m_axis_tready)
            m_axis_tvalid <= 0;
        if (takes && !weights) begin
            row[at] <= s_axis_tdata;
            last <= at;
            at <= s_axis_tlast ? 8'd0 : at + 8'd1;
            weights <= s_axis_tlast;
        end
        if (takes && weights) begin
            sum <= ends ? 32'd0 : sum + more;
            at <= ends ? 8'd0 : at + 8'd1;
            if (ends) begin
                m_axis_tvalid <= 1;
                m_axis_tdata <= sum + more;
                m_axis_tlast <= s_axis_tlast;
            end
            if (s_axis_tlast)
                weights <= 0;
        end
        if (!rst_n) begin
            {at, weights, sum} <= 0;
            m_axis_tvalid <= 0;
        end
    end
endmodule
