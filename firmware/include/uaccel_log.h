/* The device's log: lines for whoever is at the other end of the console, beside the session. */
#ifndef UACCEL_LOG_H
#define UACCEL_LOG_H

#include <stdint.h>

#include "uaccel_protocol.h"

/* Send one line, at once; `level` is UACCEL_LOG_DEBUG, _INFO, _WARNING or _ERROR, `text` is UTF-8 without a newline.
 * Dropped where nobody wants to hear that level; text beyond UACCEL_BODY_BYTES - 1 bytes is cut off. Not from an
 * interrupt: it would break into the frame that is being sent. */
void uaccel_log(uint8_t level, const char *text);

#endif
