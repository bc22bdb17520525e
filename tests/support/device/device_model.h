/* A model small enough to know by heart, for tests of the session: two inputs, two outputs, a view and two layers.
 *
 *   mask[i] = wave[i % WAVE] ^ 0x5A    int8 [1,MASK]   layer 0
 *   (layer 1 is a view of it)
 *   sums[k] = sum of wave[i] * weights[k] over i % SUMS == k    int32 [SUMS]   layer 2
 *
 * With STATE sums go on from those of the inference before.
 *
 * With WORKSPACE_IO it uses its inputs up, as a model does whose inputs lie in the workspace.
 *
 * It fails with FAILURE where wave[0] is POISON and wave[1] is POISON too. Layer 2 is an accelerator's, which takes a
 * cycle a weight's use and fails where all weights are POISON: with SAYS, and with STALLED. */
#ifndef UACCEL_TESTS_DEVICE_MODEL_H
#define UACCEL_TESTS_DEVICE_MODEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef UACCEL_ACCOUNTING
#define UACCEL_ACCOUNTING
#endif
#include "uaccel_accelerator.h"
#include "uaccel_model.h"
#include "uaccel_observe.h"

#ifndef WAVE
#define WAVE 40
#endif
#ifndef MASK
#define MASK WAVE
#endif
#ifndef MODEL_FILL /* the byte of which its hash consists */
#define MODEL_FILL 0x11
#endif
#define SUMS 3
#define POISON 77
#define FAILURE (-5)
#define STALLED 6
#define SAYS "the device never finished"

#define TEXT_(number) #number
#define TEXT(number) TEXT_(number)

static int8_t device_wave[WAVE];
static int16_t device_weights[SUMS];
static int8_t device_mask[MASK];
#ifndef STATE
static int32_t device_sums[SUMS];
#else
#ifndef STATE_MARK
#define STATE_MARK 0x5EED0001u
#endif
static struct {
    int32_t sums[SUMS];
    uint32_t mark;
} device_kept = {{0}, STATE_MARK};
#define device_sums device_kept.sums
#endif

/* Told when the model begins. */
void device_computes(void);

/* A driver, as an accelerator's folder has one. */
static int32_t dotter(void)
{
    if (device_weights[0] == POISON && device_weights[1] == POISON && device_weights[2] == POISON) {
        UACCEL_ACCOUNT_FAILURE(SAYS);
        return STALLED;
    }
#ifndef STATE
    memset(device_sums, 0, sizeof device_sums);
#endif
    for (size_t i = 0; i < WAVE; ++i) {
        device_sums[i % SUMS] += device_wave[i] * device_weights[i % SUMS];
    }
    UACCEL_ACCOUNT(2, WAVE);
    return 0;
}

static int32_t device_run(void)
{
    device_computes();
    if (device_wave[0] == POISON && device_wave[1] == POISON) {
        return FAILURE;
    }
    UACCEL_LAYER_BEGIN("known", 0);
    for (size_t i = 0; i < MASK; ++i) {
        device_mask[i] = (int8_t)(device_wave[i % WAVE] ^ 0x5A);
    }
    UACCEL_LAYER_END("known", 0, 0, device_mask, sizeof device_mask);
    UACCEL_LAYER_BEGIN("known", 2);
    UACCEL_ACCOUNT_LAYER(2);
    const int32_t code = dotter();
    if (code != 0) {
        return uaccel_layer_failed(2, code);
    }
    UACCEL_LAYER_END("known", 2, 0, device_sums, sizeof device_sums);
#ifdef WORKSPACE_IO
    memset(device_wave, 0x33, sizeof device_wave);
    memset(device_weights, 0x33, sizeof device_weights);
#endif
    return 0;
}

#ifdef STATE
static void device_reset(void)
{
    memset(device_sums, 0, sizeof device_sums);
}

static void *device_state(void)
{
    return &device_kept;
}
#endif

static const struct uaccel_tensor device_inputs[] = {
    {"wave", sizeof device_wave, device_wave},
    {"weights", sizeof device_weights, device_weights},
};

static const struct uaccel_tensor device_outputs[] = {
    {"mask", sizeof device_mask, device_mask},
    {"sums", sizeof device_sums, device_sums},
};

static struct uaccel_account device_accounts[3];

static const char *const device_description[] = {
    "{\"model\":\"known\",\n\"inputs\":[",
    "{\"name\":\"wave\",\"dtype\":\"int8\",\"shape\":[1," TEXT(WAVE) "]},\n",
    "{\"name\":\"weights\",\"dtype\":\"int16\",\"shape\":[" TEXT(SUMS) "]}],\n\"outputs\":[",
    "{\"name\":\"mask\",\"dtype\":\"int8\",\"shape\":[1," TEXT(MASK) "]},\n",
    "{\"name\":\"sums\",\"dtype\":\"int32\",\"shape\":[" TEXT(SUMS) "]}],\n",
#ifdef STATE
    "\"state\":[{\"name\":\"so far\",\"dtype\":\"int32\",\"shape\":[" TEXT(SUMS) "],\"offset\":0}],\n",
#endif
    "\"layers\":[",
    "{\"name\":\"xor\",\"op\":\"xor\",\"engine\":\"cpu\",\"outputs\":[{\"dtype\":\"int8\",\"shape\":[1," TEXT(MASK) "]}]},\n",
    "{\"name\":\"view\",\"op\":\"reshape\",\"engine\":\"cpu\",\"view\":true,"
    "\"outputs\":[{\"dtype\":\"int8\",\"shape\":[" TEXT(MASK) "]}]},\n",
    "{\"name\":\"dot\",\"op\":\"dot\",\"engine\":\"dotter\",\"outputs\":[{\"dtype\":\"int32\",\"shape\":[" TEXT(SUMS) "]}]}]}",
    NULL,
};

#define FILL4 MODEL_FILL, MODEL_FILL, MODEL_FILL, MODEL_FILL
const struct uaccel_model uaccel_model = {
    .name = "known",
    .hash = {FILL4, FILL4, FILL4, FILL4, FILL4, FILL4, FILL4, FILL4},
    .build = {1, 2, 3, 4, 5, 6, 7, 8},
    .input_count = 2,
    .output_count = 2,
    .layer_count = 3,
#ifdef WORKSPACE_IO
    .workspace_io = 1,
#endif
    .inputs = device_inputs,
    .outputs = device_outputs,
    .description = device_description,
    .accounts = device_accounts,
    .run = device_run,
#ifdef STATE
    .reset = device_reset,
    .state = device_state,
    .state_bytes = sizeof device_kept,
#endif
};

#endif
