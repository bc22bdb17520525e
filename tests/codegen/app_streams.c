/* Two streams of one model in turn, a state that is saved, begun anew and restored, and memory that is no state. Its
 * statuses and scores, in order, are what the test compares. */
#include <stdint.h>
#include <string.h>

#include "frames.h"
#include "send.h"
#include "tvmgen_other.h"
#include "tvmgen_stream.h"
#include "uaccel_kernel.h"

typedef char state_of_both_has_one_size[TVMGEN_OTHER_STATE_SIZE == TVMGEN_STREAM_STATE_SIZE ? 1 : -1];

static UACCEL_ALIGNED(TVMGEN_STREAM_STATE_ALIGNMENT) uint8_t streams[2][TVMGEN_STREAM_STATE_SIZE];
static uint8_t saved[TVMGEN_STREAM_STATE_SIZE];

static void hear(void *state, int frame)
{
    static int8_t given[TVMGEN_STREAM_FRAME_SIZE];
    static int8_t keyword[TVMGEN_STREAM_KEYWORD_SIZE], logits[TVMGEN_STREAM_LOGITS_SIZE];
    struct tvmgen_stream_inputs inputs = {given};
    struct tvmgen_stream_outputs outputs = {keyword, logits};
    memcpy(given, frames[frame], sizeof given);
    memset(logits, 0, sizeof logits);
    const int32_t status = state == &saved ? tvmgen_stream_run(&inputs, &outputs)
                                           : tvmgen_stream_run_with(state, &inputs, &outputs);
    const int8_t told = (int8_t)status;
    send(&told, sizeof told);
    send(logits, sizeof logits);
}

#define OWN_STATE (&saved) /* for hear() alone */

int main(void)
{
    uaccel_port_init();
    memset(streams, 0xA5, sizeof streams);
    hear(streams[0], 0); /* nobody began it */
    hear(NULL, 0);
    tvmgen_stream_init(streams[0]);
    tvmgen_stream_init(streams[1]);
    for (int i = 0; i < FRAMES; ++i) {
        hear(streams[0], i);
        hear(streams[1], FRAMES - 1 - i);
        hear(OWN_STATE, 0);
        if (i == 2) {
            memcpy(saved, streams[0], sizeof saved);
            tvmgen_stream_init(streams[0]);
            hear(streams[0], i);
            memcpy(streams[0], saved, sizeof saved);
        }
    }
    memcpy(streams[1], tvmgen_stream_state(), sizeof saved); /* what was the static state's goes on as a stream */
    tvmgen_stream_reset();
    hear(streams[1], 0);
    hear(OWN_STATE, 0);
    memcpy(tvmgen_stream_state(), saved, sizeof saved); /* and the other way round */
    hear(OWN_STATE, 3);
    tvmgen_other_init(streams[0]);
    hear(streams[0], 0); /* the state of another model */
    return 0;
}
