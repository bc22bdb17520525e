/* Three models of one export in turn, frame by frame: none spoils what another keeps. Sends the outputs as they come. */
#include <stdint.h>
#include <string.h>

#include "samples.h"
#include "send.h"
#include "tvmgen_trio.h"

static int8_t keyword[TVMGEN_STREAM_KEYWORD_SIZE], logits[TVMGEN_STREAM_LOGITS_SIZE];
static int8_t classes[TVMGEN_GESTURE_SOFTMAX_1_SIZE];
static int8_t features[TVMGEN_RESIDUAL_TANH_1_SIZE], scores[TVMGEN_RESIDUAL_FULLY_CONNECTED_1_SIZE];

int main(void)
{
    uaccel_port_init();
    for (int i = 0; i < SAMPLES; ++i) {
        struct tvmgen_stream_inputs frame = {stream_samples[i]};
        struct tvmgen_stream_outputs words = {keyword, logits};
        struct tvmgen_gesture_inputs motion = {gesture_samples[i]};
        struct tvmgen_gesture_outputs found = {classes};
        struct tvmgen_residual_inputs image = {residual_samples[i]};
        struct tvmgen_residual_outputs seen = {features, scores};
        int8_t status = (int8_t)tvmgen_stream_run(&frame, &words);
        send(&status, 1);
        status = (int8_t)tvmgen_residual_run(&image, &seen);
        send(&status, 1);
        send(logits, sizeof logits); /* of the model that ran before */
        status = (int8_t)tvmgen_gesture_run(&motion, &found);
        send(&status, 1);
        send(scores, sizeof scores);
        send(classes, sizeof classes);
    }
    return 0;
}
