/* The session server: answers a host's requests about the one model of this firmware (docs/protocol.md).
 *
 * It stands on uaccel_port.h and uaccel_model.h, needs no heap, and keeps UACCEL_BODY_BYTES + 880 bytes or so of its
 * own. A product that calls the model itself leaves it out. */
#ifndef UACCEL_SERVER_H
#define UACCEL_SERVER_H

#include <stdint.h>

/* Say that the firmware has started, and forget any session. */
void uaccel_server_start(void);

/* Take what has arrived, and answer what is complete. Returns 0, or UACCEL_PORT_CLOSED where nothing will come any
 * more. A request that runs the model takes as long as the model does; between two of its inferences the line is looked
 * at, and a new session or a reset ends it. */
int32_t uaccel_server_poll(void);

/* Start, and poll until the line is closed; on a board: for ever. */
void uaccel_serve(void);

#endif
