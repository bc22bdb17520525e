/* Requests as they were read, and the packets that answer them. */
#ifndef UACCEL_ANSWER_H
#define UACCEL_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "uaccel_account_state.h"
#include "uaccel_protocol.h"

struct uaccel_request {
    uint8_t type;
    uint16_t sequence;
    uint32_t token;
    const uint8_t *body;
    uint32_t bytes; /* of the body */
    bool again;     /* it has been served; only its answer was lost */
};

struct uaccel_answer {
    uint8_t type;
    uint8_t bytes;
    uint8_t body[UACCEL_RUN_REPLY_BYTES + UACCEL_FAILURE_BYTES];
};

/* The bytes of a text, or those that there is room for. */
uint32_t uaccel_cut(const char *text, uint32_t room);

void uaccel_send(uint8_t type, uint16_t sequence, uint32_t token, const void *body, uint32_t bytes);

void uaccel_answer(const struct uaccel_request *request, uint8_t type, const void *body, uint32_t bytes);
void uaccel_acknowledge(const struct uaccel_request *request, uint8_t type);

/* Twice, since the host would take a long run for a dead board if it missed this. */
void uaccel_tell_started(const struct uaccel_request *request);

struct uaccel_answer uaccel_error_answer(uint8_t code, uint32_t detail);
void uaccel_refuse(const struct uaccel_request *request, uint8_t code, uint32_t detail);

/* Behind the answer's fields: what a driver said of the inference that failed. */
void uaccel_add_failure(struct uaccel_answer *what);

#endif
