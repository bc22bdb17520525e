#include "uaccel_watch.h"

#include <stddef.h>

#include "uaccel_account.h"
#include "uaccel_frame.h"
#include "uaccel_model.h"
#include "uaccel_observe.h"
#include "uaccel_port.h"

static struct {
    struct uaccel_stream *stream; /* NULL: nobody watches */
    uint8_t object;
    uint16_t index;
    uint64_t ticks; /* at the beginning of the layer */
    uint64_t instructions;
} watch;

int32_t uaccel_watch_run(struct uaccel_stream *stream, uint8_t object, uint16_t index)
{
    watch.stream = stream;
    watch.object = object;
    watch.index = index;
    if (uaccel_model.reset != NULL) {
        uaccel_model.reset();
    }
    uaccel_account_begin();
    const int32_t status = uaccel_model.run();
    watch.stream = NULL;
    return status;
}

#ifdef UACCEL_OBSERVE

enum { LAYER_RECORD_BYTES = 8, TIME_RECORD_BYTES = 18 };

bool uaccel_watch_can(void)
{
    return true;
}

static void add_layer(int32_t layer, int32_t output, const void *data, uint32_t bytes)
{
    uint8_t record[LAYER_RECORD_BYTES];
    if (watch.index != UACCEL_EVERY_LAYER && watch.index != (uint32_t)layer) {
        return;
    }
    uaccel_put16(record, (uint32_t)layer);
    uaccel_put16(record + 2, (uint32_t)output);
    uaccel_put32(record + 4, bytes);
    uaccel_stream_add(watch.stream, record, sizeof record);
    uaccel_stream_add(watch.stream, data, bytes);
}

static void add_time(int32_t layer, uint64_t ticks, uint64_t instructions)
{
    uint8_t record[TIME_RECORD_BYTES];
    uaccel_put16(record, (uint32_t)layer);
    uaccel_put64(record + 2, ticks);
    uaccel_put64(record + 10, instructions);
    uaccel_stream_add(watch.stream, record, sizeof record);
}

UACCEL_PORT_UNCOUNTED void uaccel_layer_begin(const char *model, int32_t layer)
{
    (void)model;
    (void)layer;
    watch.ticks = uaccel_port_ticks();
    watch.instructions = uaccel_port_instructions();
}

UACCEL_PORT_UNCOUNTED void uaccel_layer_end(const char *model, int32_t layer, int32_t output, const void *data,
                                            uint32_t bytes)
{
    const uint64_t instructions = uaccel_port_instructions();
    const uint64_t ticks = uaccel_port_ticks();
    (void)model;
    if (watch.stream == NULL) {
        return;
    }
    if (watch.object == UACCEL_OBJECT_LAYERS) {
        add_layer(layer, output, data, bytes);
    } else if (output == 0) {
        const bool counts = instructions != UACCEL_PORT_NO_COUNT;
        add_time(layer, ticks - watch.ticks, counts ? instructions - watch.instructions : UACCEL_PORT_NO_COUNT);
    }
}

#else

bool uaccel_watch_can(void)
{
    return false;
}

#endif
