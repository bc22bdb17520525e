/* Inferences in a row, and what they took. */
#ifndef UACCEL_INFER_H
#define UACCEL_INFER_H

#include <stdbool.h>
#include <stdint.h>

/* Runs the model `count` times, at least once, and writes what came of it into the body of a `run_reply`; stops at an
 * inference that fails. `is_called_off` is asked between two inferences; where it says so the rest is left, and false
 * returned. An inference that has begun always comes to its end: no driver is left in the middle of a job. */
bool uaccel_infer(uint32_t count, bool continues, bool (*is_called_off)(void), uint8_t *reply);

/* Of a model that is fed: the next bytes of that input, which the next inference counts as its own; begins:
 * they are the first. Returns what the model says. */
int32_t uaccel_infer_feed(const uint8_t *bytes, uint32_t count, bool begins);

#endif
