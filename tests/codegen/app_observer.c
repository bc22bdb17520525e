/* Prints what the hooks around layers are told; built with UACCEL_OBSERVE. */
#include <stdint.h>
#include <stdio.h>

#include "tvmgen_branches.h"
#include "uaccel_observe.h"

static int8_t image[TVMGEN_BRANCHES_IMAGE_SIZE], context[TVMGEN_BRANCHES_CONTEXT_SIZE];
static int8_t product[TVMGEN_BRANCHES_MUL_2_SIZE], dense[TVMGEN_BRANCHES_FULLY_CONNECTED_1_SIZE];
static int32_t winners[TVMGEN_BRANCHES_ARG_MAX_1_SIZE / 4];

void uaccel_layer_begin(const char *model, int32_t layer)
{
    printf("begin %s %d\n", model, (int)layer);
}

void uaccel_layer_end(const char *model, int32_t layer, int32_t output, const void *data, uint32_t bytes)
{
    const uint8_t *byte = data;
    printf("end %s %d %d ", model, (int)layer, (int)output);
    for (uint32_t i = 0; i < bytes; ++i) {
        printf("%02x", (unsigned)byte[i]);
    }
    printf("\n");
}

int main(void)
{
    struct tvmgen_branches_inputs inputs = {image, context};
    struct tvmgen_branches_outputs outputs = {product, dense, winners};
    if (fread(image, sizeof image, 1, stdin) != 1 || fread(context, sizeof context, 1, stdin) != 1) {
        return 1;
    }
    return tvmgen_branches_run(&inputs, &outputs);
}
