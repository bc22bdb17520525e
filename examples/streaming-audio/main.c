/* Each word goes into the model frame by frame, as a microphone would give them. */
#include <stdio.h>

#include "frames.h" /* as frames.py writes it */
#include "tvmgen_stream.h"

enum { WORDS = sizeof words / sizeof words[0], FRAMES = sizeof words[0] / sizeof words[0][0] };

static int8_t frame[TVMGEN_STREAM_FRAME_SIZE];
static int8_t keyword[TVMGEN_STREAM_KEYWORD_SIZE];
static int8_t logits[TVMGEN_STREAM_LOGITS_SIZE];

int main(void)
{
    struct tvmgen_stream_inputs inputs = {.frame = frame};
    struct tvmgen_stream_outputs outputs = {.keyword = keyword, .logits = logits};
    for (int word = 0; word < WORDS; ++word) {
        tvmgen_stream_reset(); /* a word has ended: forget it */
        for (int i = 0; i < FRAMES; ++i) {
            for (int band = 0; band < TVMGEN_STREAM_FRAME_SIZE; ++band) {
                frame[band] = words[word][i][band];
            }
            if (tvmgen_stream_run(&inputs, &outputs) != TVMGEN_STREAM_OK) {
                return 1;
            }
            printf("%d %d:", word, i);
            for (int j = 0; j < TVMGEN_STREAM_LOGITS_SIZE; ++j) {
                printf(" %d", logits[j]);
            }
            printf("\n");
        }
    }
    return 0;
}
