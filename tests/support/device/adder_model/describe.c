#include "chain.h"

#include <stddef.h>

#include "uaccel_accelerator.h"
#include "uaccel_hal.h"
#include "uaccel_kernel.h"
#include "uaccel_model.h"

#define TEXT_(number) #number
#define TEXT(number) TEXT_(number)
#define LAYER(name, size) "{\"name\":\"" name "\",\"op\":\"add\",\"engine\":\"adder\",\"outputs\":[{\"dtype\":\"int8\",\"shape\":[" TEXT(size) "]}]}"

static UACCEL_IO UACCEL_ALIGNED(16) int8_t wave[CHAIN_WAVE];
static UACCEL_IO UACCEL_ALIGNED(16) int8_t sum[CHAIN_WAVE];
static UACCEL_IO UACCEL_ALIGNED(16) int8_t known[CHAIN_KNOWN];

static const struct uaccel_tensor inputs[] = {{"wave", CHAIN_WAVE, wave}};
static const struct uaccel_tensor outputs[] = {{"sum", CHAIN_WAVE, sum}, {"known", CHAIN_KNOWN, known}};
static struct uaccel_account accounts[3];

static const char *const description[] = {
    "{\"model\":\"chain\",\n\"inputs\":[{\"name\":\"wave\",\"dtype\":\"int8\",\"shape\":[" TEXT(CHAIN_WAVE) "]}],\n",
    "\"outputs\":[{\"name\":\"sum\",\"dtype\":\"int8\",\"shape\":[" TEXT(CHAIN_WAVE) "]},",
    "{\"name\":\"known\",\"dtype\":\"int8\",\"shape\":[" TEXT(CHAIN_KNOWN) "]}],\n",
    "\"layers\":[" LAYER("up", CHAIN_WAVE) "," LAYER("down", CHAIN_WAVE) "," LAYER("table", CHAIN_KNOWN) "]}",
    NULL,
};

static int32_t run(void)
{
    struct chain_devices devices = {uaccel_hal_device("adder"), uaccel_hal_device("swapper")};
    return chain_run(wave, sum, known, &devices);
}

const struct uaccel_model uaccel_model = {
    .name = "chain",
    .input_count = 1,
    .output_count = 2,
    .layer_count = 3,
    .inputs = inputs,
    .outputs = outputs,
    .description = description,
    .accounts = accounts,
    .run = run,
};
