/* The machine's numbers. A machine of another size is this file with other ones; the compiler reads it too. */
#ifndef NPU_MACHINE_H
#define NPU_MACHINE_H

#define NPU_NAME "npu"
#define NPU_SYMBOL(name) npu_##name /* what every name begins with that others see */

#define NPU_ROWS 16     /* values that a column of the array multiplies and adds up in a cycle */
#define NPU_COLUMNS 16  /* output channels at a time */
#define NPU_PORTS 4     /* runs of consecutive bytes that the feeder reads in a cycle */
#define NPU_BUFFERS 2   /* 1: the compiler keeps transfers and computation apart */
#define NPU_ACTIVATION_BYTES 65536
#define NPU_WEIGHT_BYTES 49152 /* weights, and parameters of the output stage */
#define NPU_SUM_BYTES 16384

#define NPU_LOAD_BYTES 8 /* a cycle */
#define NPU_STORE_BYTES 8
#define NPU_FETCH_BYTES 8
#define NPU_DMA_START 32 /* cycles before the first byte */
#define NPU_COMPUTE_START 16
#define NPU_QUEUE 32 /* commands that wait before an engine */

#endif
