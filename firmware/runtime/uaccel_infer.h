/* Inferences in a row, and what they took. */
#ifndef UACCEL_INFER_H
#define UACCEL_INFER_H

#include <stdbool.h>
#include <stdint.h>

/* Runs the model `count` times, at least once, and writes what came of it into the body of a `run_reply`; stops at an
 * inference that fails. `is_called_off` is asked between two inferences; where it says so the rest is left, and false
 * returned. An inference that has begun always comes to its end: no driver is left in the middle of a job. */
bool uaccel_infer(uint32_t count, bool continues, bool (*is_called_off)(void), uint8_t *reply);

#endif
