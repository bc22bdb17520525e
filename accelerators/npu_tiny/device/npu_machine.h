/* The tiny machine's numbers; ../../npu/device has everything else. */
#ifndef NPU_MACHINE_H
#define NPU_MACHINE_H

#define NPU_NAME "npu_tiny"
#define NPU_SYMBOL(name) npu_tiny_##name /* what every name begins with that others see */

#define NPU_ROWS 4      /* values that a column of the array multiplies and adds up in a cycle */
#define NPU_COLUMNS 4   /* output channels at a time */
#define NPU_PORTS 2     /* runs of consecutive bytes that the feeder reads in a cycle */
#define NPU_BUFFERS 2   /* 1: the compiler keeps transfers and computation apart */
#define NPU_ACTIVATION_BYTES 16384
#define NPU_WEIGHT_BYTES 16384 /* weights, and parameters of the output stage */
#define NPU_SUM_BYTES 4096

#define NPU_BUS_BYTES 4 /* a word of the bus, which commands, loads and stores share */
#define NPU_BURST 16 /* words that loads and stores ask for at once, */
#define NPU_UNDER_WAY 8 /* and a load for more while fewer than these are missing */
#define NPU_RAM_FIRST 3 /* cycles that the bus waits for the first word of a burst, */
#define NPU_RAM_NEXT 0  /* and for each further one */
#define NPU_FLASH_FIRST 3 /* the same where constants and commands lie: here, in SRAM, too */
#define NPU_FLASH_NEXT 0
#define NPU_FETCH_START 1 /* cycles from a job's start until it asks for its first command */
#define NPU_FETCHED 8 /* words of commands that are asked for at once, */
#define NPU_FETCH_ROOM 16 /* room for those that wait, */
#define NPU_FETCH_HELD 2 /* and cycles that each one waits at least */
#define NPU_DMA_START 2 /* cycles from a transfer's start until it asks for the bus */
#define NPU_STORE_END 3 /* cycles from a store's last word until memory has answered */
#define NPU_UNPACK 0 /* bytes a cycle of a load that unpacks them; 0: none does */
#define NPU_QUEUE 8 /* commands that wait before an engine */

#endif
