// Four registers behind AXI4-Lite; breaks the rule whose number is written to register 0.
module slave (
    input  wire        clk, rst,
    input  wire        awvalid, wvalid, bready, arvalid, rready,
    input  wire [3:0]  awaddr, araddr,
    input  wire [31:0] wdata,
    output wire        awready, wready, arready, bvalid, rvalid,
    output wire [1:0]  bresp, rresp,
    output wire [31:0] rdata
);
    reg [31:0] file [0:3];
    reg [31:0] data;
    reg [3:0]  to;
    reg        has_to, has_data, answers, found, soon;
    reg [7:0]  count;
    wire [5:0] bug = file[0][5:0];

    assign awready = bug == 7 ? !has_to && wvalid : !has_to;
    assign wready = bug == 8 ? !has_data && has_to : !has_data;
    assign arready = !found && (bug != 10 || arvalid);
    assign bvalid = (answers && !(bug == 1 && count[0])) || (bug == 5 && has_to && !has_data);
    assign bresp = bug == 2 ? {count[0], 1'b0} : bug == 9 ? 2'd1 : 2'd0;
    assign rvalid = (found && !(bug == 3 && count[0])) || (bug == 6 && count[2:0] == 0);
    assign rdata = data + (bug == 4 ? {24'd0, count} : 32'd0);
    assign rresp = bug == 11 ? 2'd1 : 2'd0;

    always @(posedge clk) begin
        count <= count + 8'd1;
        if (awvalid && awready) {has_to, to} <= {1'b1, awaddr};
        if (wvalid && wready) has_data <= 1;
        if (wvalid && wready && (has_to || awvalid)) file[has_to ? to[3:2] : awaddr[3:2]] <= wdata;
        else if (wvalid && wready) file[3] <= wdata; // there is no room for it until its address comes
        if (awvalid && awready && has_data) file[awaddr[3:2]] <= file[3];
        if (has_to && has_data && !answers) answers <= 1;
        if (bvalid && bready) {answers, has_to, has_data} <= 0;
        if (arvalid && arready) {found, data} <= {1'b1, file[araddr[3:2]]};
        if (rvalid && rready) found <= 0;
        if (rst) {has_to, has_data, answers, found, count, file[0]} <= 0;
    end
endmodule
