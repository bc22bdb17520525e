/* A VexRiscv core and its unit of custom instructions; memories and devices are the simulator's (machine.cpp). */
`default_nettype none

module uaccel_machine (
    input  wire        clk,
    input  wire        reset,
    input  wire [31:0] reset_vector,
    input  wire [31:0] interrupts,

    output wire        fetch_cyc,
    output wire        fetch_stb,
    input  wire        fetch_ack,
    output wire [29:0] fetch_adr,
    input  wire [31:0] fetch_data,
    output wire [2:0]  fetch_cti,

    output wire        data_cyc,
    output wire        data_stb,
    input  wire        data_ack,
    output wire        data_we,
    output wire [29:0] data_adr,
    input  wire [31:0] data_in,
    output wire [31:0] data_out,
    output wire [3:0]  data_sel,
    output wire [2:0]  data_cti
);
    wire        command_valid, command_ready, response_valid, response_ready;
    wire [9:0]  function_id;
    wire [31:0] left, right, result;

    uaccel_cfu cfu (
        .command_valid(command_valid),
        .command_ready(command_ready),
        .function_id(function_id),
        .left(left),
        .right(right),
        .response_valid(response_valid),
        .response_ready(response_ready),
        .result(result)
    );

    VexRiscv core (
        .clk(clk),
        .reset(reset),
        .externalResetVector(reset_vector),
        .timerInterrupt(1'b0),
        .softwareInterrupt(1'b0),
        .externalInterruptArray(interrupts),
        .CfuPlugin_bus_cmd_valid(command_valid),
        .CfuPlugin_bus_cmd_ready(command_ready),
        .CfuPlugin_bus_cmd_payload_function_id(function_id),
        .CfuPlugin_bus_cmd_payload_inputs_0(left),
        .CfuPlugin_bus_cmd_payload_inputs_1(right),
        .CfuPlugin_bus_rsp_valid(response_valid),
        .CfuPlugin_bus_rsp_ready(response_ready),
        .CfuPlugin_bus_rsp_payload_outputs_0(result),
        .iBusWishbone_CYC(fetch_cyc),
        .iBusWishbone_STB(fetch_stb),
        .iBusWishbone_ACK(fetch_ack),
        .iBusWishbone_WE(),
        .iBusWishbone_ADR(fetch_adr),
        .iBusWishbone_DAT_MISO(fetch_data),
        .iBusWishbone_DAT_MOSI(),
        .iBusWishbone_SEL(),
        .iBusWishbone_ERR(1'b0),
        .iBusWishbone_CTI(fetch_cti),
        .iBusWishbone_BTE(),
        .dBusWishbone_CYC(data_cyc),
        .dBusWishbone_STB(data_stb),
        .dBusWishbone_ACK(data_ack),
        .dBusWishbone_WE(data_we),
        .dBusWishbone_ADR(data_adr),
        .dBusWishbone_DAT_MISO(data_in),
        .dBusWishbone_DAT_MOSI(data_out),
        .dBusWishbone_SEL(data_sel),
        .dBusWishbone_ERR(1'b0),
        .dBusWishbone_CTI(data_cti),
        .dBusWishbone_BTE()
    );
endmodule

`default_nettype wire
