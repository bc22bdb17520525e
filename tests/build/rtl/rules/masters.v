// Copies eight bytes through each of three buses, and breaks the rule whose number is written to BUG.
module masters (
    input  wire        clk, rst, psel, penable, pwrite,
    input  wire [3:0]  paddr,
    input  wire [31:0] pwdata,
    output wire [31:0] prdata,
    output wire        busy, irq,
    // AXI4
    output wire        arvalid, awvalid, wvalid, wlast, rready,
    input  wire        arready, awready, wready, rvalid, rlast, bvalid,
    output wire        bready, arid,
    input  wire        rid,
    input  wire [1:0]  rresp, bresp,
    output wire [31:0] araddr, awaddr, wdata,
    output wire [7:0]  arlen, awlen,
    output wire [2:0]  arsize, awsize,
    output wire [1:0]  arburst, awburst,
    output wire [3:0]  wstrb,
    input  wire [31:0] rdata,
    // Wishbone
    output wire        w_cyc, w_stb, w_we,
    output wire [31:0] w_adr, w_dat_w,
    output wire [3:0]  w_sel,
    input  wire [31:0] w_dat_r,
    input  wire        w_ack, w_err,
    // The plain port
    output wire        p_valid, p_write,
    output wire [31:0] p_addr, p_wdata,
    input  wire        p_ready, p_rvalid, p_error,
    input  wire [31:0] p_rdata
);
    reg [5:0]  bug;
    reg [1:0]  resets; // cycles of a reset, whose last one forgets the bug
    reg [7:0]  count;  // changes in every cycle
    reg        ar, aw, fails, done, rings;
    reg [1:0]  reads, writes;
    reg [3:0]  seen;   // SLVERR and DECERR of reads, and of writes
    reg [31:0] kept [0:1];
    reg        answers, wb, wb_writes, port, port_writes, port_waits;
    wire       start = psel && penable && pwrite && paddr == 8;

    assign prdata = paddr == 12 ? {26'd0, seen, fails, done} : 32'd0;
    assign busy = ar || aw || reads != 0 || writes != 0 || (answers && bug != 24) || wb || port || port_waits;
    assign irq = rings;

    assign arvalid = (ar && !(bug == 2 && count[0]) && (bug != 15 || arready)) || (bug == 14 && rst);
    assign araddr = bug == 10 ? 32'h1FFC : 32'h1000 + (bug == 1 ? {24'd0, count} << 3 : 32'd0);
    assign arlen = bug == 18 ? {7'd0, count[0]} : 8'd1;
    assign arsize = bug == 11 ? 3'd1 : 3'd2;
    assign arburst = bug == 12 ? 2'd0 : 2'd1;
    assign arid = 0;
    assign rready = bug != 16 || rid;
    assign awvalid = aw && !(bug == 4 && count[0]);
    assign awaddr = 32'h2000 + (bug == 3 ? {24'd0, count} << 3 : bug == 13 ? 32'd2 : 32'd0);
    assign awlen = 8'd1;
    assign awsize = 3'd2;
    assign awburst = 2'd1;
    assign wvalid = writes != 0 && !(bug == 6 && count[0]) && !(bug == 17 && aw);
    assign wdata = kept[writes == 1] + (bug == 5 ? {24'd0, count} : 32'd0);
    assign wstrb = bug == 7 ? {3'd7, count[0]} : 4'hF;
    assign wlast = bug == 8 ? 1'b0 : bug == 9 ? 1'b1 : writes == 1;
    assign bready = bug != 19 || bvalid;

    assign w_cyc = wb && bug != 22;
    assign w_stb = wb && !(bug == 21 && count[0]);
    assign w_we = wb_writes;
    assign w_adr = (wb_writes ? 32'h2000 : 32'h1000) + (bug == 20 ? {24'd0, count} << 3 : 32'd0);
    assign w_dat_w = kept[0] + (bug == 23 ? {24'd0, count} : 32'd0);
    assign w_sel = 4'hF;
    assign p_valid = port && !(bug == 31 && count[0]) && (bug != 33 || p_ready);
    assign p_write = port_writes;
    assign p_addr = (port_writes ? 32'h2004 : 32'h1004) + (bug == 30 ? {24'd0, count} << 3 : 32'd0);
    assign p_wdata = kept[1] + (bug == 32 ? {24'd0, count} : 32'd0);

    always @(posedge clk) begin
        count <= count + 8'd1;
        rings <= done; // a cycle behind the end
        if (psel && penable && pwrite && paddr == 4) bug <= pwdata[5:0];
        if (start) begin
            {ar, reads, fails, done} <= {1'b1, 2'd2, 2'd0};
        end
        if (arvalid && arready) ar <= 0;
        if (rvalid && rready) begin
            kept[reads == 1] <= rdata;
            reads <= reads - 2'd1;
            fails <= fails || rresp != 0;
            seen[1:0] <= seen[1:0] | {rresp == 3, rresp == 2};
            if (reads == 1) {aw, writes, answers} <= {1'b1, 2'd2, 1'b1};
        end
        if (awvalid && awready) aw <= 0;
        if (wvalid && wready) writes <= writes - 2'd1;
        if (bvalid && bready) begin
            fails <= fails || bresp != 0;
            seen[3:2] <= seen[3:2] | {bresp == 3, bresp == 2};
            {answers, wb, wb_writes} <= {1'b0, bug == 24 ? 2'b00 : 2'b10};
        end
        if (wb && (w_ack || w_err)) begin
            if (!wb_writes) kept[0] <= w_dat_r;
            fails <= fails || w_err;
            wb_writes <= !wb_writes;
            if (wb_writes) {wb, port, port_writes} <= 3'b010;
        end
        if (p_valid && p_ready) begin
            port <= 0;
            port_waits <= !port_writes;
            if (port_writes) done <= 1;
        end
        if (p_error) fails <= 1;
        if (port_waits && (p_rvalid || p_error)) begin
            kept[1] <= p_rdata;
            {port_waits, port, port_writes} <= 3'b011;
        end
        resets <= rst ? resets + 2'd1 : 2'd0;
        if (rst && resets == 3) bug <= 0;
        if (rst) {count, ar, aw, reads, writes, answers, wb, port, port_waits, done, fails, seen} <= 0;
    end
endmodule
