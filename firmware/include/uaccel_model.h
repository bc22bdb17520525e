/* A compiled model as data: what a generic application needs to run any model.
 *
 * The generated file tvmgen_<name>_describe.c defines one of these; a product that calls tvmgen_<name>_run itself
 * needs neither. */
#ifndef UACCEL_MODEL_H
#define UACCEL_MODEL_H

#include <stdint.h>

struct uaccel_tensor {
    const char *name; /* as in the model file */
    uint32_t bytes;
};

struct uaccel_model {
    const char *name;
    uint32_t input_count;
    const struct uaccel_tensor *inputs;
    uint32_t output_count;
    const struct uaccel_tensor *outputs;
    uint32_t io_bytes; /* all inputs and outputs, each rounded up to 16 bytes */
    uint32_t layer_count;
    /* One inference over tensors in the order above; 0 or the model's error. */
    int32_t (*run)(void *const *inputs, void *const *outputs);
};

/* The model of this firmware. */
extern const struct uaccel_model uaccel_model;

#endif
