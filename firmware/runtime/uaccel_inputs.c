#include "uaccel_inputs.h"

#include <stddef.h>

#include "uaccel_frame.h"
#include "uaccel_infer.h"
#include "uaccel_model.h"
#include "uaccel_tensors.h"

static uint32_t written;
static uint32_t fed_crc; /* of an input that is fed: nobody has its bytes any more */

static void note_written(uint32_t offset, uint32_t count)
{
    if (offset <= written && offset + count > written) {
        written = offset + count;
    }
}

/* The first `count` bytes of a write are an input's that is fed. They go to the model in their order; what does not follow
 * those before is dropped, and the run then says that it misses something. */
static bool feed(uint32_t offset, const uint8_t *bytes, uint32_t count)
{
    if (offset == 0) {
        written = 0;
        fed_crc = 0;
    }
    if (offset != written || uaccel_infer_feed(bytes, count, offset == 0) != 0) {
        return false;
    }
    fed_crc = uaccel_crc32(fed_crc, bytes, count);
    note_written(offset, count);
    return true;
}

bool uaccel_inputs_write(uint32_t offset, const uint8_t *bytes, uint32_t count)
{
    const uint32_t whole = uaccel_model.feed != NULL ? uaccel_model.inputs[0].bytes : 0;
    const uint32_t left = offset < whole ? whole - offset : 0;
    const uint32_t fed = count < left ? count : left;
    const bool taken = left > 0 && feed(offset, bytes, fed);
    if (fed < count || left == 0) {
        uaccel_tensors_write(uaccel_model.inputs, uaccel_model.input_count, offset + fed, bytes + fed, count - fed);
        note_written(offset + fed, count - fed);
        return true;
    }
    return taken;
}

uint32_t uaccel_inputs_written(void)
{
    return written;
}

void uaccel_inputs_spend(void)
{
    written = 0;
}

bool uaccel_inputs_are_spent(uint32_t count)
{
    const uint32_t bytes = uaccel_tensors_bytes(uaccel_model.inputs, uaccel_model.input_count);
    return uaccel_model.workspace_io && (written < bytes || (bytes != 0 && count > 1));
}

uint32_t uaccel_inputs_crc(void)
{
    const uint32_t fed = uaccel_model.feed != NULL ? 1 : 0;
    return uaccel_tensors_crc(fed != 0 ? fed_crc : 0, uaccel_model.inputs + fed, uaccel_model.input_count - fed);
}
