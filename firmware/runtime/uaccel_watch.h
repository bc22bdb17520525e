/* Watching one inference, layer by layer, over a stream. */
#ifndef UACCEL_WATCH_H
#define UACCEL_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "uaccel_stream.h"

/* For `index`: every layer. */
#define UACCEL_EVERY_LAYER 0xFFFFu

/* Whether this firmware can: it was built with the hook. */
bool uaccel_watch_can(void);

/* Run the model and stream records of object UACCEL_OBJECT_LAYERS or UACCEL_OBJECT_TIMES. Returns what the model
 * returned. */
int32_t uaccel_watch_run(struct uaccel_stream *stream, uint8_t object, uint16_t index);

#endif
