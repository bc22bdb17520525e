/* Two models that remember, one of them under another name too: frames go to one twice as fast as to its twin. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tvmgen_stream.h"
#include "tvmgen_twin.h"

#define FRAMES 6

static int8_t frames[FRAMES][TVMGEN_STREAM_FRAME_SIZE];
static int8_t keyword[TVMGEN_STREAM_KEYWORD_SIZE], logits[TVMGEN_STREAM_LOGITS_SIZE];

/* The same state whether it was set by itself or by hand, and whatever the other model does. */
int main(void)
{
    struct tvmgen_stream_inputs in = {0};
    struct tvmgen_stream_outputs out = {keyword, logits};
    struct tvmgen_twin_inputs twin_in = {0};
    struct tvmgen_twin_outputs twin_out = {keyword, logits};
    if (TVMGEN_STREAM_STATE_SIZE != 228 || fread(frames, sizeof frames, 1, stdin) != 1) {
        return 1;
    }
    for (int turn = 0; turn < 2; ++turn) {
        for (int i = 0; i < FRAMES; ++i) {
            in.frame = frames[i];
            twin_in.frame = frames[i / 2];
            if (tvmgen_stream_run(&in, &out) != TVMGEN_STREAM_OK) {
                return 2;
            }
            fwrite(logits, sizeof logits, 1, stdout);
            if (i % 2 == 0) {
                if (tvmgen_twin_run(&twin_in, &twin_out) != TVMGEN_TWIN_OK) {
                    return 3;
                }
                fwrite(logits, sizeof logits, 1, stdout);
            }
        }
        tvmgen_stream_reset();
        tvmgen_twin_reset();
    }
    return 0;
}
