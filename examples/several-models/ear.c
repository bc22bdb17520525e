#include "ear.h"

#include "ring.h"

enum {
    ROWS = TVMGEN_EMBEDDING_ROWS_COUNT / TVMGEN_FEATURES_ROW_COUNT,
    EMBEDDINGS = TVMGEN_CLASSIFIER_EMBEDDINGS_COUNT / TVMGEN_EMBEDDING_BANDS_COUNT,
    HOP = 2 /* rows from an embedding to the next */
};

/* What passes from model to model, outside of the arena: a run uses that for itself. */
static int8_t rows[ROWS][TVMGEN_FEATURES_ROW_COUNT];
static int8_t embeddings[EMBEDDINGS][TVMGEN_EMBEDDING_BANDS_COUNT];
static struct ring heard = {rows[0], sizeof rows[0], ROWS, 0};
static struct ring understood = {embeddings[0], sizeof embeddings[0], EMBEDDINGS, 0};

void ear_reset(void)
{
    heard.added = understood.added = 0;
    tvmgen_features_reset();
}

static int32_t embed(void)
{
    static int8_t window[sizeof rows], made[sizeof embeddings[0]];
    struct tvmgen_embedding_inputs inputs = {.rows = window};
    struct tvmgen_embedding_outputs outputs = {.bands = made};
    if (heard.added % HOP != 0 || !ring_newest(&heard, ROWS, window)) {
        return EAR_NOTHING_YET;
    }
    const int32_t status = tvmgen_embedding_run(&inputs, &outputs);
    if (status == TVMGEN_EMBEDDING_OK) {
        ring_add(&understood, made);
    }
    return status;
}

int32_t ear_hear(int16_t *samples, int8_t *scores)
{
    static int8_t row[sizeof rows[0]], window[sizeof embeddings];
    struct tvmgen_features_inputs frame = {.samples = samples};
    struct tvmgen_features_outputs features = {.row = row};
    struct tvmgen_classifier_inputs inputs = {.embeddings = window};
    struct tvmgen_classifier_outputs outputs = {.scores = scores};
    int32_t status = tvmgen_features_run(&frame, &features);
    if (status == TVMGEN_FEATURES_OK) {
        ring_add(&heard, row);
        status = embed();
    }
    if (status != 0) {
        return status;
    }
    return ring_newest(&understood, EMBEDDINGS, window) ? tvmgen_classifier_run(&inputs, &outputs) : EAR_NOTHING_YET;
}
