/* Two models in one image, and one of them under another name too: each runs between runs of the others. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tvmgen_gesture.h"
#include "tvmgen_residual.h"
#include "tvmgen_twin.h"

static int8_t motion[TVMGEN_GESTURE_MOTION_SIZE];
static int8_t image[TVMGEN_RESIDUAL_IMAGE_SIZE];
static int8_t gesture[TVMGEN_GESTURE_SOFTMAX_1_SIZE], twin[TVMGEN_TWIN_SOFTMAX_1_SIZE];
static int8_t features[TVMGEN_RESIDUAL_TANH_1_SIZE], classes[TVMGEN_RESIDUAL_FULLY_CONNECTED_1_SIZE];

int main(void)
{
    struct tvmgen_gesture_inputs gesture_in = {motion};
    struct tvmgen_gesture_outputs gesture_out = {gesture};
    struct tvmgen_twin_inputs twin_in = {motion};
    struct tvmgen_twin_outputs twin_out = {twin};
    struct tvmgen_residual_inputs residual_in = {image};
    struct tvmgen_residual_outputs residual_out = {features, classes};
    if (fread(motion, sizeof motion, 1, stdin) != 1 || fread(image, sizeof image, 1, stdin) != 1) {
        return 1;
    }
    for (int i = 0; i < 2; ++i) {
        memset(gesture, i, sizeof gesture);
        memset(twin, i, sizeof twin);
        memset(features, i, sizeof features);
        memset(classes, i, sizeof classes);
        if (tvmgen_gesture_run(&gesture_in, &gesture_out) != TVMGEN_GESTURE_OK ||
            tvmgen_residual_run(&residual_in, &residual_out) != TVMGEN_RESIDUAL_OK ||
            tvmgen_twin_run(&twin_in, &twin_out) != TVMGEN_TWIN_OK) {
            return 2;
        }
        fwrite(gesture, sizeof gesture, 1, stdout);
        fwrite(twin, sizeof twin, 1, stdout);
        fwrite(features, sizeof features, 1, stdout);
        fwrite(classes, sizeof classes, 1, stdout);
    }
    return 0;
}
