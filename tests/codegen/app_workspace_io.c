/* An application as microTVM's documentation shows them for inputs and outputs in the workspace.
 *
 * Samples on stdin, their outputs on stdout. With POOL defined it passes the workspace in, as memory pool `sram`. */
#include <stdio.h>
#include <tvmgen_branches.h>

#ifdef POOL
static uint64_t sram[(TVMGEN_BRANCHES_SRAM_WORKSPACE_POOL_SIZE + 7) / 8];
static struct tvmgen_branches_workspace_pools pools = {sram};
#define POOLS &pools
#else
#define POOLS
#endif

int main(void)
{
    struct tvmgen_branches_inputs inputs = tvmgen_branches_map_inputs(POOLS);
    struct tvmgen_branches_outputs outputs = tvmgen_branches_map_outputs(POOLS);
#ifdef POOL
    struct tvmgen_branches_workspace_pools none = {0};
    if (tvmgen_branches_map_inputs(0).image != 0 || tvmgen_branches_map_outputs(&none).mul_2 != 0) {
        return 1;
    }
    if (tvmgen_branches_run(0) != TVMGEN_BRANCHES_NULL_POINTER ||
        tvmgen_branches_run(&none) != TVMGEN_BRANCHES_NULL_POINTER) {
        return 2;
    }
#endif
    while (fread(inputs.image, TVMGEN_BRANCHES_IMAGE_SIZE, 1, stdin) == 1) {
        if (fread(inputs.context, TVMGEN_BRANCHES_CONTEXT_SIZE, 1, stdin) != 1 || tvmgen_branches_run(POOLS) != 0) {
            return 3;
        }
        fwrite(outputs.mul_2, TVMGEN_BRANCHES_MUL_2_SIZE, 1, stdout);
        fwrite(outputs.fully_connected_1, TVMGEN_BRANCHES_FULLY_CONNECTED_1_SIZE, 1, stdout);
        fwrite(outputs.arg_max_1, TVMGEN_BRANCHES_ARG_MAX_1_SIZE, 1, stdout);
    }
    return 0;
}
