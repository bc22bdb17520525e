/* The small machine's numbers; ../../npu/device has everything else. */
#ifndef NPU_MACHINE_H
#define NPU_MACHINE_H

#define NPU_NAME "npu_small"
#define NPU_SYMBOL(name) npu_small_##name /* what every name begins with that others see */

#define NPU_ROWS 8      /* values that a column of the array multiplies and adds up in a cycle */
#define NPU_COLUMNS 8   /* output channels at a time */
#define NPU_PORTS 2     /* runs of consecutive bytes that the feeder reads in a cycle */
#define NPU_BUFFERS 1   /* 1: the compiler keeps transfers and computation apart */
#define NPU_ACTIVATION_BYTES 8192
#define NPU_WEIGHT_BYTES 6144 /* weights, and parameters of the output stage */
#define NPU_SUM_BYTES 2048

#define NPU_LOAD_BYTES 2 /* a cycle */
#define NPU_STORE_BYTES 2
#define NPU_FETCH_BYTES 2
#define NPU_DMA_START 100 /* cycles before the first byte */
#define NPU_COMPUTE_START 16
#define NPU_QUEUE 4 /* commands that wait before an engine */

#endif
