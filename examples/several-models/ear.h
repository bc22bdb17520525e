/* Hears frame by frame: features of each frame, an embedding of every second row, and scores once there are enough. */
#ifndef EAR_H
#define EAR_H

#include <stdint.h>

#include "tvmgen_ear.h"

enum { EAR_NOTHING_YET = 1 };

/* Forget what was heard: another sound begins. */
void ear_reset(void);

/* One frame. Returns 0 with new scores, EAR_NOTHING_YET without, or below 0 what a model returned. */
int32_t ear_hear(int16_t *samples, int8_t *scores);

#endif
