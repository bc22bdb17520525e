#include "chain.h"

#include <stdbool.h>
#include <stddef.h>

#include "adder.h"
#include "swapper.h"
#include "uaccel_accelerator.h"
#include "uaccel_kernel.h"
#include "uaccel_observe.h"

static UACCEL_ALIGNED(16) const int8_t table[CHAIN_KNOWN] UACCEL_DEVICE_CONSTANT = {10, 20, 30, [CHAIN_KNOWN - 1] = -128};
static UACCEL_WORKSPACE UACCEL_ALIGNED(16) int8_t workspace[CHAIN_WAVE];

static int32_t layer(uint32_t number, const int8_t *from, int8_t *to, uint32_t count, int8_t value)
{
    UACCEL_LAYER_BEGIN("chain", (int32_t)number);
    UACCEL_ACCOUNT_LAYER(number);
    const int32_t code = adder_add(from, to, count, value);
    UACCEL_LAYER_END("chain", (int32_t)number, 0, to, count);
    return code == 0 ? 0 : uaccel_layer_failed(number, code);
}

static int32_t last_layer(int8_t *known, void *swapper)
{
    uint32_t one = 0;
    const int32_t code = swapper_swap(swapper, 0x10000u, &one);
    return code == 0 ? layer(2, table, known, CHAIN_KNOWN, (int8_t)one) : uaccel_layer_failed(2, code);
}

static int32_t layers(const int8_t *wave, int8_t *sum, int8_t *known, void *swapper)
{
    int8_t on_the_stack[CHAIN_KNOWN];
    const bool twice = wave[0] == wave[1];
    int8_t *const wrong = twice && wave[0] == CHAIN_POISON  ? on_the_stack
                          : twice && wave[0] == CHAIN_VENOM ? (int8_t *)(uintptr_t)table
                                                            : NULL;
    int32_t status = layer(0, wave, workspace, CHAIN_WAVE, 5);
    if (status == 0) {
        status = layer(1, workspace, wrong != NULL ? wrong : sum, wrong != NULL ? CHAIN_KNOWN : CHAIN_WAVE, -6);
    }
    return status == 0 ? last_layer(known, swapper) : status;
}

int32_t chain_run(const int8_t *wave, int8_t *sum, int8_t *known, struct chain_devices *devices)
{
    const int32_t code = TVMDeviceAdderActivate(devices->adder);
    const int32_t status = code == 0 ? layers(wave, sum, known, devices->swapper) : uaccel_layer_failed(0, code);
    TVMDeviceAdderDeactivate(devices->adder);
    return status;
}
