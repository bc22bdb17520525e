/* Frames, out of what the port brings. */
#ifndef UACCEL_LINE_H
#define UACCEL_LINE_H

#include "uaccel_frame.h"

/* Forget what has begun. */
void uaccel_line_start(void);

/* Take a chunk from the port, at most; sleeps where nothing has arrived. The one before must be used up. Returns 0, or
 * UACCEL_PORT_CLOSED. */
int32_t uaccel_line_take(void);

/* What the next bytes of the chunk end; UACCEL_FRAME_OPEN where all are used up. A whole frame lies in the reader. */
enum uaccel_frame_state uaccel_line_next(void);
const struct uaccel_frame_reader *uaccel_line_reader(void);

#endif
