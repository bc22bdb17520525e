/* An application as microTVM's documentation of its C interface shows them: nothing here knows of uaccel.
 *
 * Inputs on stdin, outputs on stdout. With POOL defined it passes the workspace in, as memory pool `sram`. */
#include <stdint.h>
#include <stdio.h>
#include <tvmgen_branches.h>

static int8_t image[TVMGEN_BRANCHES_IMAGE_SIZE];
static int8_t context[TVMGEN_BRANCHES_CONTEXT_SIZE];
static int8_t product[TVMGEN_BRANCHES_MUL_2_SIZE];
static int8_t dense[TVMGEN_BRANCHES_FULLY_CONNECTED_1_SIZE];
static int32_t winners[TVMGEN_BRANCHES_ARG_MAX_1_SIZE / sizeof(int32_t)];

#ifdef POOL
static uint64_t sram[(TVMGEN_BRANCHES_SRAM_WORKSPACE_POOL_SIZE + 7) / 8];
#else
static uint8_t aot_memory[TVMGEN_BRANCHES_WORKSPACE_SIZE]; /* for microTVM's allocator; here it stays unused */
#endif

int main(void)
{
    struct tvmgen_branches_inputs inputs = {
        .image = image,
        .context = context,
    };
    struct tvmgen_branches_outputs outputs = {
        .mul_2 = product,
        .fully_connected_1 = dense,
        .arg_max_1 = winners,
    };
    int32_t status;
    if (fread(image, sizeof image, 1, stdin) != 1 || fread(context, sizeof context, 1, stdin) != 1) {
        return 1;
    }
#ifdef POOL
    struct tvmgen_branches_workspace_pools pools = {
        .sram = sram,
    };
    status = tvmgen_branches_run(&inputs, &outputs, &pools);
#else
    aot_memory[0] = 0;
    status = tvmgen_branches_run(&inputs, &outputs);
#endif
    fwrite(product, sizeof product, 1, stdout);
    fwrite(dense, sizeof dense, 1, stdout);
    fwrite(winners, sizeof winners, 1, stdout);
    return status;
}
