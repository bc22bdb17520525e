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

/* Which input is fed: it lies nowhere. As many as there are inputs, if none is. */
static uint32_t fed_number(void)
{
    uint32_t number = uaccel_model.feed != NULL ? 0 : uaccel_model.input_count;
    while (number < uaccel_model.input_count && uaccel_model.inputs[number].data != NULL) {
        ++number;
    }
    return number;
}

/* Bytes go to the model in their order; what does not follow those before is dropped, and the run then says that it
 * misses something. `begin`: where the input that is fed begins. */
static bool feed(uint32_t begin, uint32_t offset, const uint8_t *bytes, uint32_t count)
{
    if (offset != written || uaccel_infer_feed(bytes, count, offset == begin) != 0) {
        return false;
    }
    fed_crc = offset == begin ? uaccel_tensors_crc(0, uaccel_model.inputs, fed_number()) : fed_crc;
    fed_crc = uaccel_crc32(fed_crc, bytes, count);
    note_written(offset, count);
    return true;
}

/* Of `count` bytes those before `end`. */
static uint32_t until(uint32_t offset, uint32_t count, uint32_t end)
{
    const uint32_t left = offset < end ? end - offset : 0;
    return count < left ? count : left;
}

static void hold(uint32_t offset, const uint8_t *bytes, uint32_t count)
{
    if (count > 0) {
        uaccel_tensors_write(uaccel_model.inputs, uaccel_model.input_count, offset, bytes, count);
        note_written(offset, count);
    }
}

bool uaccel_inputs_write(uint32_t offset, const uint8_t *bytes, uint32_t count)
{
    const uint32_t number = fed_number();
    const uint32_t begin = uaccel_tensors_bytes(uaccel_model.inputs, number);
    const uint32_t end = begin + (number < uaccel_model.input_count ? uaccel_model.inputs[number].bytes : 0);
    const uint32_t before = until(offset, count, begin), held_or_fed = until(offset, count, end);
    if (offset == 0 && uaccel_model.feed != NULL) {
        written = 0;
        fed_crc = 0;
    }
    hold(offset, bytes, before);
    const bool taken = held_or_fed == before || feed(begin, offset + before, bytes + before, held_or_fed - before);
    hold(offset + held_or_fed, bytes + held_or_fed, count - held_or_fed);
    return taken || held_or_fed - before < count;
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
    const uint32_t number = fed_number(), count = uaccel_model.input_count;
    return number == count ? uaccel_tensors_crc(0, uaccel_model.inputs, count)
                           : uaccel_tensors_crc(fed_crc, uaccel_model.inputs + number + 1, count - number - 1);
}
