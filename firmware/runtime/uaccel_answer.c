#include "uaccel_answer.h"

#include <string.h>

#include "uaccel_account.h"
#include "uaccel_frame.h"

uint32_t uaccel_cut(const char *text, uint32_t room)
{
    const size_t bytes = strlen(text);
    return bytes < room ? (uint32_t)bytes : room;
}

void uaccel_send(uint8_t type, uint16_t sequence, uint32_t token, const void *body, uint32_t bytes)
{
    uaccel_frame_begin(type, sequence, token, false);
    uaccel_frame_add(body, bytes);
    uaccel_frame_end();
}

void uaccel_answer(const struct uaccel_request *request, uint8_t type, const void *body, uint32_t bytes)
{
    uaccel_send(type, request->sequence, request->token, body, bytes);
}

void uaccel_acknowledge(const struct uaccel_request *request, uint8_t type)
{
    uaccel_answer(request, type, NULL, 0);
}

void uaccel_tell_started(const struct uaccel_request *request)
{
    uaccel_acknowledge(request, UACCEL_TYPE_STARTED);
    uaccel_frame_begin(UACCEL_TYPE_STARTED, request->sequence, request->token, true);
    uaccel_frame_end();
}

struct uaccel_answer uaccel_error_answer(uint8_t code, uint32_t detail)
{
    struct uaccel_answer error = {UACCEL_TYPE_ERROR, UACCEL_ERROR_BYTES, {0}};
    error.body[UACCEL_ERROR_CODE_AT] = code;
    uaccel_put32(error.body + UACCEL_ERROR_DETAIL_AT, detail);
    return error;
}

void uaccel_refuse(const struct uaccel_request *request, uint8_t code, uint32_t detail)
{
    const struct uaccel_answer error = uaccel_error_answer(code, detail);
    uaccel_answer(request, error.type, error.body, error.bytes);
}

void uaccel_add_failure(struct uaccel_answer *what)
{
    const char *const text = uaccel_account_failure_text();
    const uint32_t bytes = uaccel_cut(text, (uint32_t)UACCEL_BODY_BYTES - what->bytes);
    memcpy(what->body + what->bytes, text, (size_t)bytes);
    what->bytes = (uint8_t)(what->bytes + bytes);
}
