/* Every pointer that may be NULL by mistake, one after the other: the run must say so, and write nothing. */
#include <stddef.h>
#include <stdint.h>

#include "tvmgen_branches.h"

enum { PAINT = 0x5A };

static uint64_t memory[(TVMGEN_BRANCHES_IMAGE_SIZE + TVMGEN_BRANCHES_CONTEXT_SIZE) / 8 + 8];
static int8_t product[TVMGEN_BRANCHES_MUL_2_SIZE];
static int8_t dense[TVMGEN_BRANCHES_FULLY_CONNECTED_1_SIZE];
static int32_t winners[TVMGEN_BRANCHES_ARG_MAX_1_SIZE / 4];
static uint64_t sram[(TVMGEN_BRANCHES_WORKSPACE_SIZE + 7) / 8];

static int refused(int32_t status)
{
    for (size_t i = 0; i < sizeof product; ++i) {
        if (product[i] != PAINT) {
            return 0;
        }
    }
    return status == TVMGEN_BRANCHES_NULL_POINTER && status != TVMGEN_BRANCHES_OK;
}

/* 0, or the number of the first pointer that was not refused. */
int main(void)
{
    struct tvmgen_branches_inputs inputs = {memory, memory};
    struct tvmgen_branches_outputs outputs = {product, dense, winners};
    struct tvmgen_branches_workspace_pools pools = {sram};
    struct tvmgen_branches_inputs bad_inputs[] = {{NULL, memory}, {memory, NULL}};
    struct tvmgen_branches_outputs bad_outputs[] = {
        {NULL, dense, winners}, {product, NULL, winners}, {product, dense, NULL}};
    struct tvmgen_branches_workspace_pools bad_pools = {NULL};
    for (size_t i = 0; i < sizeof product; ++i) {
        product[i] = PAINT;
    }
    for (int i = 0; i < 2; ++i) {
        if (!refused(tvmgen_branches_run(&bad_inputs[i], &outputs, &pools))) {
            return 1 + i;
        }
    }
    for (int i = 0; i < 3; ++i) {
        if (!refused(tvmgen_branches_run(&inputs, &bad_outputs[i], &pools))) {
            return 3 + i;
        }
    }
    if (!refused(tvmgen_branches_run(&inputs, &outputs, &bad_pools))) {
        return 6;
    }
    if (!refused(tvmgen_branches_run(NULL, &outputs, &pools))) {
        return 7;
    }
    if (!refused(tvmgen_branches_run(&inputs, NULL, &pools))) {
        return 8;
    }
    if (!refused(tvmgen_branches_run(&inputs, &outputs, NULL))) {
        return 9;
    }
    return tvmgen_branches_run(&inputs, &outputs, &pools) == TVMGEN_BRANCHES_OK ? 0 : 10;
}
