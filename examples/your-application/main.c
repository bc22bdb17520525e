/* Which gesture is it? Every recording goes through the model, and the most probable gesture is printed. */
#include <stdio.h>
#include <string.h>

#include "recordings.h" /* labels, recordings: as recordings.py writes them */
#include "tvmgen_gesture.h"

_Static_assert(sizeof recordings[0] == TVMGEN_GESTURE_MOTION_SIZE, "recordings are not what the model takes");
_Static_assert(sizeof labels / sizeof labels[0] == TVMGEN_GESTURE_SOFTMAX_1_SIZE, "a label is missing");

int main(void)
{
    /* Inputs and outputs lie in the model's own memory: these pointers never change. */
    int8_t *const motion = tvmgen_gesture_map_inputs().motion;
    const int8_t *const probabilities = tvmgen_gesture_map_outputs().softmax_1;

    for (size_t i = 0; i < sizeof recordings / sizeof recordings[0]; ++i) {
        int best = 0;
        memcpy(motion, recordings[i], TVMGEN_GESTURE_MOTION_SIZE); /* before every run: it uses the bytes for others */
        if (tvmgen_gesture_run() != TVMGEN_GESTURE_OK) {
            return 1;
        }
        for (int j = 1; j < TVMGEN_GESTURE_SOFTMAX_1_SIZE; ++j) {
            best = probabilities[j] > probabilities[best] ? j : best;
        }
        /* A probability is (q + 128) / 256: the scale and zero point that the header names. */
        printf("recording %zu: %s (%d %%)\n", i, labels[best], (probabilities[best] + 128) * 100 / 256);
    }
    return 0;
}
