/* The model as a native process: inputs on stdin, outputs on stdout, one inference after the other until stdin ends.
 *
 * Usage: firmware [--stack FILE] [--layers FILE]
 *   --stack FILE    write the bytes of stack that the inferences used at most
 *   --layers FILE   append each layer's outputs: three uint32 (layer, output, bytes), then the bytes; only in a build
 *                   with UACCEL_OBSERVE
 *
 * Exit status: 0 good, 1 a bad call, 4 an input that ended early, 5 the model returned an error. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "uaccel_model.h"
#include "uaccel_observe.h"

enum { STACK_BYTES = 1 << 20, STACK_PAINT = 0xA5, STACK_GUARD = 512, BAD_CALL = 1, SHORT_INPUT = 4, MODEL_ERROR = 5, MAX_TENSORS = 256 };

static FILE *layers;
static int status;

#ifdef UACCEL_OBSERVE
void uaccel_layer_begin(const char *model, int32_t layer)
{
    (void)model;
    (void)layer;
}

void uaccel_layer_end(const char *model, int32_t layer, int32_t output, const void *data, uint32_t bytes)
{
    const uint32_t head[3] = {(uint32_t)layer, (uint32_t)output, bytes};
    (void)model;
    if (layers != NULL) {
        fwrite(head, sizeof head, 1, layers);
        fwrite(data, 1, bytes, layers);
    }
}
#endif

struct job {
    void *inputs[MAX_TENSORS];
    void *outputs[MAX_TENSORS];
    uint8_t *stack;
    size_t stack_used;
};

/* Paint the stack below this frame, run, and count the bytes that lost their paint. */
static void *run_inference(void *argument)
{
    struct job *job = argument;
    uint8_t here = 0;
    uint8_t *const top = job->stack + ((uintptr_t)&here - (uintptr_t)job->stack) - STACK_GUARD;
    const uint8_t *lowest = job->stack;
    memset(job->stack, STACK_PAINT, (size_t)(top - job->stack));
    const int32_t result = uaccel_model.run(job->inputs, job->outputs);
    if (result != 0) {
        fprintf(stderr, "firmware: model %s returned %ld\n", uaccel_model.name, (long)result);
        status = MODEL_ERROR;
    }
    while (lowest < top && *lowest == STACK_PAINT) {
        ++lowest;
    }
    job->stack_used = (size_t)(top - lowest) + STACK_GUARD;
    return NULL;
}

/* Run one job on a thread whose stack is ours to look at. */
static size_t run_on_painted_stack(struct job *job)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, job->stack, STACK_BYTES) != 0 ||
        pthread_create(&thread, &attributes, run_inference, job) != 0) {
        fprintf(stderr, "firmware: cannot start a thread\n");
        status = MODEL_ERROR;
        return 0;
    }
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    return job->stack_used;
}

/* Every tensor's place in one allocation. */
static uint8_t *place(struct job *job)
{
    uint8_t *memory = aligned_alloc(16, uaccel_model.io_bytes + 16u);
    uint8_t *next = memory;
    if (memory == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < uaccel_model.input_count; ++i) {
        job->inputs[i] = next;
        next += (uaccel_model.inputs[i].bytes + 15u) & ~15u;
    }
    for (uint32_t i = 0; i < uaccel_model.output_count; ++i) {
        job->outputs[i] = next;
        next += (uaccel_model.outputs[i].bytes + 15u) & ~15u;
    }
    return memory;
}

/* 1: a whole set of inputs, 0: the end, -1: the end in the middle. */
static int read_inputs(const struct job *job)
{
    for (uint32_t i = 0; i < uaccel_model.input_count; ++i) {
        const size_t wanted = uaccel_model.inputs[i].bytes;
        const size_t got = fread(job->inputs[i], 1, wanted, stdin);
        if (got != wanted) {
            return i == 0 && got == 0 ? 0 : -1;
        }
    }
    return 1;
}

static void write_outputs(const struct job *job)
{
    for (uint32_t i = 0; i < uaccel_model.output_count; ++i) {
        fwrite(job->outputs[i], 1, uaccel_model.outputs[i].bytes, stdout);
    }
    fflush(stdout);
}

/* One inference for each set of inputs; the most stack that one took. */
static size_t serve(struct job *job)
{
    size_t most = 0;
    int got = 1;
    while (status == 0 && (got = read_inputs(job)) > 0) {
        const size_t used = run_on_painted_stack(job);
        most = used > most ? used : most;
        write_outputs(job);
        if (uaccel_model.input_count == 0) {
            break;
        }
    }
    if (got < 0) {
        fprintf(stderr, "firmware: the input ended in the middle of a tensor\n");
        status = SHORT_INPUT;
    }
    return most;
}

static FILE *open_or_fail(const char *path)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        perror(path);
        exit(BAD_CALL);
    }
    return file;
}

int main(int argc, char **argv)
{
    static struct job job;
    FILE *stack_file = NULL;
    uint8_t *memory = place(&job);
    job.stack = aligned_alloc(4096, STACK_BYTES);
    for (int i = 1; i + 1 < argc; i += 2) {
        FILE **file = strcmp(argv[i], "--stack") == 0 ? &stack_file : strcmp(argv[i], "--layers") == 0 ? &layers : NULL;
        if (file == NULL) {
            fprintf(stderr, "firmware: unknown option %s\n", argv[i]);
            return BAD_CALL;
        }
        *file = open_or_fail(argv[i + 1]);
    }
    if (memory == NULL || job.stack == NULL || uaccel_model.input_count > MAX_TENSORS ||
        uaccel_model.output_count > MAX_TENSORS) {
        fprintf(stderr, "firmware: the model's tensors do not fit\n");
        return BAD_CALL;
    }
    const size_t used = serve(&job);
    if (stack_file != NULL) {
        fprintf(stack_file, "%lu\n", (unsigned long)used);
        fclose(stack_file);
    }
    if (layers != NULL) {
        fclose(layers);
    }
    free(job.stack);
    free(memory);
    return status;
}
