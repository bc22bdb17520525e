/* The driver of conveyor, an engine that plays command streams.
 *
 * A stream lies in flash, or wherever the device reaches, and is never changed. It speaks of memory by numbers: the
 * places. Tell where each of them is, then play:
 *
 *   conveyor_place(0, weights);
 *   conveyor_place(1, input);
 *   conveyor_place(2, output);
 *   conveyor_play(stream, sizeof stream);
 *
 * All functions return 0 or a code of uaccel_accelerator.h. From main() alone. */
#ifndef CONVEYOR_H
#define CONVEYOR_H

#include <stdint.h>

#define CONVEYOR_PLACES 64u

/* Checks that the device is there, that it is a conveyor, and of which version. */
int32_t TVMDeviceConveyorActivate(void *device);
/* Before a stream's places are told, and after it was played: forgets all places. */
int32_t TVMDeviceConveyorOpen(void *device);
int32_t TVMDeviceConveyorClose(void *device);
int32_t TVMDeviceConveyorDeactivate(void *device);

/* Place `number` of the stream that is played next. The memory is as large as the stream says, and is written where the
 * stream calls it an output or scratch memory. */
int32_t conveyor_place(uint32_t number, const void *memory);

/* Checks all of the stream, and then has the device run it to its end. Outputs hold nothing that means something when
 * it returns an error. Forgets all places. */
int32_t conveyor_play(const uint8_t *stream, uint32_t bytes);

#endif
