/* A VexRiscv core and its unit of custom instructions; memories and devices are the simulator's (machine.cpp). Ports and
 * wires are called as the core calls them. */
`default_nettype none

module uaccel_machine (
    input  wire        clk,
    input  wire        reset,
    input  wire [31:0] externalResetVector,
    input  wire [31:0] externalInterruptArray,

    output wire        iBusWishbone_CYC,
    output wire        iBusWishbone_STB,
    input  wire        iBusWishbone_ACK,
    output wire [29:0] iBusWishbone_ADR,
    input  wire [31:0] iBusWishbone_DAT_MISO,
    output wire [2:0]  iBusWishbone_CTI,

    output wire        dBusWishbone_CYC,
    output wire        dBusWishbone_STB,
    input  wire        dBusWishbone_ACK,
    output wire        dBusWishbone_WE,
    output wire [29:0] dBusWishbone_ADR,
    input  wire [31:0] dBusWishbone_DAT_MISO,
    output wire [31:0] dBusWishbone_DAT_MOSI,
    output wire [3:0]  dBusWishbone_SEL,
    output wire [2:0]  dBusWishbone_CTI
);
    wire        cmd_valid, cmd_ready, rsp_valid, rsp_ready;
    wire [9:0]  cmd_payload_function_id;
    wire [31:0] cmd_payload_inputs_0, cmd_payload_inputs_1, rsp_payload_outputs_0;

    uaccel_unit unit (.*);

    VexRiscv core (
        .timerInterrupt(1'b0),
        .softwareInterrupt(1'b0),
        .CfuPlugin_bus_cmd_valid(cmd_valid),
        .CfuPlugin_bus_cmd_ready(cmd_ready),
        .CfuPlugin_bus_cmd_payload_function_id(cmd_payload_function_id),
        .CfuPlugin_bus_cmd_payload_inputs_0(cmd_payload_inputs_0),
        .CfuPlugin_bus_cmd_payload_inputs_1(cmd_payload_inputs_1),
        .CfuPlugin_bus_rsp_valid(rsp_valid),
        .CfuPlugin_bus_rsp_ready(rsp_ready),
        .CfuPlugin_bus_rsp_payload_outputs_0(rsp_payload_outputs_0),
        .iBusWishbone_WE(),
        .iBusWishbone_DAT_MOSI(),
        .iBusWishbone_SEL(),
        .iBusWishbone_ERR(1'b0),
        .iBusWishbone_BTE(),
        .dBusWishbone_ERR(1'b0),
        .dBusWishbone_BTE(),
        .*
    );
endmodule

`default_nettype wire
