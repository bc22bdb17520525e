/* Two threads run one model at the same time, each with a state and a workspace of its own: each goes on as it does
 * alone. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "tvmgen_stream.h"

enum { RUNS = 2000 };

struct stream {
    uint32_t state[TVMGEN_STREAM_STATE_SIZE / 4];
    uint64_t pool[TVMGEN_STREAM_WORKSPACE_SIZE / 8 + 1];
    int8_t logits[RUNS][TVMGEN_STREAM_LOGITS_SIZE];
    int seed;
};

static void *hear(void *given)
{
    struct stream *const stream = given;
    int8_t frame[TVMGEN_STREAM_FRAME_SIZE], keyword[TVMGEN_STREAM_KEYWORD_SIZE];
    struct tvmgen_stream_inputs inputs = {frame};
    struct tvmgen_stream_workspace_pools pools = {stream->pool};
    tvmgen_stream_init(stream->state);
    for (int i = 0; i < RUNS; ++i) {
        struct tvmgen_stream_outputs outputs = {keyword, stream->logits[i]};
        memset(frame, (i * stream->seed) % 100, sizeof frame);
        if (tvmgen_stream_run_with(stream->state, &inputs, &outputs, &pools) != TVMGEN_STREAM_OK) {
            return stream;
        }
    }
    return NULL;
}

int main(void)
{
    static struct stream alone[2], together[2];
    pthread_t threads[2];
    int failures = 0;
    for (int i = 0; i < 2; ++i) {
        alone[i].seed = together[i].seed = 3 + 4 * i;
        failures += hear(&alone[i]) != NULL;
    }
    for (int i = 0; i < 2; ++i) {
        failures += pthread_create(&threads[i], NULL, hear, &together[i]) != 0;
    }
    for (int i = 0; i < 2; ++i) {
        void *failed = NULL;
        failures += pthread_join(threads[i], &failed) != 0 || failed != NULL;
        failures += memcmp(alone[i].logits, together[i].logits, sizeof alone[i].logits) != 0;
    }
    return failures != 0 || memcmp(alone[0].logits, alone[1].logits, sizeof alone[0].logits) == 0;
}
