/* Watching a model run, layer by layer: for profiles, and to find the first layer that differs.
 *
 * Off by default, when it costs nothing. Build the generated source with UACCEL_OBSERVE defined and provide the
 * two functions; `model` is the model's name and `layer` the number in the generated comments and the report. */
#ifndef UACCEL_OBSERVE_H
#define UACCEL_OBSERVE_H

#include <stdint.h>

#ifdef UACCEL_OBSERVE

void uaccel_layer_begin(const char *model, int32_t layer);

/* Once for each output of the layer; `data` is intact only during the call. */
void uaccel_layer_end(const char *model, int32_t layer, int32_t output, const void *data, uint32_t bytes);

#define UACCEL_LAYER_BEGIN(model, layer) uaccel_layer_begin(model, layer)
#define UACCEL_LAYER_END(model, layer, output, data, bytes) uaccel_layer_end(model, layer, output, data, bytes)

#else

#define UACCEL_LAYER_BEGIN(model, layer) ((void)0)
#define UACCEL_LAYER_END(model, layer, output, data, bytes) ((void)0)

#endif

#endif
