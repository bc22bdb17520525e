/* A compiled model as data: what a generic application needs to run any model.
 *
 * The generated file tvmgen_<name>_describe.c defines one of these, and the tensors' memory; a product that calls
 * tvmgen_<name>_run itself needs neither. */
#ifndef UACCEL_MODEL_H
#define UACCEL_MODEL_H

#include <stdint.h>

struct uaccel_account;

/* Where the tensors of the description lie; define it to place them, for example __attribute__((section(".sdram"))). */
#ifndef UACCEL_IO
#define UACCEL_IO
#endif

struct uaccel_tensor {
    const char *name; /* as in the model file */
    uint32_t bytes;
    void *data; /* aligned to 16; in the workspace as its type, at least to 4; NULL of an input that is fed */
};

/* A state ends with these bytes, by which it is known. */
#define UACCEL_STATE_MARK_BYTES 4u

struct uaccel_model {
    const char *name;
    uint8_t hash[32]; /* SHA-256 of the model file */
    uint8_t build[8]; /* changes whenever the generated code does */
    uint16_t input_count;
    uint16_t output_count;
    uint16_t layer_count;
    uint8_t workspace_io; /* 1: inputs and outputs lie in the workspace, and a run uses the inputs up */
    const struct uaccel_tensor *inputs;
    const struct uaccel_tensor *outputs;
    /* The description as JSON, for the host, in pieces; the last is followed by NULL. */
    const char *const *description;
    /* For the server to count in, one for each layer; NULL in a model without an accelerator (uaccel_accelerator.h). */
    struct uaccel_account *accounts;
    /* One inference over the tensors' data. Returns 0, the model's own error (-1 to -65536), or which layer's
     * accelerator failed (below that, uaccel_layer_failed). */
    int32_t (*run)(void);
    /* Of a model that remembers: begin anew, as before the first inference; else NULL. */
    void (*reset)(void);
    /* Of a model an input of which is handed over from its first byte to its last, the one whose data are NULL: takes
     * the next bytes; NULL for bytes begins anew. Returns 0 or the model's own error. Else NULL. */
    int32_t (*feed)(const void *bytes, uint32_t count);
    /* Of a model that remembers: where its state lies, and the bytes of that, the last of which are its mark; else NULL
     * and 0. */
    void *(*state)(void);
    uint32_t state_bytes;
};

/* The model of this firmware. */
extern const struct uaccel_model uaccel_model;

#endif
